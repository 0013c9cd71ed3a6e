"""Configurations that are solved on nearly every seed within seconds on one core: what a fault is planted into.

Each starts from a shipped configuration with a shorter budget. Engines are Gymnasium's own throughout, because only
those can be wrapped unseen, so a clean run and a broken one of the same reference differ in nothing but the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gymnasium_solver.config.load import load_config
from gymnasium_solver.config.schema import Config

# Checkpoints on the way are not looked at by diagnosis; the last and the best one are written all the same.
_COMMON: dict[str, Any] = {"engine": "gymnasium", "eval_episodes": 20, "checkpoint_freq_epochs": 100_000}


@dataclass(frozen=True)
class Reference:
    name: str
    ref: str  # shipped ENV:VARIANT
    floor: float  # return of a policy that has learnt nothing: by chance, or by doing nothing if that is better
    threshold: float
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def env_id(self) -> str:
        return self.ref.rpartition(":")[0]

    @property
    def algo_id(self) -> str:
        return self.ref.rpartition(":")[2]

    def overrides(self) -> dict[str, Any]:
        return {**_COMMON, "reward_threshold": self.threshold, **self.fields}

    def config(self, overrides: Mapping[str, Any], seed: int) -> Config:
        return load_config(self.ref, {**self.overrides(), **overrides, "seed": seed}, asked=True)

    def score(self, reward: float) -> float:
        """0: nothing learnt, 1: at the threshold or beyond."""
        return min(1.0, max(-0.5, (reward - self.floor) / (self.threshold - self.floor)))


_REPLAY_PENDULUM = {"max_env_steps": 8_000, "n_steps": 100, "eval_freq_epochs": 2}
_LAKE = {"max_env_steps": 60_000, "eval_episodes": 100}
_DRY_LAKE = {"max_env_steps": 20_000, "env_kwargs": {"is_slippery": False}, "learning_starts": 1000}

REFERENCES = {
    reference.name: reference
    for reference in (
        Reference("ppo-cartpole", "CartPole-v1:ppo", 22.0, 475, {"max_env_steps": 50_000}),
        Reference("ppo-sampled", "CartPole-v1:ppo", 22.0, 450, {"max_env_steps": 60_000, "eval_deterministic": False}),
        Reference("ppo-acrobot", "Acrobot-v1:ppo", -500.0, -110, {"max_env_steps": 70_000}),
        Reference("ppo-pendulum", "Pendulum-v1:ppo", -1220.0, -200, {"max_env_steps": 60_000}),
        Reference("ppo-cliffwalking", "CliffWalking-v1:ppo", -200.0, -13, {"max_env_steps": 90_000}),
        Reference("a2c-cartpole", "CartPole-v1:a2c", 22.0, 450, {"max_env_steps": 200_000}),
        Reference("a2c-sampled", "CartPole-v1:a2c", 22.0, 400, {"max_env_steps": 200_000, "eval_deterministic": False}),
        Reference("reinforce-cartpole", "CartPole-v1:reinforce", 22.0, 475, {"max_env_steps": 200_000}),
        Reference("dqn-cartpole", "CartPole-v1:dqn", 22.0, 190, {"max_env_steps": 25_000, "hidden_dims": [64, 64]}),
        Reference("dqn-frozenlake", "FrozenLake-v1:dqn", 0.014, 0.95, _DRY_LAKE),
        Reference("sac-pendulum", "Pendulum-v1:sac", -1220.0, -200, _REPLAY_PENDULUM),
        Reference("td3-pendulum", "Pendulum-v1:td3", -1220.0, -200, _REPLAY_PENDULUM),
        Reference("ddpg-pendulum", "Pendulum-v1:ddpg", -1220.0, -200, _REPLAY_PENDULUM),
        Reference("q-cliffwalking", "CliffWalking-v1:q_learning", -200.0, -13, {"max_env_steps": 30_000}),
        Reference("q-frozenlake", "FrozenLake-v1:q_learning", 0.014, 0.65, _LAKE),
    )
}
