"""Several critics side by side: parameters as {part: [one per critic]}, so that a part is one stretch of memory."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.critics import Critic

PARTS = ("critic_head", "trunk")


def init_ensemble(critic: Critic, rng: np.random.Generator, count: int) -> dict[str, list[Any]]:
    members = [critic.init(rng) for _ in range(count)]
    return {part: [member[part] for member in members] for part in PARTS}


def ensemble_values(critic: Critic, params: dict[str, list[Any]], obs: Array, action: Array | None) -> Array:
    """[n_critics, B, …]. A loop, not a batched product, so that the critics can run side by side."""
    members = zip(*(params[part] for part in PARTS), strict=True)
    return jnp.stack([critic.value(dict(zip(PARTS, member, strict=True)), obs, action) for member in members])


def least(values: Array) -> Array:
    """The minimum over critics, against over-estimation, https://arxiv.org/abs/1802.09477."""
    return jnp.min(values, axis=0)
