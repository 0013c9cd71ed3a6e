"""Losses. Every argument is [B]; `weight` is 1 for real transitions and 0 for reset steps, or an importance weight."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from gymnasium_solver.ops import masked


def clipped_surrogate(log_ratio: Array, advantage: Array, weight: Array, clip_range: Array | float) -> Array:
    """PPO's pessimistic bound, https://arxiv.org/abs/1707.06347 equation 7, negated."""
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1.0 - clip_range, 1.0 + clip_range)
    return -masked.mean(jnp.minimum(ratio * advantage, clipped * advantage), weight)


def policy_gradient(log_prob: Array, advantage: Array, weight: Array) -> Array:
    return -masked.mean(log_prob * advantage, weight)


def value_error(value: Array, target: Array, weight: Array) -> Array:
    return masked.mean(jnp.square(value - target), weight)


def clipped_value_error(
    value: Array, old_value: Array, target: Array, weight: Array, clip_range: Array | float
) -> Array:
    """The larger of the errors of the value and of the value held within `clip_range` of the old one."""
    held = old_value + jnp.clip(value - old_value, -clip_range, clip_range)
    return masked.mean(jnp.maximum(jnp.square(value - target), jnp.square(held - target)), weight)


def kl_estimate(log_ratio: Array, weight: Array) -> Array:
    """Unbiased, non-negative estimate of KL(old‖new) ("k3", http://joschu.net/blog/kl-approx.html)."""
    return masked.mean(jnp.expm1(log_ratio) - log_ratio, weight)


def huber(error: Array) -> Array:
    """Quadratic up to 1, linear beyond."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * jnp.square(error), size - 0.5)
