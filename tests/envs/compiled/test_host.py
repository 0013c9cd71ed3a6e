"""A pure environment on the host: seeds, limits, thresholds, and everything that steps one environment at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import describe, make_engine, make_env
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.errors import ConfigError

NOISY = """
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces


class Noisy:
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-2, 2, (1,), np.float32)
    max_episode_steps = 6
    reward_threshold = 1.5

    def __init__(self, push=1.0):
        self.push = push

    def initial(self, rng):
        return jax.random.normal(rng, (2,))

    def transition(self, state, action, rng):
        return state + self.push * action + 0.1 * jax.random.normal(rng, (2,))

    def observation(self, state, rng):
        return state

    def reward(self, state, action, next_state, rng):
        return -jnp.abs(next_state).sum() + jax.random.uniform(rng)

    def terminal(self, state, rng):
        return jnp.abs(state).max() > 4


def noisy(push=1.0):
    return Noisy(push)
"""
Write = Callable[[str], str]


@pytest.fixture
def name(written: Write) -> str:
    return written(NOISY)


def config(env_id: str, **fields: Any) -> PPOConfig:
    return PPOConfig(env_id=env_id, **{"n_envs": 1, "batch_size": 1.0, **fields})


def played(env: gym.Env, seed: int, episodes: int = 3) -> list[Any]:
    rng, seen = np.random.default_rng(1), []
    for episode in range(episodes):
        obs, _ = env.reset(seed=seed if episode == 0 else None)
        seen.append(obs)
        over = False
        while not over:
            obs, reward, terminated, truncated, _ = env.step(rng.uniform(-1, 1, 1).astype(np.float32))
            seen += [obs, reward, terminated, truncated]
            over = terminated or truncated
    return [np.asarray(entry).tolist() for entry in seen]


def test_a_seed_fixes_all_episodes_and_another_changes_them(name: str) -> None:
    env, other = build_env(config(f"{name}:Noisy")), build_env(config(f"{name}:Noisy"))
    first = played(env, 3)
    assert played(other, 3) == first == played(env, 3)
    assert played(env, 4) != first


def test_limit_and_threshold_come_from_the_class_unless_the_config_has_its_own(name: str) -> None:
    spec = describe(config(f"{name}:Noisy"))
    assert (spec.max_episode_steps, spec.reward_threshold) == (6, 1.5)
    spec = describe(config(f"{name}:Noisy", max_episode_steps=9, reward_threshold=2.0))
    assert (spec.max_episode_steps, spec.reward_threshold) == (9, 2.0)
    env = build_env(config(f"{name}:Noisy", max_episode_steps=2))
    env.reset(seed=0)
    assert [env.step(np.zeros(1, np.float32))[3] for _ in range(2)] == [False, True]


def test_its_observations_and_actions_are_those_of_its_spaces(name: str) -> None:
    env = build_env(config(f"{name}:Noisy"))
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space
    obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert obs in env.observation_space and info == {}
    assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)


@pytest.mark.parametrize("made", ["Noisy", "noisy"], ids=["class", "function"])
def test_arguments_reach_it(name: str, made: str) -> None:
    pushed, still = (build_env(config(f"{name}:{made}", env_kwargs={"push": push})) for push in (1.0, 0.0))
    action = np.ones(1, np.float32)
    for env in (pushed, still):
        env.reset(seed=0)
    assert np.allclose(pushed.step(action)[0] - still.step(action)[0], 1)


def test_engines_and_wrappers_take_it_like_any_other(name: str) -> None:
    engine = make_engine(config(f"{name}:Noisy", env_wrappers=["time_aware"]), 5, on_host=True)
    assert engine.spec.engine == "gymnasium/sync" and engine.spec.obs_shape == (3,)
    first = engine.reset(1)[0].copy()
    assert len({tuple(row) for row in first}) == 5, "one instance, unrelated seeds"
    assert np.array_equal(engine.reset(1)[0], first)
    engine.close()
    view = make_env(config(f"{name}:Noisy"))
    assert view.reset(seed=0)[0].dtype == np.float32
    view.close()


@pytest.mark.integration
def test_worker_processes_step_it_too(name: str) -> None:
    streams = []
    for vectorization in ("sync", "async"):
        engine = make_engine(config(f"{name}:Noisy", vectorization=vectorization), 4, on_host=True)
        assert engine.spec.engine == f"gymnasium/{vectorization}"
        rows = [engine.reset(5)[0].copy()]
        rows += [engine.step(np.zeros((4, 1), np.float32)).obs.copy() for _ in range(8)]
        streams.append(np.array(rows))
        engine.close()
    assert np.array_equal(*streams)


def test_it_cannot_be_drawn_and_says_so(name: str) -> None:
    with pytest.raises(ConfigError, match=r"pure environment and cannot be drawn; write it as a gymnasium\.Env"):
        build_env(config(f"{name}:Noisy"), render_mode="rgb_array")


def test_an_impure_one_is_refused_before_anything_is_built(written: Write) -> None:
    name = written(NOISY.replace("return state + self.push", "self.push += 1; return state + self.push"))
    with pytest.raises(ConfigError, match=rf"{name}:Noisy is not pure: transition\(\) changes self.push"):
        describe(config(f"{name}:Noisy"))


def test_a_wrong_argument_is_the_arguments_fault(name: str) -> None:
    with pytest.raises(ConfigError, match=r"env_kwargs: \{'pull': 2\} does not fit"):
        describe(config(f"{name}:Noisy", env_kwargs={"pull": 2}))


def test_the_pure_environment_that_the_docs_show(written: Write) -> None:
    page = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n# mypure.py\n(.*?)```", page, re.DOTALL)
    env = build_env(config(f"{written(code)}:Corridor", env_kwargs={"length": 3}))
    env.reset(seed=0)
    outcomes = [env.step(1)[1:4] for _ in range(3)]
    assert outcomes == [(pytest.approx(-0.01), False, False)] * 2 + [(1.0, True, False)]
