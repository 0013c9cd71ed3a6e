"""A Gaussian squashed by tanh into (-1, 1), https://arxiv.org/abs/1812.05905 appendix C."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_LOG_STD = (-20.0, 2.0)


def split(output: Array) -> tuple[Array, Array]:
    """Mean and log standard deviation, kept within what can be computed with, from [..., 2·dim]."""
    mean, log_std = jnp.split(output, 2, axis=-1)
    return mean, jnp.clip(log_std, *_LOG_STD)


def sample(output: Array, normal: Array) -> tuple[Array, Array]:
    """Action [..., dim] and its log-probability [...], from standard normals [..., dim]."""
    mean, log_std = split(output)
    before = mean + jnp.exp(log_std) * normal
    log_prob = -0.5 * jnp.square(normal) - log_std - _HALF_LOG_TWO_PI - log_jacobian(before)
    return jnp.tanh(before), jnp.sum(log_prob, axis=-1)


def log_jacobian(before: Array) -> Array:
    """log(1 - tanh(x)²), without the loss of digits at large |x|."""
    return 2.0 * (math.log(2.0) - before - jax.nn.softplus(-2.0 * before))
