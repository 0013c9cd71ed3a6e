"""Running mean and variance as a pytree, for normalising observations and rewards.

Statistics change only between updates: what acted is what is trained, and evaluation uses them as they stand.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Statistics = dict[str, Array]


def initial(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"mean": np.zeros(shape, np.float32), "var": np.ones(shape, np.float32), "count": np.zeros((), np.float32)}


def absorb(statistics: Statistics, x: Array, weight: Array) -> Statistics:
    """Add rows x [..., *shape] with weights [...] (Chan et al. 1979, parallel form)."""
    axes = tuple(range(weight.ndim))
    w = weight.reshape(weight.shape + (1,) * (x.ndim - weight.ndim))
    n = jnp.sum(weight)
    batch_mean = jnp.sum(x * w, axes) / jnp.maximum(n, 1.0)
    batch_var = jnp.sum(jnp.square(x - batch_mean) * w, axes) / jnp.maximum(n, 1.0)
    count = statistics["count"] + n
    share = n / jnp.maximum(count, 1.0)
    delta = batch_mean - statistics["mean"]
    mean = statistics["mean"] + delta * share
    var = statistics["var"] * (1 - share) + batch_var * share + jnp.square(delta) * share * (1 - share)
    return {"mean": mean, "var": var, "count": count}


def normalize(statistics: Statistics, x: Array, bound: float) -> Array:
    return jnp.clip((x - statistics["mean"]) / jnp.sqrt(statistics["var"] + 1e-8), -bound, bound)


def discounted_sums(carry: Array, r_t: Array, done_t: Array, gamma: float) -> tuple[Array, Array]:
    """Running discounted sum of the rewards of each environment [N] through a rollout [T, N]."""

    def forward(total: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        reward, done = row
        total = total * gamma + reward
        return total * (1.0 - done), total

    return jax.lax.scan(forward, carry, (r_t, done_t))
