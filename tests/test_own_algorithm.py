"""An algorithm of one's own is its rule and its card, both in this file: the rest of the system picks it up."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from gymnasium_solver import api
from gymnasium_solver.config import cards
from gymnasium_solver.config.cards import Around, Card, Look, names, register
from gymnasium_solver.config.tabular import TabularConfig
from gymnasium_solver.errors import ConfigError

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent
REF = "FrozenLake-v1:expected_sarsa"
LAKE: dict[str, Any] = {"env_kwargs": {"is_slippery": False}, "policy_lr": 0.3, "epsilon": 0.9, "eval_episodes": 4}


class ExpectedSarsaConfig(TabularConfig):
    algo_id: Literal["expected_sarsa"] = "expected_sarsa"


def make(config: ExpectedSarsaConfig, spaces: Any) -> Any:
    """Towards what the policy that explores gets on average (van Seijen et al. 2009)."""
    import jax.numpy as jnp

    from gymnasium_solver.algorithms.tabular import make_tabular

    def expected(q: Any, hp: Any, has_next: Any, next_action: Any, mask: Any) -> Any:
        return (1 - hp["epsilon"]) * jnp.max(q) + hp["epsilon"] * jnp.mean(q)

    return make_tabular(config, spaces, expected)


def defaults(_: Look) -> dict[str, Any]:
    return {"n_envs": 2, "n_steps": 32}


CARD = Card(
    algo_id="expected_sarsa",
    title="expected SARSA: a table of action values, learnt towards the mean over next actions",
    family="tabular",
    config=ExpectedSarsaConfig,
    make=f"{__name__}:make",
    feed="rollout",
    actions=("discrete",),
    instead={"multi_discrete": "ppo", "box": "ppo"},
    defaults=defaults,
    usual={"policy_lr": (0.01, 1.0), "gamma": (0.9, None)},
    search={"policy_lr": Around(10, most=1.0), "gamma": [0.9, 0.99]},
    probe={"policy_lr": 0.2, "max_env_steps": 4_000},
    needs_discrete_observations=True,
)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_cards", dict(cards._loaded()))
    register(CARD)
    # Trainings in other processes have to find it too.
    monkeypatch.setenv("GSOLVE_CARDS", f"{__name__}:CARD")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")


def test_it_is_listed_and_configured() -> None:
    assert names()[-1] == "expected_sarsa"
    config = api.config(REF)
    assert (config.algo_id, config.n_envs, config.clock) == ("expected_sarsa", 2, "env_steps")


def test_it_refuses_spaces_it_does_not_serve(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected_sarsa cannot serve the continuous actions of Pendulum-v1; use ppo"):
        api.train("Pendulum-v1:expected_sarsa", runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="expected_sarsa keeps a table of discrete observations"):
        api.train("CartPole-v1:expected_sarsa", runs_dir=tmp_path)
    assert not any(tmp_path.iterdir()), "before anything is written"


def test_it_trains_and_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    fields = {**LAKE, "stop_when_solved": False, "eval_freq_epochs": 32, "checkpoint_freq_epochs": 64}
    whole = api.train(REF, runs_dir=tmp_path / "whole", max_env_steps=8_192, **fields)
    half = api.train(REF, runs_dir=tmp_path / "half", max_env_steps=4_096, **fields)
    resumed = api.resume(half, max_env_steps=8_192)
    assert whole.summary()["best_reward"] == 1.0, "it finds the way across the lake"
    ours, theirs = (run.read_checkpoint("last")[0] for run in (whole, resumed))
    assert {name: array.tobytes() for name, array in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}
    with pytest.raises(ConfigError, match="initial_value cannot change in mid-run"):
        api.resume(resumed, max_env_steps=16_384, initial_value=1.0)


def test_it_is_diagnosed_by_the_ranges_of_its_card(tmp_path: Path) -> None:
    cliff: dict[str, Any] = {
        "runs_dir": tmp_path,
        "max_env_steps": 16_384,
        "epsilon": 0.1,
        "eval_episodes": 1,
        "reward_threshold": -20,
    }
    assert api.train("CliffWalking-v1:expected_sarsa", policy_lr=0.5, **cliff).status["solved"]
    diagnosis = api.diagnose(api.train("CliffWalking-v1:expected_sarsa", policy_lr=1e-6, **cliff))
    assert diagnosis["bottlenecks"][0]["cause"] == "learning-rate-too-low"
    assert diagnosis["recommendations"][0]["set"] == {"policy_lr": 0.5}, "as it was when it solved this"


def test_a_sweep_without_a_space_tunes_what_its_card_says(tmp_path: Path) -> None:
    overrides = [f"{name}={value}" for name, value in LAKE.items() if name != "env_kwargs"]
    overrides += ["env_kwargs={is_slippery: false}", "max_env_steps=2048"]
    document = api.sweep(
        REF, runs_dir=tmp_path, overrides=overrides, trials=2, objective="return", confirm_seeds=0, jobs=1
    )
    assert document["counts"] == {"complete": 2}, document
    tried = [row["params"] for row in document["trials"]]
    assert {name for params in tried for name in params} == {"policy_lr", "gamma"}
    assert np.unique([params["policy_lr"] for params in tried]).size == 2
