"""What a rollout of another library says about observations, rewards and actions, under the names of our catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np

DEAD = 1e-8  # variance of an observation dimension that carries nothing
MANY = 1 << 20  # numbers; of a larger rollout (images) every so many-th step is looked at


def rollout_statistics(buffer: Any) -> dict[str, float]:
    """Of arrays [steps, environments, …] called rewards, returns, advantages, values, observations, actions."""
    found: dict[str, float] = {}
    for name, ours in (("rewards", "reward"), ("returns", "return"), ("advantages", "advantage"), ("values", "value")):
        array = getattr(buffer, name, None)
        if isinstance(array, np.ndarray) and array.size:
            found |= {f"train/data/{ours}_mean": float(array.mean()), f"train/data/{ours}_std": float(array.std())}
    rewards = getattr(buffer, "rewards", None)
    if isinstance(rewards, np.ndarray) and rewards.size:
        found["train/data/reward_min"], found["train/data/reward_max"] = float(rewards.min()), float(rewards.max())
        found["train/data/reward_zero_share"] = float((rewards == 0).mean())
    observations = getattr(buffer, "observations", None)
    if isinstance(observations, np.ndarray) and observations.size and observations.ndim > 2:
        found |= _observations(observations)
    actions = getattr(buffer, "actions", None)
    if isinstance(actions, np.ndarray) and actions.size:
        found |= _actions(actions, getattr(buffer, "action_space", None))
    return found


def _observations(observations: np.ndarray) -> dict[str, float]:
    every = -(-observations.size // MANY)
    flat = observations[::every].reshape(-1, int(np.prod(observations.shape[2:]))).astype(np.float64)
    return {
        "train/data/obs_mean": float(flat.mean()),
        "train/data/obs_std": float(flat.std()),
        "train/data/obs_min": float(flat.min()),
        "train/data/obs_max": float(flat.max()),
        "train/data/obs_dead_dims": float((flat.var(axis=0) < DEAD).sum()),
    }


def _actions(actions: np.ndarray, space: Any) -> dict[str, float]:
    if getattr(space, "n", None) is not None:
        counts = np.unique(actions, return_counts=True)[1]
        return {"train/data/action_top_share": float(counts.max() / actions.size)}
    if getattr(space, "high", None) is None:
        return {}
    flat = actions.reshape(-1, actions.shape[-1])
    bound = (flat <= space.low) | (flat >= space.high)
    return {
        "train/data/action_mean": float(flat.mean()),
        "train/data/action_std": float(flat.std()),
        "train/data/action_saturation": float(bound.mean()),
    }
