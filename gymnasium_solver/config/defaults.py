"""Sensible fields for an environment that has no file, from what its spaces look like."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from importlib import import_module
from inspect import isclass, isfunction
from typing import Any

import numpy as np

PPO_VECTOR = {
    "n_envs": 16,
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 10,
    "ent_coef": 0.01,
    "policy_lr": {"start": 1e-3, "end": 1e-4, "schedule": "linear"},
}
PPO_CONTINUOUS = {
    **PPO_VECTOR,
    "ent_coef": 0.0,
    "policy_lr": {"start": 5e-4, "end": 5e-5, "schedule": "linear"},
    "normalize_obs": True,
    "normalize_reward": True,
}
# The settings most Atari results are reported with.
PPO_IMAGE = {
    "n_envs": 8,
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "ent_coef": 0.01,
    "clip_range": 0.1,
    "policy_lr": 2.5e-4,
    "shared_network": True,
    "hidden_dims": [512],
    "activation": "relu",
}
A2C = {"n_envs": 16, "n_steps": 16, "ent_coef": 0.01, "policy_lr": 1e-3, "gae_lambda": 0.95}
REINFORCE = {"n_envs": 16, "n_steps": 256, "policy_lr": 3e-3, "ent_coef": 0.01}
REPLAY = {
    "n_envs": 4,
    "train_freq": 4,
    "update_to_data": 0.5,
    "batch_size": 128,
    "buffer_size": 300_000,
    "learning_starts": 2000,
    "hidden_dims": [128, 128],
    "policy_lr": 1e-3,
}
DQN = {
    **REPLAY,
    "target_update_interval": 1000,
    "policy_lr": {"start": 1e-3, "end": 1e-4, "schedule": "linear"},
    "epsilon": {"start": 1.0, "end": 0.05, "to": 0.15},
}
# As most Atari results are reported with, but for a replay that fits into the memory of most machines.
DQN_IMAGE = {
    "n_envs": 8,
    "train_freq": 4,
    "update_to_data": 0.25,
    "batch_size": 32,
    "buffer_size": 100_000,
    "learning_starts": 20_000,
    "hidden_dims": [512],
    "policy_lr": 1e-4,
    "target_update_interval": 8000,
    "epsilon": {"start": 1.0, "end": 0.01, "to": 0.1},
}
ACTOR_CRITIC_REPLAY = {**REPLAY, "batch_size": 256, "tau": 0.005}
TABLE = {"n_envs": 4, "n_steps": 64, "policy_lr": {"start": 0.3, "end": 0.05}}
TABULAR = ("q_learning", "sarsa")


def default_fields(env_id: str, algo_id: str, env_kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Fields beyond the schema's own defaults."""
    picture, continuous, limit = _look_at(env_id, env_kwargs or {})
    fields = fields_for(algo_id, bool(picture), continuous, limit)
    if picture and env_id.startswith("ALE/") and algo_id not in TABULAR:
        # As most results are reported with: a fourteenth of the numbers, and four frames show what moves where.
        grey = ["grey"] if len(picture) == 3 else []
        fields |= {"env_wrappers": [*grey, {"resize": 84}], "frame_stack": 4}
    return fields


def fields_for(algo_id: str, image: bool, continuous: bool, limit: int | None) -> dict[str, Any]:
    """The same for spaces that are known: images, Box actions, and how long an episode lasts at most."""
    by_algorithm: dict[str, dict[str, Any]] = {
        "ppo": PPO_IMAGE if image else PPO_CONTINUOUS if continuous else PPO_VECTOR,
        "a2c": A2C,
        "reinforce": REINFORCE,
        "dqn": DQN_IMAGE if image else DQN,
        **dict.fromkeys(("ddpg", "td3", "sac"), ACTOR_CRITIC_REPLAY),
        **dict.fromkeys(TABULAR, TABLE),
    }
    fields = dict(by_algorithm.get(algo_id, {}))
    if algo_id in ("a2c", "reinforce") and continuous:
        fields |= {"normalize_obs": True, "normalize_reward": True, "ent_coef": 0.0}
    if algo_id in ("a2c", "reinforce") and image:
        fields |= {"shared_network": True, "hidden_dims": [512], "activation": "relu"}
    if algo_id == "reinforce" and limit:
        fields["n_steps"] = min(limit, 1000)  # a rollout holds whole episodes
    return fields


def _make(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    import gymnasium

    module, separator, name = env_id.partition(":")
    made_by = getattr(import_module(module), name, None) if separator else None
    if isfunction(made_by) or (isclass(made_by) and issubclass(made_by, gymnasium.Env)):  # not just anything: os:abort
        return made_by(**env_kwargs)
    if env_id.startswith(("MiniGrid-", "BabyAI-")):
        import_module("minigrid")
    return gymnasium.make(env_id, **env_kwargs)


def _look_at(env_id: str, env_kwargs: Mapping[str, Any]) -> tuple[tuple[int, ...], bool, int | None]:
    """(shape of its images, continuous actions?, time limit); one that cannot be made is judged later, with its
    error."""
    import gymnasium
    from gymnasium.spaces import Box

    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if env_id.startswith("ALE/"):
            import ale_py

            gymnasium.register_envs(ale_py)
        env = _make(env_id, env_kwargs)
        observation, action = env.observation_space, env.action_space
        limit = env.spec.max_episode_steps if env.spec else None
        env.close()
        image = isinstance(observation, Box) and observation.dtype == np.uint8 and len(observation.shape) in (2, 3)
        image = image and sorted(observation.shape)[-2] >= 20  # height and width, whichever way the channels lie
        return observation.shape if image else (), isinstance(action, Box), limit
    return (), False, None
