"""Generalised state-dependent exploration (gSDE), https://arxiv.org/abs/2005.05719.

The noise of an action is a linear function of the features, drawn once for several steps: similar states get similar
noise, so actions do not jitter. For the log-probability it is a Gaussian whose variance follows from the features.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import Layer

_EPS = 1e-6


def sde_init(width: int, dim: int, log_std_init: float) -> Layer:
    return {"log_std": np.full((width, dim), log_std_init - 0.5 * np.log(width), np.float32)}


def log_std_of(head: Layer, features: Array) -> Array:
    """[B, dim]. Features are not trained through their part in the noise."""
    features = jax.lax.stop_gradient(features).astype(jnp.float32)
    variance = jnp.square(features) @ jnp.exp(2 * head["log_std"].astype(jnp.float32))
    return 0.5 * jnp.log(variance + _EPS)


def correlated_noise(head: Layer, features: Array, noise: Array) -> Array:
    """Standard normals [B, dim] that features [B, width] and drawn functions `noise` [B, width, dim] come to."""
    features = features.astype(jnp.float32)
    scaled = jnp.exp(head["log_std"].astype(jnp.float32)) * noise
    return jnp.einsum("bw,bwd->bd", features, scaled) * jnp.exp(-log_std_of(head, features))


def draw_functions(
    rng: np.random.Generator, shape: tuple[int, ...], width: int, dim: int, sample_freq: int
) -> np.ndarray:
    """Noise for steps `shape` ([T, N] or [N]): the same function for `sample_freq` steps of an environment."""
    steps = shape[0] if len(shape) == 2 else 1
    drawn = rng.standard_normal((-(-steps // sample_freq), *shape[-1:], width, dim), dtype=np.float32)
    return np.repeat(drawn, sample_freq, axis=0)[:steps] if len(shape) == 2 else drawn[0]
