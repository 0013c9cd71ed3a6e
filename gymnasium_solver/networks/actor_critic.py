"""Policy and value networks with named parts: `trunk`, `actor_head`, `critic_head`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import (
    ACTIVATIONS,
    GAINS,
    Layer,
    convolution,
    convolution_init,
    dense,
    dense_init,
    mlp_init,
)

Params = dict[str, Any]

# (channels, kernel, stride) for images from 60 pixels (Mnih et al. 2015) and for smaller ones.
_LARGE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_SMALL = ((16, 4, 2), (32, 3, 1))


class ActorCritic(NamedTuple):
    """Pure functions of parameters and observations [B, *obs_shape] (images as bytes)."""

    init: Callable[[np.random.Generator], Params]
    policy: Callable[[Params, Array], Array]  # distribution parameters [B, n_params]
    value: Callable[[Params, Array], Array]  # [B]
    both: Callable[[Params, Array], tuple[Array, Array]]
    activations: Callable[[Params, Array], list[Array]]  # hidden dense layers of the policy
    acting_part: Callable[[Params], Params]  # what `policy` needs


def make_actor_critic(
    *,
    obs_shape: tuple[int, ...],
    is_image: bool,
    n_actor_params: int,
    state_independent_std: int,
    hidden_dims: tuple[int, ...],
    activation: str,
    shared: bool,
    orthogonal: bool,
    log_std_init: float,
    dtype: Any,
) -> ActorCritic:
    """`state_independent_std` is the number of log standard deviations kept as parameters beside the head (0: none)."""
    activate, gain = ACTIVATIONS[activation], GAINS[activation]
    filters = (_LARGE if min(obs_shape[:2]) >= 60 else _SMALL) if is_image else ()

    def trunk_init(rng: np.random.Generator) -> dict[str, list[Layer]]:
        convolutions, shape = [], obs_shape
        for channels, kernel, stride in filters:
            convolutions.append(convolution_init(rng, kernel, shape[2], channels, gain, orthogonal))
            shape = ((shape[0] - kernel) // stride + 1, (shape[1] - kernel) // stride + 1, channels)
        sizes = (int(np.prod(shape)), *hidden_dims)
        return {"convolutions": convolutions, "dense": mlp_init(rng, sizes, gain, orthogonal)}

    def init(rng: np.random.Generator) -> Params:
        names = ("shared",) if shared else ("policy", "value")
        width = hidden_dims[-1]
        # A small last layer makes the first policy nearly uniform (Andrychowicz et al. 2021).
        actor: Params = dense_init(rng, width, n_actor_params - state_independent_std, 0.01, orthogonal)
        if state_independent_std:
            actor["log_std"] = np.full(state_independent_std, log_std_init, np.float32)
        return {
            "trunk": {name: trunk_init(rng) for name in names},
            "actor_head": actor,
            "critic_head": dense_init(rng, width, 1, 1.0, orthogonal),
        }

    def prepare(x: Array) -> Array:
        return x.astype(dtype) / 255 if is_image else x.astype(dtype).reshape(x.shape[0], -1)

    def trunk(layers: dict[str, list[Layer]], x: Array) -> list[Array]:
        hidden = [prepare(x)]
        for layer, (_, kernel, stride) in zip(layers["convolutions"], filters, strict=True):
            hidden.append(activate(convolution(layer, hidden[-1], kernel, stride)))
        if filters:
            hidden.append(hidden[-1].reshape(x.shape[0], -1))
        for layer in layers["dense"]:
            hidden.append(activate(dense(layer, hidden[-1])))
        return hidden[1:]

    def cast(params: Params) -> Params:
        return params if dtype == jnp.float32 else jax.tree.map(lambda p: p.astype(dtype), params)

    def actor_output(head: Params, features: Array) -> Array:
        out = dense(head, features).astype(jnp.float32)
        if state_independent_std:
            log_std = jnp.broadcast_to(head["log_std"].astype(jnp.float32), out.shape)
            out = jnp.concatenate([out, log_std], axis=-1)
        return out

    def critic_output(head: Params, features: Array) -> Array:
        return dense(head, features)[..., 0].astype(jnp.float32)

    def policy_trunk(params: Params) -> dict[str, list[Layer]]:
        return params["trunk"]["shared" if shared else "policy"]

    def policy(params: Params, x: Array) -> Array:
        params = cast(params)
        return actor_output(params["actor_head"], trunk(policy_trunk(params), x)[-1])

    def value(params: Params, x: Array) -> Array:
        params = cast(params)
        layers = params["trunk"]["shared" if shared else "value"]
        return critic_output(params["critic_head"], trunk(layers, x)[-1])

    def both(params: Params, x: Array) -> tuple[Array, Array]:
        if not shared:
            return policy(params, x), value(params, x)
        params = cast(params)
        features = trunk(params["trunk"]["shared"], x)[-1]
        return actor_output(params["actor_head"], features), critic_output(params["critic_head"], features)

    def activations(params: Params, x: Array) -> list[Array]:
        return trunk(policy_trunk(cast(params)), x)[-len(hidden_dims) :]

    def acting_part(params: Params) -> Params:
        name = "shared" if shared else "policy"
        return {"trunk": {name: params["trunk"][name]}, "actor_head": params["actor_head"]}

    return ActorCritic(init, policy, value, both, activations, acting_part)
