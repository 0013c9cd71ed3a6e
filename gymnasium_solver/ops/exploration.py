"""Noise that makes a policy try what it would not choose: drawn on the host, made into actions in compiled code."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.ops.distributions import mask_logits


def draw_epsilon_noise(rng: np.random.Generator, shape: tuple[int, ...], n_actions: int, epsilon: float) -> np.ndarray:
    """[..., 1 + n_actions]: whether to take a random action, and a number for each action, whose largest is taken."""
    noise = rng.random((*shape, 1 + n_actions), dtype=np.float32)
    noise[..., 0] = noise[..., 0] < epsilon
    return noise


def epsilon_greedy(values: Array, noise: Array, mask: Array | None) -> Array:
    """`values` [N, A], already masked."""
    explored = jnp.argmax(mask_logits(noise[..., 1:], mask), axis=-1)
    return jnp.where(noise[..., 0] > 0, explored, jnp.argmax(values, axis=-1))


def upper_bounds(values: Array, visits: Array, coefficient: float | Array) -> Array:
    """UCB1 (Auer et al. 2002): values [N, A] plus what as few visits [N, A] leave possible."""
    total = jnp.sum(visits, axis=-1, keepdims=True)
    bound = coefficient * jnp.sqrt(jnp.log(jnp.maximum(total, 1.0)) / jnp.maximum(visits, 1.0))
    return jnp.where(visits > 0, values + bound, jnp.inf)


def draw_bound_noise(rng: np.random.Generator, shape: tuple[int, ...], n_actions: int, weight: float) -> np.ndarray:
    """[..., 1 + n_actions]: the weight of the bound, and a number for each action."""
    noise = rng.random((*shape, 1 + n_actions), dtype=np.float32)
    noise[..., 0] = weight
    return noise


def optimistic(values: Array, visits: Array, noise: Array, mask: Array | None) -> Array:
    """The action of the largest upper bound, for values and visits [N, A]; of those never tried, any.

    Tables stand still during a rollout: without randomness all environments would do the same, and go round in circles.
    Each bound is widened by a random factor of mean 1 (RandUCB, https://arxiv.org/abs/1910.04928, uncoupled).
    """
    weight, uniform = noise[..., :1], noise[..., 1:]
    untried = mask_logits(jnp.where(visits > 0, -1.0, uniform), mask)
    bounds = mask_logits(upper_bounds(values, visits, 2.0 * weight * uniform), mask)
    is_new = jnp.max(untried, axis=-1) >= 0.0
    return jnp.where(is_new, jnp.argmax(untried, axis=-1), jnp.argmax(bounds, axis=-1))


def draw_action_noise(
    rng: np.random.Generator, shape: tuple[int, ...], dim: int, *, kind: str, std: float, theta: float, random: bool
) -> np.ndarray:
    """[..., 1 + dim] for actions in [-1, 1]: whether the action is only noise, and the noise.

    Random actions are uniform. `ou` is an Ornstein-Uhlenbeck process along the first axis of `shape` [T, N], started
    anew with every draw, so that there is nothing to keep between them.
    """
    noise = np.zeros((*shape, 1 + dim), np.float32)
    if random:
        noise[..., 0] = 1.0
        noise[..., 1:] = rng.uniform(-1, 1, (*shape, dim))
        return noise
    normal = std * rng.standard_normal((*shape, dim), dtype=np.float32)
    if kind == "ou" and len(shape) == 2:
        for t in range(1, shape[0]):
            normal[t] += (1 - theta) * normal[t - 1]
    noise[..., 1:] = normal
    return noise


def perturbed(action: Array, noise: Array) -> Array:
    """`action` [N, dim] in [-1, 1] with noise [N, 1 + dim] as drawn above."""
    chosen = jnp.where(noise[..., :1] > 0, noise[..., 1:], action + noise[..., 1:])
    return jnp.clip(chosen, -1.0, 1.0)
