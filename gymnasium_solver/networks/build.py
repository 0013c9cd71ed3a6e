"""Networks as a config describes them, for the spaces of an environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.actor_critic import make_actor_critic
from gymnasium_solver.networks.state_dependent import draw_functions
from gymnasium_solver.networks.trunk import Trunk, make_trunk
from gymnasium_solver.ops import distributions
from gymnasium_solver.ops.distributions import mask_logits

Params = dict[str, Any]


class StochasticPolicy(NamedTuple):
    """An actor-critic whose actions are drawn: pure functions of parameters and observations [B, …]; masks [B, A] or
    None."""

    init: Callable[[np.random.Generator], Params]
    acting_part: Callable[[Params], Params]  # what acting needs of the parameters
    draw_noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    sample: Callable[[Params, Array, Array, Array | None], Array]  # obs, noise, mask → action
    mode: Callable[[Params, Array, Array | None], Array]
    log_prob: Callable[[Params, Array, Array, Array | None], Array]  # obs, action, mask → [B]
    evaluate: Callable[[Params, Array, Array, Array | None], tuple[Array, Array, Array]]  # log-prob, entropy, value
    value: Callable[[Params, Array], Array]
    activations: Callable[[Params, Array], list[Array]]
    max_entropy: float | None
    is_gaussian: bool


def trunk_for(config: Any, spaces: Any, *, n_extra: int = 0, orthogonal: bool = False) -> Trunk:
    """`n_extra` further inputs: the actions of a critic."""
    return make_trunk(
        obs_shape=spaces.obs_shape,
        is_image=config.network == "cnn" or (config.network == "auto" and spaces.is_image),
        hidden_dims=config.hidden_dims,
        activation=config.activation,
        orthogonal=orthogonal,
        dtype=jnp.bfloat16 if config.precision == "bfloat16" else jnp.float32,
        normalize=getattr(config, "layer_norm", False),
        n_extra=n_extra,
    )


def stochastic_policy_for(config: Any, spaces: Any) -> StochasticPolicy:
    action = spaces.action
    is_gaussian = action.kind == "box"
    distribution = distributions.for_actions(action.kind, action.sizes, action.dim)
    network = make_actor_critic(
        trunk_for(config, spaces, orthogonal=config.ortho_init),
        n_actor_params=distribution.n_params,
        std_dim=action.dim if is_gaussian else 0,
        use_sde=config.use_sde,
        shared=config.shared_network,
        orthogonal=config.ortho_init,
        log_std_init=config.log_std_init,
    )

    def parameters(params: Params, obs: Array, mask: Array | None) -> Array:
        return mask_logits(network.policy(params, obs), mask)

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if config.use_sde:
            return draw_functions(rng, shape, config.hidden_dims[-1], action.dim, config.sde_sample_freq)
        return distribution.draw_noise(rng, shape)

    def sample(params: Params, obs: Array, noise: Array, mask: Array | None) -> Array:
        if config.use_sde:
            return distribution.sample(*network.policy_and_noise(params, obs, noise))
        return distribution.sample(parameters(params, obs, mask), noise)

    def evaluate(params: Params, obs: Array, action: Array, mask: Array | None) -> tuple[Array, Array, Array]:
        output, value = network.both(params, obs)
        output = mask_logits(output, mask)
        return distribution.log_prob(output, action), distribution.entropy(output), value

    return StochasticPolicy(
        init=network.init,
        acting_part=network.acting_part,
        draw_noise=draw_noise,
        sample=sample,
        mode=lambda params, obs, mask: distribution.mode(parameters(params, obs, mask)),
        log_prob=lambda params, obs, action, mask: distribution.log_prob(parameters(params, obs, mask), action),
        evaluate=evaluate,
        value=network.value,
        activations=network.activations,
        max_entropy=distribution.max_entropy,
        is_gaussian=is_gaussian,
    )
