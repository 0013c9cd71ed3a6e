"""The settings of RL Baselines3 Zoo for PPO, once, so that every library is measured with the same ones.

`ppo` and `policy` hold SB3's own argument names; `linear` lists those of `ppo` that the zoo anneals to zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    env_id: str
    n_envs: int
    max_env_steps: int
    ppo: dict[str, Any]
    solved_at: float | None = None
    linear: frozenset[str] = frozenset()
    normalize: bool = False
    hidden_dims: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    policy: dict[str, Any] = field(default_factory=dict)


TASKS: dict[str, Task] = {
    "cartpole": Task(
        env_id="CartPole-v1",
        n_envs=8,
        max_env_steps=100_000,
        solved_at=475.0,
        ppo={
            "n_steps": 32,
            "batch_size": 256,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.8,
            "ent_coef": 0.0,
            "learning_rate": 0.001,
            "clip_range": 0.2,
        },
        linear=frozenset({"learning_rate", "clip_range"}),
    ),
    "lunarlander": Task(
        env_id="LunarLander-v3",
        n_envs=16,
        max_env_steps=1_000_000,
        solved_at=200.0,
        ppo={
            "n_steps": 1024,
            "batch_size": 64,
            "n_epochs": 4,
            "gamma": 0.999,
            "gae_lambda": 0.98,
            "ent_coef": 0.01,
        },
    ),
    "halfcheetah": Task(
        env_id="HalfCheetah-v5",
        n_envs=1,
        max_env_steps=1_000_000,
        ppo={
            "n_steps": 512,
            "batch_size": 64,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.92,
            "ent_coef": 0.000401762,
            "learning_rate": 2.0633e-05,
            "clip_range": 0.1,
            "max_grad_norm": 0.8,
            "vf_coef": 0.58096,
        },
        normalize=True,
        hidden_dims=(256, 256),
        activation="relu",
        policy={"log_std_init": -2.0, "ortho_init": False},
    ),
}


SB3_DEFAULTS = {"learning_rate": 3e-4, "clip_range": 0.2, "max_grad_norm": 0.5, "vf_coef": 0.5}


def our_overrides(task: Task) -> list[str]:
    """The task's settings as `FIELD=VALUE` overrides of our configuration, every one spelled out."""
    ours: dict[str, Any] = {"n_envs": task.n_envs}
    for name, value in (SB3_DEFAULTS | task.ppo).items():
        scheduled = f"{{start: {value}, end: 0, schedule: linear}}" if name in task.linear else value
        ours["policy_lr" if name == "learning_rate" else name] = scheduled
    ours |= {
        "hidden_dims": list(task.hidden_dims),
        "activation": task.activation,
        "normalize_obs": str(task.normalize).lower(),
        "normalize_reward": str(task.normalize).lower(),
        "log_std_init": task.policy.get("log_std_init", 0.0),
        "ortho_init": str(task.policy.get("ortho_init", True)).lower(),
    }
    return [f"{name}={value}" for name, value in ours.items()]
