"""PPO's formulas in NumPy, written from their definitions and not from our own code: what is measured against.

Clipped surrogate: https://arxiv.org/abs/1707.06347 equation 7. Generalised advantage estimation:
https://arxiv.org/abs/1506.02438 equation 16, as a plain double sum.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def surrogate_loss(log_prob: Array, old_log_prob: Array, advantages: Array, clip_range: float) -> float:
    ratio = np.exp(log_prob - old_log_prob)
    held = np.clip(ratio, 1 - clip_range, 1 + clip_range)
    return float(-np.minimum(ratio * advantages, held * advantages).mean())


def surrogate_gradient(log_prob: Array, old_log_prob: Array, advantages: Array, clip_range: float) -> Array:
    """By log_prob: -ratio·advantage / B, but nothing where the ratio has already moved beyond the clip range in the
    direction that the advantage asks for."""
    ratio = np.exp(log_prob - old_log_prob)
    gone = ((advantages > 0) & (ratio > 1 + clip_range)) | ((advantages < 0) & (ratio < 1 - clip_range))
    return np.where(gone, 0.0, -ratio * advantages / len(ratio))


def value_loss(values: Array, returns: Array) -> float:
    return float(np.square(values - returns).mean())


def clipped_value_loss(values: Array, old_values: Array, returns: Array, clip_range: float) -> float:
    held = old_values + np.clip(values - old_values, -clip_range, clip_range)
    return float(np.maximum(np.square(values - returns), np.square(held - returns)).mean())


def standardised(advantages: Array, ddof: int = 0) -> Array:
    return (advantages - advantages.mean()) / (advantages.std(ddof=ddof) + 1e-8)


def kl_k3(log_ratio: Array) -> float:
    """Never negative, http://joschu.net/blog/kl-approx.html."""
    return float((np.exp(log_ratio) - 1 - log_ratio).mean())


def clip_fraction(log_ratio: Array, clip_range: float) -> float:
    return float((np.abs(np.exp(log_ratio) - 1) > clip_range).mean())


def temporal_difference(rewards: Array, values: Array, next_values: Array, terminated: Array, gamma: float) -> Array:
    return rewards + gamma * next_values * (1 - terminated) - values


def gae(
    rewards: Array, values: Array, next_values: Array, terminated: Array, done: Array, gamma: float, gae_lambda: float
) -> Array:
    """[T, N] each. An ending cuts the sum; only a termination takes the successor's value away."""
    delta = temporal_difference(rewards, values, next_values, terminated, gamma)
    advantages = np.zeros_like(delta)
    for start in range(len(delta)):
        going = np.ones(delta.shape[1])
        for t in range(start, len(delta)):
            advantages[start] += going * (gamma * gae_lambda) ** (t - start) * delta[t]
            going *= 1 - done[t]
    return advantages


def monte_carlo(rewards: Array, next_values: Array, terminated: Array, done: Array, gamma: float) -> Array:
    """Discounted rewards up to the ending or the last row, then the successor's value unless it terminated. [T, N]"""
    returns = np.zeros_like(rewards)
    last = len(rewards) - 1
    for start in range(len(rewards)):
        going = np.ones(rewards.shape[1])
        for t in range(start, len(rewards)):
            returns[start] += going * gamma ** (t - start) * rewards[t]
            cut = np.ones_like(done[t]) if t == last else done[t]
            returns[start] += going * cut * (1 - terminated[t]) * gamma ** (t - start + 1) * next_values[t]
            going *= 1 - cut
    return returns
