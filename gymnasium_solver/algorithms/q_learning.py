"""Tabular Q-learning (Watkins 1989): off-policy, towards the best action of the successor."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Hp, Spaces
from gymnasium_solver.algorithms.tabular import make_tabular
from gymnasium_solver.config.schema import QLearningConfig
from gymnasium_solver.ops.distributions import mask_logits


def make(config: QLearningConfig, spaces: Spaces) -> Algorithm:
    def best(q: Array, hp: Hp, has_next: Array, next_action: Array, mask: Array) -> Array:
        return jnp.max(mask_logits(q, mask))

    return make_tabular(config, spaces, best)
