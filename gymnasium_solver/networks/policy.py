"""A policy network of its own, with the parts `trunk` and `actor_head`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import dense, dense_init
from gymnasium_solver.networks.state_dependent import correlated_noise, log_std_of, sde_init
from gymnasium_solver.networks.trunk import Trunk

Params = dict[str, Any]


class PolicyNetwork(NamedTuple):
    init: Callable[[np.random.Generator], Params]
    output: Callable[[Params, Array], Array]  # [B, n_outputs]
    output_and_noise: Callable[[Params, Array, Array], tuple[Array, Array]]  # gSDE: also standard normals [B, dim]
    activations: Callable[[Params, Array], list[Array]]


def make_policy(trunk: Trunk, n_outputs: int, *, sde_dim: int = 0, log_std_init: float = 0.0) -> PolicyNetwork:
    """`sde_dim` of the outputs are log standard deviations that follow from the state (0: all come from the head)."""

    def init(rng: np.random.Generator) -> Params:
        head = dense_init(rng, trunk.width, n_outputs - sde_dim, 1.0, orthogonal=False)
        if sde_dim:
            head |= sde_init(trunk.width, sde_dim, log_std_init)
        elif log_std_init:
            head["bias"][n_outputs // 2 :] = log_std_init
        return {"trunk": trunk.init(rng), "actor_head": head}

    def from_features(head: Params, features: Array) -> Array:
        out = dense(head, features).astype(jnp.float32)
        return jnp.concatenate([out, log_std_of(head, features)], axis=-1) if sde_dim else out

    def output(params: Params, obs: Array) -> Array:
        params = trunk.cast(params)
        return from_features(params["actor_head"], trunk.hidden(params["trunk"], obs, None)[-1])

    def output_and_noise(params: Params, obs: Array, noise: Array) -> tuple[Array, Array]:
        params = trunk.cast(params)
        features = trunk.hidden(params["trunk"], obs, None)[-1]
        return from_features(params["actor_head"], features), correlated_noise(params["actor_head"], features, noise)

    def activations(params: Params, obs: Array) -> list[Array]:
        return trunk.hidden(trunk.cast(params)["trunk"], obs, None)

    return PolicyNetwork(init, output, output_and_noise, activations)
