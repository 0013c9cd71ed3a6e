"""Action distributions as bundles of pure functions over a flat parameter vector.

Noise comes in from outside (uniform for categories, standard normal for Gaussians), so nothing here holds or splits a
random key: the host draws a rollout's noise in one NumPy call, which compiles and runs faster than JAX's generator on
a CPU, and a compiled loop can draw it with `jax.random` just as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Distribution(NamedTuple):
    """Parameters [..., n_params] → actions. `mask` [..., n_params] marks the categories that are allowed."""

    n_params: int
    draw_noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    sample: Callable[[Array, Array], Array]
    mode: Callable[[Array], Array]
    log_prob: Callable[[Array, Array], Array]
    entropy: Callable[[Array], Array]
    max_entropy: float | None


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    # 1 - u is in (0, 1]: the Gumbel transform below never meets log(0).
    return np.float32(1.0) - rng.random(shape, dtype=np.float32)


def mask_logits(logits: Array, mask: Array | None) -> Array:
    """Forbidden categories get a logit that leaves them no probability and no gradient."""
    return logits if mask is None else jnp.where(mask, logits, -1e9)


def categorical(size: int) -> Distribution:
    def sample(logits: Array, uniform: Array) -> Array:
        gumbel = -jnp.log(-jnp.log(uniform * (1 - 1e-7)))
        return jnp.argmax(logits + gumbel, axis=-1)

    def log_prob(logits: Array, action: Array) -> Array:
        log_p = jax.nn.log_softmax(logits)
        return jnp.take_along_axis(log_p, action[..., None], axis=-1)[..., 0]

    def entropy(logits: Array) -> Array:
        log_p = jax.nn.log_softmax(logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)

    return Distribution(
        n_params=size,
        draw_noise=lambda rng, shape: _uniform(rng, (*shape, size)),
        sample=sample,
        mode=lambda logits: jnp.argmax(logits, axis=-1),
        log_prob=log_prob,
        entropy=entropy,
        max_entropy=math.log(size),
    )


def multi_categorical(sizes: tuple[int, ...]) -> Distribution:
    """Independent categoricals side by side; an action is one index each, [..., len(sizes)]."""
    parts = [categorical(size) for size in sizes]
    cuts = np.cumsum(sizes)[:-1].tolist()

    def split(flat: Array) -> list[Array]:
        return jnp.split(flat, cuts, axis=-1)

    def sample(logits: Array, uniform: Array) -> Array:
        drawn = [p.sample(part, u) for p, part, u in zip(parts, split(logits), split(uniform), strict=True)]
        return jnp.stack(drawn, axis=-1)

    def log_prob(logits: Array, action: Array) -> Array:
        return jnp.stack(
            [p.log_prob(part, action[..., i]) for i, (p, part) in enumerate(zip(parts, split(logits), strict=True))]
        ).sum(0)

    return Distribution(
        n_params=sum(sizes),
        draw_noise=lambda rng, shape: _uniform(rng, (*shape, sum(sizes))),
        sample=sample,
        mode=lambda logits: jnp.stack([jnp.argmax(part, axis=-1) for part in split(logits)], axis=-1),
        log_prob=log_prob,
        entropy=lambda logits: jnp.stack([p.entropy(part) for p, part in zip(parts, split(logits), strict=True)]).sum(
            0
        ),
        max_entropy=math.log(math.prod(sizes)),
    )


def diagonal_gaussian(dim: int) -> Distribution:
    """Parameters are the mean and the log standard deviation, [..., 2·dim]."""

    def split(params: Array) -> tuple[Array, Array]:
        return params[..., :dim], params[..., dim:]

    def sample(params: Array, normal: Array) -> Array:
        mean, log_std = split(params)
        return mean + jnp.exp(log_std) * normal

    def log_prob(params: Array, action: Array) -> Array:
        mean, log_std = split(params)
        z = (action - mean) * jnp.exp(-log_std)
        return jnp.sum(-0.5 * jnp.square(z) - log_std - _HALF_LOG_TWO_PI, axis=-1)

    def entropy(params: Array) -> Array:
        return jnp.sum(split(params)[1] + 0.5 + _HALF_LOG_TWO_PI, axis=-1)

    return Distribution(
        n_params=2 * dim,
        draw_noise=lambda rng, shape: rng.standard_normal((*shape, dim), dtype=np.float32),
        sample=sample,
        mode=lambda params: split(params)[0],
        log_prob=log_prob,
        entropy=entropy,
        max_entropy=None,
    )


def for_actions(kind: str, sizes: tuple[int, ...], dim: int) -> Distribution:
    """The distribution that serves an action space."""
    if kind == "discrete":
        return categorical(sizes[0])
    if kind == "multi_discrete":
        return multi_categorical(sizes)
    return diagonal_gaussian(dim)
