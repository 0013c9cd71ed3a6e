"""What diagnosis needs to know of the data itself and of what an update made of it, computed on the host."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.envs.actions import UNBOUNDED
from gymnasium_solver.envs.spec import ActionSpec
from gymnasium_solver.ops.returns import Estimates
from gymnasium_solver.train.parts import Columns

_MAX_VALUES = 200_000  # larger observation batches are thinned out over time
_MAX_DIMS = 64  # images and large tables have more; what an action does to one of so many says little
_MAX_STEPS = 2000  # transitions that dynamics are judged by
_LEAST_STEPS = 50  # fewer transitions say nothing about dynamics


def data_signals(batch: Columns, action: ActionSpec, rescaled: bool) -> dict[str, float]:
    valid = batch["valid"]
    reward = batch["reward"][valid]
    ends = batch["terminated"] | batch["truncated"]
    signals = {
        "train/data/valid_share": float(valid.mean()),
        "train/data/truncated_share": float(batch["truncated"].sum() / max(int(ends.sum()), 1)),
        **observation_signals(batch["obs"]),
    }
    if reward.size:
        signals |= {
            "train/data/reward_mean": float(reward.mean()),
            "train/data/reward_std": float(reward.std()),
            "train/data/reward_min": float(reward.min()),
            "train/data/reward_max": float(reward.max()),
            "train/data/reward_zero_share": float((reward == 0).mean()),
        }
        signals |= action_signals(batch["action"][valid], action, rescaled)
    return signals


def estimate_signals(estimates: Estimates, valid: np.ndarray) -> dict[str, float]:
    """[T, N] each. Explained variance: 1 where the critic predicts returns, 0 where their mean does as well."""
    advantage, value, target = (np.asarray(x)[valid] for x in estimates)
    if not target.size:
        return {}
    return {
        "train/metrics/explained_variance": 1.0 - float(np.var(target - value) / (np.var(target) + 1e-8)),
        "train/data/advantage_mean": float(advantage.mean()),
        "train/data/advantage_std": float(advantage.std()),
        "train/data/return_mean": float(target.mean()),
        "train/data/return_std": float(target.std()),
        "train/data/value_mean": float(value.mean()),
        "train/data/value_std": float(value.std()),
    }


def observation_signals(obs: np.ndarray) -> dict[str, float]:
    values = obs.reshape(obs.shape[0], obs.shape[1], -1)
    if values.size > _MAX_VALUES:
        values = values[:: -(-values.size // _MAX_VALUES)]
    values = values.astype(np.float32, copy=False)
    flat = values.reshape(-1, values.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    # Each environment's stream as one number: equal numbers are equal streams (shared seeds).
    weights = np.sin(np.arange(1, values.shape[0] * values.shape[2] + 1, dtype=np.float64))
    streams = np.einsum("tnd,td->n", values, weights.reshape(values.shape[0], -1))
    return {
        "train/data/obs_mean": float(flat.mean()),
        "train/data/obs_std": float(flat.std()),
        "train/data/obs_min": float(low.min()),
        "train/data/obs_max": float(high.max()),
        "train/data/obs_dead_dims": int(np.count_nonzero(high - low < 1e-4)),  # a standard deviation under 1e-4 at most
        "train/data/duplicate_envs": int(len(streams) - len(np.unique(streams))),
    }


def dynamics_signals(obs: np.ndarray, actions: np.ndarray, valid: np.ndarray, action: ActionSpec) -> dict[str, float]:
    """obs [T+1, N, …]. Do actions change anything, and how much of what is observed is noise?"""
    if np.prod(obs.shape[2:]) > _MAX_DIMS or np.count_nonzero(valid) < _LEAST_STEPS:
        return {}
    values = obs.reshape(*obs.shape[:2], -1).astype(np.float32, copy=False)
    step = values[1:] - values[:-1]
    moves, taken = step[valid][:_MAX_STEPS], actions[valid][:_MAX_STEPS]
    live = moves.var(axis=0) > 1e-12
    if not live.any():
        return {}
    signals = {}
    # What the state explains anyway is taken out first: a policy's actions follow from it.
    before = values[:-1][valid][:_MAX_STEPS, live]
    state, _ = np.linalg.qr(np.concatenate([np.ones((len(before), 1), np.float32), before], axis=1))
    rest = moves[:, live] - state @ (state.T @ moves[:, live])
    columns = taken.reshape(len(taken), -1).T
    if effect := [e for e in (_effect(rest, column, action) for column in columns) if e is not None]:
        signals["train/data/action_effect"] = max(effect)
    # Noise adds the same variance to differences over one step and over two; motion adds four times as much to two.
    consecutive = valid[:-1] & valid[1:]
    if np.count_nonzero(consecutive) >= _LEAST_STEPS:
        level = values[:-1][valid][:, live].var(axis=0)
        one, two = step[:-1][consecutive][:, live].var(axis=0), (values[2:] - values[:-2])[consecutive][:, live].var(0)
        share = np.clip((4 * one - two) / 6 / np.maximum(level, 1e-12), 0.0, 1.0)
        signals["train/data/obs_noise_share"] = float(np.median(share))
    return signals


def _effect(moves: np.ndarray, taken: np.ndarray, action: ActionSpec) -> float | None:
    """The largest share of an observation component's change that one component of the action explains, less what
    chance explains; None where the action hardly varied."""
    if taken.std() < 1e-6:
        return None
    if action.kind == "box":
        scores = taken[:, None] - taken.mean()
    else:
        scores = (taken[:, None] == np.unique(taken)[1:]).astype(np.float32)
        scores -= scores.mean(axis=0)
    basis, _ = np.linalg.qr(scores)
    explained = ((basis.T @ moves) ** 2).sum(axis=0) / np.maximum((moves**2).sum(axis=0), 1e-12)
    return max(0.0, float(explained.max()) - scores.shape[1] / len(moves))


def action_signals(actions: np.ndarray, action: ActionSpec, rescaled: bool) -> dict[str, float]:
    if action.kind == "box":
        assert action.low is not None and action.high is not None
        unit = rescaled & (np.abs(action.low) < UNBOUNDED) & (np.abs(action.high) < UNBOUNDED)
        low, high = np.where(unit, -1.0, action.low), np.where(unit, 1.0, action.high)
        return {
            "train/data/action_mean": float(actions.mean()),
            "train/data/action_std": float(actions.std()),
            "train/data/action_saturation": float(((actions <= low) | (actions >= high)).mean()),
        }
    columns = actions.reshape(len(actions), -1)
    shares = np.bincount(columns[:, 0], minlength=action.sizes[0]) / len(columns)
    top = max(np.bincount(columns[:, i]).max() / len(columns) for i in range(columns.shape[1]))
    signals = {"train/data/action_top_share": float(top)}
    if action.kind == "discrete" and len(shares) <= 20:
        signals |= {f"train/data/action_share/{i}": float(share) for i, share in enumerate(shares)}
    return signals
