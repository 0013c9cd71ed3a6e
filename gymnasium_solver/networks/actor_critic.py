"""Policy and value networks with named parts: `trunk`, `actor_head`, `critic_head`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import dense, dense_init
from gymnasium_solver.networks.state_dependent import correlated_noise, log_std_of, sde_init
from gymnasium_solver.networks.trunk import Layers, Trunk

Params = dict[str, Any]


class ActorCritic(NamedTuple):
    """Pure functions of parameters and observations [B, *obs_shape] (images as bytes)."""

    init: Callable[[np.random.Generator], Params]
    policy: Callable[[Params, Array], Array]  # distribution parameters [B, n_params]
    policy_and_noise: Callable[[Params, Array, Array], tuple[Array, Array]]  # gSDE: also standard normals [B, dim]
    value: Callable[[Params, Array], Array]  # [B]
    both: Callable[[Params, Array], tuple[Array, Array]]
    activations: Callable[[Params, Array], list[Array]]  # hidden dense layers of the policy
    acting_part: Callable[[Params], Params]  # what `policy` needs


def make_actor_critic(
    body: Trunk,
    *,
    n_actor_params: int,
    std_dim: int,
    use_sde: bool,
    shared: bool,
    orthogonal: bool,
    log_std_init: float,
) -> ActorCritic:
    """`std_dim` of the actor's parameters are log standard deviations: the same for all states, or with `use_sde` a
    function of the state (0: there are none)."""

    def init(rng: np.random.Generator) -> Params:
        names = ("shared",) if shared else ("policy", "value")
        # A small last layer makes the first policy nearly uniform (Andrychowicz et al. 2021).
        actor: Params = dense_init(rng, body.width, n_actor_params - std_dim, 0.01, orthogonal)
        if use_sde:
            actor |= sde_init(body.width, std_dim, log_std_init)
        elif std_dim:
            actor["log_std"] = np.full(std_dim, log_std_init, np.float32)
        return {
            "trunk": {name: body.init(rng) for name in names},
            "actor_head": actor,
            "critic_head": dense_init(rng, body.width, 1, 1.0, orthogonal),
        }

    def features(layers: Layers, x: Array) -> Array:
        return body.hidden(layers, x, None)[-1]

    def actor_output(head: Params, features: Array) -> Array:
        out = dense(head, features).astype(jnp.float32)
        if use_sde:
            return jnp.concatenate([out, log_std_of(head, features)], axis=-1)
        if std_dim:
            log_std = jnp.broadcast_to(head["log_std"].astype(jnp.float32), out.shape)
            out = jnp.concatenate([out, log_std], axis=-1)
        return out

    def critic_output(head: Params, features: Array) -> Array:
        return dense(head, features)[..., 0].astype(jnp.float32)

    def policy_trunk(params: Params) -> Layers:
        return params["trunk"]["shared" if shared else "policy"]

    def policy(params: Params, x: Array) -> Array:
        params = body.cast(params)
        return actor_output(params["actor_head"], features(policy_trunk(params), x))

    def policy_and_noise(params: Params, x: Array, noise: Array) -> tuple[Array, Array]:
        params = body.cast(params)
        hidden, head = features(policy_trunk(params), x), params["actor_head"]
        return actor_output(head, hidden), correlated_noise(head, hidden, noise)

    def value(params: Params, x: Array) -> Array:
        params = body.cast(params)
        layers = params["trunk"]["shared" if shared else "value"]
        return critic_output(params["critic_head"], features(layers, x))

    def both(params: Params, x: Array) -> tuple[Array, Array]:
        if not shared:
            return policy(params, x), value(params, x)
        params = body.cast(params)
        shared_features = features(params["trunk"]["shared"], x)
        return actor_output(params["actor_head"], shared_features), critic_output(
            params["critic_head"], shared_features
        )

    def activations(params: Params, x: Array) -> list[Array]:
        return body.hidden(policy_trunk(body.cast(params)), x, None)

    def acting_part(params: Params) -> Params:
        name = "shared" if shared else "policy"
        return {"trunk": {name: params["trunk"][name]}, "actor_head": params["actor_head"]}

    return ActorCritic(init, policy, policy_and_noise, value, both, activations, acting_part)
