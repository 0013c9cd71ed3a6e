"""Statistics over the rows that are real transitions (weight 1), leaving out reset steps (weight 0)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def mean(x: Array, weight: Array) -> Array:
    return jnp.sum(x * weight) / jnp.maximum(jnp.sum(weight), 1.0)


def variance(x: Array, weight: Array) -> Array:
    return mean(jnp.square(x - mean(x, weight)), weight)


def standardize(x: Array, weight: Array) -> Array:
    centred = x - mean(x, weight)
    return centred / (jnp.sqrt(mean(jnp.square(centred), weight)) + 1e-8)


def explained_variance(predicted: Array, actual: Array, weight: Array) -> Array:
    """1: the critic foretells returns exactly; 0: no better than their mean; below: worse."""
    return 1.0 - variance(actual - predicted, weight) / (variance(actual, weight) + 1e-8)
