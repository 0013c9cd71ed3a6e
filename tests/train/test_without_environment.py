"""A training that has no environment: its feed brings its own batches, and updates are its clock."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import Field

from gymnasium_solver import api
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config import cards
from gymnasium_solver.config.base import Count, LearningRate, NetworkFields, RunConfig
from gymnasium_solver.config.cards import Around, Card, Look, register
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.train.parts import Clock

pytestmark = pytest.mark.integration
ROWS, BATCH = 256, 32


class ClonePoleConfig(NetworkFields):
    """Copies the rule that keeps a pole up: lean to where it falls."""

    algo_id: Literal["clone_pole"] = "clone_pole"
    max_updates: Annotated[Count, Field(description="gradient steps")] = 400
    policy_lr: Annotated[LearningRate, Field(description="learning rate")] = 0.1


class State(NamedTuple):
    params: Any


def make(config: ClonePoleConfig, spaces: Any) -> Algorithm:
    def logits(params: Any, obs: Any) -> Any:
        return obs @ params["weight"]

    def loss(params: Any, batch: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(params, batch["obs"])), batch["action"][:, None], 1)
        return -jnp.mean(chosen)

    def update(state: State, batch: Any, hp: Any, _: Any) -> tuple[State, Scalars, Any]:
        value, gradient = jax.value_and_grad(loss)(state.params, batch)
        params = jax.tree.map(lambda p, g: p - hp["policy_lr"] * g, state.params, gradient)
        return State(params), Scalars.of({"train/loss/total": value, "train/loss/policy": value}), ()

    def greedy(actor: Any, carry: Any, obs: Any, mask: Any) -> Any:
        return jnp.argmax(logits(actor.params, obs), axis=-1), carry

    return Algorithm(
        init=lambda rng: State({"weight": np.zeros((4, 2), np.float32)}),
        actor=lambda state: state,
        act=lambda actor, carry, obs, noise, mask: (*greedy(actor, carry, obs, mask), {}),
        greedy=greedy,
        value=lambda state, obs: jnp.zeros(len(obs)),
        acting_noise=lambda rng, shape, hp: np.zeros(shape),
        update_noise=lambda rng: (),
        update=update,
        gradients=lambda state, batch, hp, noise: {},
        scheduled=("policy_lr",),
        gradient_steps=1,
    )


class ExpertFeed:
    """Twenty minibatches of what an expert did for each row of metrics."""

    scheduled: tuple[str, ...] = ()
    chunk, row_length, epochs = 1, 20, 1

    def __init__(self, config: Any, spec: Any, algorithm: Any) -> None:
        self.notes: list[str] = ["256 steps of an expert"]
        obs = np.random.default_rng(0).normal(scale=0.1, size=(ROWS, 4)).astype(np.float32)
        self._rows = {"obs": obs, "action": (obs[:, 2] + 0.5 * obs[:, 3] > 0).astype(np.int32)}
        self._served = 0

    def random_rows(self, clock: Clock) -> int:
        return 0

    def add(self, chunk: Any, clock: Clock) -> None:
        raise AssertionError("nothing is collected")

    def next(self, rng: np.random.Generator, hp: Any) -> Any:
        if self._served == self.row_length:
            self._served = 0
            return None
        self._served += 1
        index = rng.integers(ROWS, size=BATCH)
        return {name: column[index] for name, column in self._rows.items()}, {}

    def learnt(self, batch: Any, outcome: Any) -> None: ...

    def example(self) -> Any:
        return {name: column[:BATCH] for name, column in self._rows.items()}, {}

    def rows(self, batch: Any) -> Any:
        return batch

    def sample(self) -> Any:
        return self.example()[0]

    def metrics(self) -> dict[str, float]:
        return {}

    def cut_episodes(self) -> None: ...

    def snapshot(self) -> dict[str, np.ndarray]:
        return {}

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.empty(shape, dtype)

    def restore(self, arrays: Any) -> None: ...


def defaults(_: Look) -> dict[str, Any]:
    return {}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_cards", dict(cards._loaded()))
    register(
        Card(
            algo_id="clone_pole",
            title="behavioural cloning of a rule",
            family="imitation",
            config=ClonePoleConfig,
            make=f"{__name__}:make",
            feed=f"{__name__}:ExpertFeed",
            actions=("discrete",),
            instead={"multi_discrete": "ppo", "box": "ppo"},
            defaults=defaults,
            usual={"policy_lr": (1e-3, 10.0)},
            search={"policy_lr": Around(10)},
            probe={"policy_lr": 1.0},
        )
    )


REF = "CartPole-v1:clone_pole"
FIELDS: dict[str, Any] = {"eval_episodes": 4, "eval_freq_epochs": 10, "checkpoint_freq_epochs": 5}


def rows_of(run: Any) -> list[dict[str, str]]:
    with (run.path / "metrics.csv").open() as file:
        return [{k: v for k, v in row.items() if "/sys/" not in k} for row in csv.DictReader(file)]


def test_updates_end_it_and_drive_its_schedules(tmp_path: Path) -> None:
    falling = {"start": 4.0, "end": 0.0, "to": 200, "clock": "updates"}
    run = api.train(REF, runs_dir=tmp_path, policy_lr=falling, stop_when_solved=False, **FIELDS)
    rows = rows_of(run)
    assert [float(row["train/cnt/updates"]) for row in rows] == list(range(20, 401, 20))
    assert {float(row["train/cnt/env_steps"]) for row in rows} == {0.0}
    rates = [float(row["train/hp/policy_lr"]) for row in rows]
    np.testing.assert_allclose(rates[:3], [4 * (1 - 10 / 200), 4 * (1 - 30 / 200), 4 * (1 - 50 / 200)])
    assert rates[10:] == [0.0] * 10, "past `to`, which counts updates"
    assert run.status["updates"] == run.status["max_updates"] == 400 and run.status["status"] == "completed"
    assert run.summary()["best_reward"] > 150, "a rule that was copied balances; chance has 20"
    assert "400 updates" in "\n".join(run.log_lines())
    document = api.diagnose(run)
    assert document["summary"]["clock"] == "updates" and document["summary"]["progress"] == 400


def test_it_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    fields = {**FIELDS, "stop_when_solved": False, "policy_lr": 1.0}
    whole = api.train(REF, runs_dir=tmp_path / "whole", max_updates=200, **fields)
    half = api.train(REF, runs_dir=tmp_path / "half", max_updates=100, **fields)
    resumed = api.resume(half, max_updates=200)
    ours, theirs = (run.read_checkpoint("last")[0] for run in (whole, resumed))
    assert {name: array.tobytes() for name, array in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}
    assert rows_of(whole)[-1]["train/loss/total"] == rows_of(resumed)[-1]["train/loss/total"]


def test_a_budget_or_a_schedule_of_the_other_clock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_env_steps"):
        api.train(REF, runs_dir=tmp_path, max_env_steps=1000)
    with pytest.raises(ConfigError, match="counts env_steps, and this algorithm trains for max_updates"):
        api.train(REF, runs_dir=tmp_path, policy_lr={"start": 1.0, "end": 0.0, "clock": "env_steps"})
    assert not any(tmp_path.iterdir()), "before anything is written"


def test_the_config_has_no_environments_to_step() -> None:
    config = api.config(REF)
    assert isinstance(config, RunConfig) and config.clock == "updates" and not hasattr(config, "n_envs")
