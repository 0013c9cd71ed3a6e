"""Training on the compiled engine: the same columns, budgets, faults and files as on the host."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import make_engine
from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.errors import ConfigError, EnvironmentFault
from gymnasium_solver.runs.reader import find_run
from gymnasium_solver.train.compiled_feeds import epochs_per_row
from gymnasium_solver.train.session import train

pytestmark = pytest.mark.integration

train = partial(train, report=False, command=[])
SMALL: dict[str, Any] = {
    "engine": "compiled",
    "n_envs": 4,
    "n_steps": 16,
    "max_env_steps": 4000,
    "hidden_dims": [8],
    "eval_episodes": 2,
    "max_episode_steps": 20,
    "reward_threshold": 1e9,
}
PPO = {"batch_size": 32, "n_epochs": 2}
REPLAY = {"train_freq": 4, "learning_starts": 100, "batch_size": 8, "update_to_data": 0.25, "buffer_size": 500}


class Counting(NamedTuple):
    """Counts its steps; the action is what is paid."""

    time: jax.Array


class Counter:
    observation_space = gym.spaces.Box(-100.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, ends_at: int = 7, breaks_at: int = 1000, what: str = "obs") -> None:
        self.ends_at, self.breaks_at, self.what = ends_at, breaks_at, what

    def initial(self, rng: Any) -> Counting:
        return Counting(jnp.zeros(()))

    def transition(self, state: Counting, action: Any, rng: Any) -> Counting:
        return Counting(state.time + 1)

    def observation(self, state: Counting, rng: Any) -> Any:
        broken = (self.what == "obs") & (state.time >= self.breaks_at)
        return jnp.where(broken, jnp.nan, state.time)[None]

    def reward(self, state: Counting, action: Any, next_state: Counting, rng: Any) -> Any:
        broken = (self.what == "reward") & (next_state.time >= self.breaks_at)
        return jnp.where(broken, jnp.inf, action[0])

    def terminal(self, state: Counting, rng: Any) -> Any:
        return state.time >= self.ends_at


def counter(algorithm: str = "ppo", **fields: Any) -> Any:
    return load_config(f"{__name__}:Counter:{algorithm}", SMALL | fields)


def columns_of(engine: Any, actions: np.ndarray) -> dict[str, np.ndarray]:
    """What steps with these actions [T, N, …] bring, as the host's engines and the compiled one say it."""
    rows: list[dict[str, np.ndarray]] = []
    if isinstance(engine, CompiledEngine):
        rng, standing = np.random.default_rng(0), engine.begin()
        for action in (actions[0], *actions):
            seen = np.asarray(standing.obs)
            standing, row = engine.step(standing, action, engine.draw_keys(rng))
            rows.append({"obs": seen, **{name: np.asarray(x) for name, x in row.items()}})
        assert not rows.pop(0)["valid"].any()  # it only resets, as `reset` does on the host
    else:
        seen, _ = engine.reset(0)
        resetting = np.zeros(engine.n_envs, bool)
        for action in actions:
            rows.append({"obs": seen.copy(), "valid": ~resetting})
            step = engine.step(action)
            resetting, seen = step.terminated | step.truncated, step.obs
            rows[-1] |= {"reward": step.reward.copy(), "terminated": step.terminated.copy()}
            rows[-1]["truncated"] = step.truncated.copy()
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("limit", [None, 5, 7])
def test_episodes_end_and_begin_as_on_the_host(limit: int | None) -> None:
    """Autoreset, time limit and flags, where a limit is missing, cuts an episode short, or falls on its ending."""
    config = counter(**PPO, max_episode_steps=limit)
    actions = np.random.default_rng(1).uniform(-1, 1, (40, 3, 1)).astype(np.float32)
    ours = columns_of(make_engine(config, 3), actions)
    hosts = columns_of(make_engine(config, 3, on_host=True), actions)
    assert ours.keys() == hosts.keys()
    for name in hosts:
        np.testing.assert_array_equal(ours[name], hosts[name], err_msg=name)
    assert hosts["terminated"].any() == (limit != 5)


def test_environments_differ_and_the_same_keys_repeat_them() -> None:
    engine = make_engine(load_config("CartPole-v1:ppo", SMALL | PPO), 4)
    assert isinstance(engine, CompiledEngine)

    def first(seed: int) -> np.ndarray:
        keys = engine.draw_keys(np.random.default_rng(seed))
        return np.asarray(engine.step(engine.begin(), np.zeros(4, np.int32), keys)[0].obs)

    np.testing.assert_array_equal(first(0), first(0))
    assert len(np.unique(np.concatenate([first(0), first(1)]), axis=0)) == 8


def test_short_rollouts_share_a_row_and_the_budget_is_met_within_one(tmp_path: Path) -> None:
    config = load_config(
        "CartPole-v1:ppo", {**SMALL, **PPO, "max_env_steps": 9000, "n_steps": 8, "eval_freq_epochs": 40}
    )
    assert epochs_per_row(config) == 5  # of 281 epochs, at least 40 rows, and evaluations fall on the end of one
    run = train(config, runs_dir=tmp_path)
    epochs, steps = run.metrics["train/cnt/epochs"], run.metrics["train/cnt/env_steps"]
    assert set(np.diff(epochs)[:-5]) == {5.0}
    assert 9000 <= steps[-1] < 9000 + config.rollout
    evaluated = epochs[np.isfinite(run.metrics["val/roll/ep_rew_mean"])]
    assert set(evaluated[:-1] % 40) == {0.0}
    # Every epoch has its own learning rate; the row shows the one in its middle.
    assert run.metrics["train/cnt/updates"][0] == 5 * config.n_epochs * (config.rollout // 32)


def test_a_run_of_few_epochs_has_a_row_for_each() -> None:
    assert epochs_per_row(load_config("CartPole-v1:ppo", SMALL | PPO | {"max_env_steps": 2000})) == 1


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
@pytest.mark.parametrize(("what", "message"), [("obs", "non-finite obs (nan"), ("reward", "non-finite reward (inf")])
def test_what_is_no_number_is_refused_and_never_learnt_from(
    algorithm: str, what: str, message: str, tmp_path: Path
) -> None:
    fields = PPO if algorithm == "ppo" else REPLAY
    healthy = {"ends_at": 30, "breaks_at": 18, "what": what}
    config = counter(algorithm, **fields, max_episode_steps=40, env_kwargs=healthy)
    with pytest.raises(EnvironmentFault, match=re.escape(message)):
        train(config, runs_dir=tmp_path)
    run = find_run("@last", tmp_path)
    assert run.status["status"] == "failed"
    arrays, _ = run.read_checkpoint("last")
    learner = {name: array for name, array in arrays.items() if not name.startswith("environments/")}
    kept = {name: array for name, array in learner.items() if not name.startswith("replay/")}
    assert kept and all(np.isfinite(array).all() for array in kept.values())
    if algorithm == "sac":  # what is not finite is there, and is never drawn
        usable = learner["replay/valid"]
        assert np.isfinite(learner["replay/obs"][usable]).all() and np.isfinite(learner["replay/reward"][usable]).all()


def test_metrics_are_those_of_the_host(tmp_path: Path) -> None:
    for ref, fields in (("CartPole-v1:ppo", PPO), ("Pendulum-v1:sac", REPLAY)):
        runs = {
            engine: train(load_config(ref, SMALL | fields | {"engine": engine}), runs_dir=tmp_path / engine)
            for engine in ("compiled", "gymnasium")
        }
        compiled, host = (set(run.metrics) for run in runs.values())
        assert compiled == host
        assert runs["compiled"].config["engine"] == "compiled"


def test_random_actions_come_before_learning_and_updates_after_it(tmp_path: Path) -> None:
    run = train(load_config("Pendulum-v1:sac", SMALL | REPLAY | {"max_env_steps": 400}), runs_dir=tmp_path)
    updates, steps = run.metrics["train/cnt/updates"], run.metrics["train/cnt/env_steps"]
    assert updates[0] == 0 and steps[0] == 60  # the first step of each environment resets
    per_step = np.diff(updates)[2:] / np.diff(steps)[2:]
    np.testing.assert_allclose(per_step, 0.25, rtol=0.1)  # but for steps that only reset


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env_wrappers": ["flatten"]}, "env_wrappers"),
        ({"bonus": "rnd"}, "bonus"),
        ({"env_kwargs": {"sutton_barto_reward": True}}, "env_kwargs"),
    ],
)
def test_what_it_does_not_serve_is_refused_before_anything_is_written(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    config = load_config("CartPole-v1:ppo", SMALL | PPO | fields)
    with pytest.raises(ConfigError, match=f"engine: compiled cannot run CartPole-v1: .*{message}"):
        train(config, runs_dir=tmp_path)
    assert not list(tmp_path.iterdir())
    automatic = make_engine(config.model_copy(update={"engine": "auto", "env_wrappers": []}), 4)
    assert automatic.spec.engine.startswith("gymnasium") == ("env_wrappers" not in fields)
