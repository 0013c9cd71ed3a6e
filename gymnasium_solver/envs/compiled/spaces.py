"""Observations as the policy reads them and actions as the environment takes them, in JAX.

The same conversions as `envs/observations.py` and `envs/actions.py` make on the host, for the spaces that the compiled
engine serves; tests/envs/compiled/test_spaces.py holds them to that. Leading axes (environments, time) stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from gymnasium_solver.envs.actions import bounds_of

Array = jax.Array


def observation_encoder(space: gym.Space) -> Callable[[Array], Array]:
    """[…, *space.shape] → float32 […, size]: a Box flattened, a Discrete one-hot."""
    if isinstance(space, spaces.Discrete):
        start, n = int(space.start), int(space.n)
        return lambda obs: jax.nn.one_hot(obs - start, n, dtype=jnp.float32)
    shape = space.shape or ()
    size, rank = math.prod(shape), len(shape)
    return lambda obs: obs.reshape(*obs.shape[: obs.ndim - rank], size).astype(jnp.float32)


def action_decoder(space: gym.Space, rescale: bool) -> Callable[[Array], Array]:
    """What the policy puts out, int32 […], int32 […, dim] or float32 […, dim] → […, *space.shape]."""
    if isinstance(space, spaces.Discrete):
        first = int(space.start)
        return lambda action: action + first
    shape = space.shape or ()
    if isinstance(space, spaces.MultiDiscrete):
        starts = np.ravel(space.start).astype(np.int32)
        return lambda action: (action + starts).reshape(*action.shape[:-1], *shape)
    assert isinstance(space, spaces.Box)
    bound = _bounding(space, rescale)
    whole = space.dtype.kind in "iu"

    def decode(action: Array) -> Array:
        inside = bound(action).reshape(*action.shape[:-1], *shape)
        return jnp.rint(inside).astype(jnp.int32) if whole else inside

    return decode


def _bounding(space: spaces.Box, rescale: bool) -> Callable[[Array], Array]:
    """Into the bounds: scaled from [-1, 1] where both are finite and `rescale` is on, else clipped where finite."""
    low, high, scaled = bounds_of(space.low.ravel(), space.high.ravel(), rescale)
    if not scaled.any() or (np.all(low == -1) and np.all(high == 1)):
        return lambda action: jnp.clip(action, low, high)
    span = np.where(scaled, (high - low) / 2, 0).astype(np.float32)
    middle = np.where(scaled, (high + low) / 2, 0).astype(np.float32)

    def bound(action: Array) -> Array:
        inside = middle + jnp.clip(action, -1, 1) * span
        return jnp.clip(jnp.where(scaled, inside, action), low, high)

    return bound
