"""Returns and advantages over a rollout of T steps of N environments.

Rows follow the next-step convention of `envs`: `v_tp1[t]` is the value of the true successor of row t, also when the
episode ended there, so a truncated step bootstraps and a terminated one does not.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Estimates(NamedTuple):
    """What an update estimated for the rows of its rollout, [T, N] each."""

    advantage: Array
    value: Array
    target: Array


def gae(
    r_t: Array, v_t: Array, v_tp1: Array, terminated_t: Array, done_t: Array, gamma: float, lambda_: float
) -> Array:
    """Generalised advantage estimation, https://arxiv.org/abs/1506.02438. All arguments are [T, N]."""
    delta_t = r_t + gamma * v_tp1 * (1.0 - terminated_t) - v_t
    decay_t = gamma * lambda_ * (1.0 - done_t)

    def backward(advantage: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, decay = row
        advantage = delta + decay * advantage
        return advantage, advantage

    _, advantage_t = jax.lax.scan(backward, jnp.zeros_like(delta_t[0]), (delta_t, decay_t), reverse=True)
    return advantage_t


def rewards_to_go(r_t: Array, bootstrap_t: Array, done_t: Array, gamma: float) -> Array:
    """Discounted sum of the rewards from each row on; `bootstrap_t` is the value that continues a row's episode
    where it is cut (zero where it really ended). The last row is a cut. All arguments are [T, N]."""
    ends_t = done_t.at[-1].set(1.0)

    def backward(return_: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        reward, bootstrap, end = row
        return_ = reward + gamma * jnp.where(end > 0, bootstrap, return_)
        return return_, return_

    _, return_t = jax.lax.scan(backward, jnp.zeros_like(r_t[0]), (r_t, bootstrap_t, ends_t), reverse=True)
    return return_t


def episode_returns(to_go_t: Array, valid_t: Array) -> Array:
    """The return of the whole episode (as far as it lies in the rollout) at each of its rows. [T, N] each."""
    after_reset = jnp.concatenate([jnp.ones_like(valid_t[:1]), 1.0 - valid_t[:-1]])
    starts_t = after_reset * valid_t

    def forward(whole: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        to_go, start = row
        whole = jnp.where(start > 0, to_go, whole)
        return whole, whole

    _, whole_t = jax.lax.scan(forward, to_go_t[0], (to_go_t, starts_t))
    return whole_t


def completed(done_t: Array) -> Array:
    """1 for rows whose episode ends within the rollout, 0 for those of an unfinished tail. [T, N]"""
    return jnp.flip(jnp.cumsum(jnp.flip(done_t, 0), 0), 0).clip(0.0, 1.0)
