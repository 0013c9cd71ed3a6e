"""Statistics over the rows that are real transitions (weight 1), leaving out reset steps (weight 0)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def mean(x: Array, weight: Array) -> Array:
    return jnp.sum(x * weight) / jnp.maximum(jnp.sum(weight), 1.0)


def standardize(x: Array, weight: Array) -> Array:
    centred = x - mean(x, weight)
    return centred / (jnp.sqrt(mean(jnp.square(centred), weight)) + 1e-8)
