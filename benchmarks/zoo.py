"""The settings of RL Baselines3 Zoo, once, so that every library is measured with the same ones.

`settings` and `policy` hold SB3's own argument names; `linear` lists those of `settings` that the zoo anneals to zero.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    env_id: str
    algorithm: str  # ppo, dqn or sac
    n_envs: int
    max_env_steps: int
    trial_steps: int  # of a run that only finds out which number of torch threads is faster
    settings: dict[str, Any]
    solved_at: float | None = None
    linear: frozenset[str] = frozenset()
    normalize: bool = False
    hidden_dims: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    policy: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """PPO's is the environment alone."""
        return f"{self.env_id} {self.algorithm.upper()}" if self.is_off_policy else self.env_id

    @property
    def is_off_policy(self) -> bool:
        return self.algorithm != "ppo"

    @property
    def rollout(self) -> int:
        """Env steps between updates."""
        return self.n_envs * self.settings["train_freq" if self.is_off_policy else "n_steps"]

    def warm_from(self, steps: int) -> float:
        """Where in a run of so many env steps the speed is taken from: random actions that nothing is learnt from are
        over, and so is a tenth of the rest (compilation, caches)."""
        begin = self.settings.get("learning_starts", 0)
        return begin + (steps - begin) / 10


TASKS: dict[str, Task] = {
    "cartpole": Task(
        env_id="CartPole-v1",
        algorithm="ppo",
        n_envs=8,
        max_env_steps=100_000,
        trial_steps=12_000,
        solved_at=475.0,
        settings={
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
        algorithm="ppo",
        n_envs=16,
        max_env_steps=1_000_000,
        trial_steps=32_768,
        solved_at=200.0,
        settings={
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
        algorithm="ppo",
        n_envs=1,
        max_env_steps=1_000_000,
        trial_steps=4_000,
        settings={
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
    "cartpole-dqn": Task(
        env_id="CartPole-v1",
        algorithm="dqn",
        n_envs=1,
        max_env_steps=50_000,
        trial_steps=4_000,
        settings={
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
        hidden_dims=(256, 256),
        activation="relu",
    ),
    "pendulum-sac": Task(
        env_id="Pendulum-v1",
        algorithm="sac",
        n_envs=1,
        max_env_steps=100_000,  # the zoo stops at 20,000, which would be before the time that a peer is given
        trial_steps=600,
        solved_at=-200.0,
        settings={
            "learning_rate": 1e-3,
            "batch_size": 256,
            "buffer_size": 1_000_000,
            "learning_starts": 100,
            "gamma": 0.99,
            "tau": 0.005,
            "train_freq": 1,
            "gradient_steps": 1,
            "ent_coef": "auto",
        },
        hidden_dims=(256, 256),
        activation="relu",
    ),
    "halfcheetah-sac": Task(
        env_id="HalfCheetah-v5",
        algorithm="sac",
        n_envs=1,
        max_env_steps=1_000_000,
        trial_steps=1_400,
        settings={
            "learning_rate": 3e-4,
            "batch_size": 256,
            "buffer_size": 1_000_000,
            "learning_starts": 1000,  # 10,000 in the zoo; these steps are not measured
            "gamma": 0.99,
            "tau": 0.005,
            "train_freq": 1,
            "gradient_steps": 1,
            "ent_coef": "auto",
        },
        hidden_dims=(256, 256),
        activation="relu",
    ),
}


SB3_DEFAULTS: dict[str, dict[str, Any]] = {
    "ppo": {"learning_rate": 3e-4, "clip_range": 0.2, "max_grad_norm": 0.5, "vf_coef": 0.5},
    "dqn": {"tau": 1.0, "max_grad_norm": 10.0, "exploration_initial_eps": 1.0},
    "sac": {"max_grad_norm": None},
}

# What SB3 does not have, switched off, and what it does not leave open, as it does it: shipped variants may differ.
_AS_SB3 = {
    "optimizer": "adam",
    "optimizer_eps": 1e-8,
    "weight_decay": 0.0,
    "value_lr": None,
    "precision": "float32",
    "network": "mlp",
    "n_step": 1,
    "prioritized_replay": False,
    "layer_norm": False,
    "reset_interval": None,
    "bonus": "none",
    "env_kwargs": {},
    "env_wrappers": [],
    "max_episode_steps": None,
    "frame_skip": 1,
    "frame_stack": 1,
    "rescale_actions": True,
}
AS_SB3: dict[str, dict[str, Any]] = {
    "ppo": {},
    "dqn": _AS_SB3 | {"double": False, "dueling": False, "value_loss": "huber"},
    "sac": _AS_SB3
    | {
        "n_critics": 2,
        "ent_coef_init": 1.0,
        "ent_coef_lr": None,
        "target_entropy": "auto",
        "use_sde": False,
        "log_std_init": 0.0,
    },
}


def our_overrides(task: Task) -> list[str]:
    """The task's settings as `FIELD=VALUE` overrides of our configuration, every one spelled out."""
    settings = SB3_DEFAULTS[task.algorithm] | task.settings
    for name in task.linear:
        settings[name] = {"start": settings[name], "end": 0, "schedule": "linear"}
    ours = AS_SB3[task.algorithm] | {
        "n_envs": task.n_envs,
        "policy_lr": settings.pop("learning_rate"),
        "hidden_dims": task.hidden_dims,
        "activation": task.activation,
        "normalize_obs": task.normalize,
        "normalize_reward": task.normalize,
    }
    if task.algorithm == "ppo":
        ours["log_std_init"] = task.policy.get("log_std_init", 0.0)
        ours["ortho_init"] = task.policy.get("ortho_init", True)
    else:
        ours["update_to_data"] = settings.pop("gradient_steps") / task.rollout
    if task.algorithm == "dqn":
        ours["epsilon"] = {
            "start": settings.pop("exploration_initial_eps"),
            "end": settings.pop("exploration_final_eps"),
            "to": settings.pop("exploration_fraction"),
        }
    return [f"{name}={json.dumps(value)}" for name, value in (ours | settings).items()]
