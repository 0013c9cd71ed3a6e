"""SARSA (Rummery and Niranjan 1994): on-policy, towards the action that is taken next."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Hp, Spaces
from gymnasium_solver.algorithms.tabular import make_tabular
from gymnasium_solver.config.schema import SarsaConfig
from gymnasium_solver.ops.distributions import mask_logits


def make(config: SarsaConfig, spaces: Spaces) -> Algorithm:
    def taken_next(q: Array, hp: Hp, has_next: Array, next_action: Array, mask: Array) -> Array:
        """Where an episode is cut, or the rollout ends, the next action is not known: its expectation stands in."""
        share = hp["epsilon"] if config.exploration == "epsilon" else 0.0
        allowed = mask.astype(jnp.float32)
        random = jnp.sum(jnp.where(mask, q, 0.0)) / jnp.maximum(jnp.sum(allowed), 1.0)
        expected = share * random + (1.0 - share) * jnp.max(mask_logits(q, mask))
        return jnp.where(has_next, q[next_action], expected)

    return make_tabular(config, spaces, taken_next)
