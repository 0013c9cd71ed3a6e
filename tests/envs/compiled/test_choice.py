"""When the compiled engine is chosen, and what is said where it cannot be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gymnasium_solver.config.cards import card_of
from gymnasium_solver.config.schema import DQNConfig, PPOConfig
from gymnasium_solver.envs import describe, make_engine
from gymnasium_solver.envs.compiled import choice
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.train.session import train

MINE = """
import jax.numpy as jnp
from gymnasium import spaces


class Still:
    observation_space = spaces.Box(-1, 1, (1,))
    action_space = spaces.Discrete(2)

    def initial(self, rng):
        return jnp.zeros(1)

    def transition(self, state, action, rng):
        return state

    def observation(self, state, rng):
        return state

    def reward(self, state, action, next_state, rng):
        return 1.0

    def terminal(self, state, rng):
        return False


def still():
    return Still()
"""


@pytest.fixture
def name(written: Callable[[str], str]) -> str:
    return written(MINE)


def config(env_id: str, **fields: Any) -> PPOConfig:
    return PPOConfig(env_id=env_id, **{"n_envs": 1, "batch_size": 1.0, **fields})


def test_compiled_when_asked_for(name: str) -> None:
    for env_id in (f"{name}:Still", f"{name}:still", "CartPole-v1", "gymnasium_solver.envs.compiled.probes:Bandit"):
        engine = make_engine(config(env_id, engine="compiled", max_episode_steps=7), 3)
        assert (engine.spec.engine, engine.n_envs, engine.spec.max_episode_steps) == ("compiled", 3, 7)
        engine.close()


def test_evaluation_and_own_stepping_stay_on_the_host(name: str) -> None:
    for env_id in (f"{name}:Still", "CartPole-v1"):
        asked = config(env_id, engine="compiled")
        for where in ({"evaluation": True}, {"on_host": True}):
            engine = make_engine(asked, 2, **where)
            assert engine.spec.engine == "gymnasium/sync"
            engine.close()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"env_id": "FrozenLake-v1"}, "no compiled version of it; use engine: auto, or one of CartPole-v1, Acrobot-v1"),
        ({"env_id": "gymnasium_solver.envs.probes:Bandit"}, "no pure environment; write it with the methods initial"),
        ({"env_kwargs": {"sutton_barto_reward": True}}, "takes no env_kwargs"),
        ({"env_wrappers": ["time_aware"]}, "takes no env_wrappers"),
        ({"frame_stack": 2}, "takes no env_wrappers, frame_skip or frame_stack"),
        ({"frame_skip": 2}, "takes no env_wrappers, frame_skip or frame_stack"),
        ({"bonus": "rnd"}, "adds no bonus; use bonus: none"),
        ({"algo": DQNConfig, "prioritized_replay": True}, "no prioritised replay; use prioritized_replay: false"),
        ({"algo": DQNConfig, "replay_device": "host"}, "use replay_device: auto"),
    ],
)
def test_what_stands_in_the_way_is_said_with_the_remedy(fields: dict[str, Any], said: str) -> None:
    fields = {"env_id": "CartPole-v1", "engine": "compiled", **fields}
    with pytest.raises(ConfigError, match=f"engine: compiled cannot run {fields['env_id']}: .*{said}"):
        describe(fields.pop("algo", PPOConfig)(**fields))


def test_an_id_registered_with_other_rules_has_no_compiled_version(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gym.spec("CartPole-v1")
    other = gym.envs.registration.EnvSpec(
        "CartPole-v1", "gymnasium_solver.envs.probes:ConstantReward", max_episode_steps=spec.max_episode_steps
    )
    monkeypatch.setitem(gym.registry, "CartPole-v1", other)
    with pytest.raises(ConfigError, match="no compiled version"):
        describe(config("CartPole-v1", engine="compiled"))


def test_an_algorithm_with_a_feed_of_its_own_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    card = dataclasses.replace(card_of("ppo"), feed="somewhere:make_feed")
    monkeypatch.setattr(choice, "card_of", lambda algo_id: card)
    with pytest.raises(ConfigError, match="the compiled engine does not serve ppo; use engine: auto"):
        describe(config("CartPole-v1", engine="compiled"))
    assert describe(config("CartPole-v1")).engine.startswith("gymnasium/")


@pytest.mark.integration
def test_a_run_stays_on_the_engine_that_it_began_with(tmp_path: Path) -> None:
    small = {"n_envs": 2, "n_steps": 16, "batch_size": 1.0, "max_env_steps": 32, "eval_episodes": 1}
    run = train(config("CartPole-v1", engine="gymnasium", **small), runs_dir=tmp_path, command=["test"], report=False)
    with pytest.raises(ConfigError, match=r"engine cannot change in mid-run .*; start a new run"):
        train(resume=run.run_id, overrides={"engine": "compiled", "max_env_steps": 64}, runs_dir=tmp_path)
