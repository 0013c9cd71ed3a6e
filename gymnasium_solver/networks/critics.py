"""Action values: of every discrete action at once, or of one continuous action given with the observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import Layer, dense, dense_init
from gymnasium_solver.networks.trunk import Trunk

Params = dict[str, Any]


class Critic(NamedTuple):
    """Parameters have the parts `trunk` and `critic_head`."""

    init: Callable[[np.random.Generator], Params]
    value: Callable[[Params, Array, Array | None], Array]  # obs [B, …], action [B, dim] or None → [B] or [B, A]
    activations: Callable[[Params, Array, Array | None], list[Array]]  # hidden dense layers


def dueling_value(value: Array, advantage: Array) -> Array:
    """https://arxiv.org/abs/1511.06581 equation 9: value [..., 1] and advantages [..., A] counted from their mean."""
    return value + advantage - jnp.mean(advantage, axis=-1, keepdims=True)


def discrete_critic(trunk: Trunk, n_actions: int, *, dueling: bool = False) -> Critic:
    """Q(s, ·) of every action."""

    def head_init(rng: np.random.Generator) -> Layer:
        if not dueling:
            return dense_init(rng, trunk.width, n_actions, 1.0, orthogonal=False)
        return {
            "value": dense_init(rng, trunk.width, 1, 1.0, orthogonal=False),
            "advantage": dense_init(rng, trunk.width, n_actions, 1.0, orthogonal=False),
        }

    def value(params: Params, obs: Array, _: Array | None = None) -> Array:
        params = trunk.cast(params)
        features, head = trunk.hidden(params["trunk"], obs, None)[-1], params["critic_head"]
        if dueling:
            out = dueling_value(dense(head["value"], features), dense(head["advantage"], features))
        else:
            out = dense(head, features)
        return out.astype(jnp.float32)

    return _critic(trunk, head_init, value)


def continuous_critic(trunk: Trunk) -> Critic:
    """Q(s, a); the trunk was made to take the action along."""

    def value(params: Params, obs: Array, action: Array | None) -> Array:
        params = trunk.cast(params)
        features = trunk.hidden(params["trunk"], obs, action)[-1]
        return dense(params["critic_head"], features)[..., 0].astype(jnp.float32)

    return _critic(trunk, lambda rng: dense_init(rng, trunk.width, 1, 1.0, orthogonal=False), value)


def _critic(
    trunk: Trunk,
    head_init: Callable[[np.random.Generator], Layer],
    value: Callable[[Params, Array, Array | None], Array],
) -> Critic:
    def init(rng: np.random.Generator) -> Params:
        return {"trunk": trunk.init(rng), "critic_head": head_init(rng)}

    def activations(params: Params, obs: Array, action: Array | None) -> list[Array]:
        return trunk.hidden(trunk.cast(params)["trunk"], obs, action)

    return Critic(init, value, activations)
