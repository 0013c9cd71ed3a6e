"""What DQN, DDPG, TD3 and SAC share: normalisers, trunks, one optimiser a network, targets, what an update reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Spaces
from gymnasium_solver.algorithms.policy_gradient import PARTS, Numbers, uses_convolutions
from gymnasium_solver.config.schema import OffPolicyConfig
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.networks.trunk import Trunk, make_trunk
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import descent_direction, initial_state, make_optimizer, norm

UNBOUNDED = 1e30


def trunk_of(config: OffPolicyConfig, spaces: Spaces, *, n_extra: int = 0) -> Trunk:
    return make_trunk(
        obs_shape=spaces.obs_shape,
        is_image=uses_convolutions(config, spaces),
        hidden_dims=config.hidden_dims,
        activation=config.activation,
        orthogonal=False,
        dtype=jnp.bfloat16 if config.precision == "bfloat16" else jnp.float32,
        normalize=config.layer_norm,
        n_extra=n_extra,
    )


def require_bounded_box(config: OffPolicyConfig, spaces: Spaces) -> None:
    """Policies that end in a tanh act in [-1, 1] and need bounds to scale that to."""
    action = spaces.action
    if action.kind != "box":
        raise unserved(config, spaces, "dqn or ppo" if action.kind == "discrete" else "ppo")
    if not config.rescale_actions:
        raise ConfigError(
            f"rescale_actions: false leaves {config.algo_id}, whose actions are in [-1, 1], unscaled; set it to true"
        )
    if (np.abs(action.low) >= UNBOUNDED).any() or (np.abs(action.high) >= UNBOUNDED).any():
        raise ConfigError(
            f"algo_id: {config.algo_id} acts within bounds, and the actions of {config.env_id} have none; use ppo, or "
            "bound them with a wrapper such as gymnasium.wrappers:RescaleAction"
        )


def unserved(config: OffPolicyConfig, spaces: Spaces, instead: str) -> ConfigError:
    words = {"discrete": "discrete", "multi_discrete": "several discrete", "box": "continuous"}
    return ConfigError(
        f"algo_id: {config.algo_id} cannot serve the {words[spaces.action.kind]} actions of {config.env_id}; "
        f"use {instead}"
    )


class Descent(NamedTuple):
    """One network's optimiser, on its parameters as one vector."""

    initial: Callable[[Any], Any]
    step: Callable[[Array, Any, Any, Array, Layout], tuple[Array, Any, Numbers]]  # vector, state, gradients, rate


def make_descent(config: OffPolicyConfig) -> Descent:
    optimizer = make_optimizer(config.optimizer, eps=config.optimizer_eps, weight_decay=config.weight_decay)

    def step(
        vector: Array, optimizer_state: Any, gradients: Any, rate: Array, layout: Layout
    ) -> tuple[Array, Any, Numbers]:
        """Also squared gradient norms by part, and whether the gradient was clipped."""
        gradient = layout.flatten(gradients)
        squares = {
            part: jnp.sum(jnp.square(gradient[slice(*layout.segments[part])]))
            for part in PARTS
            if part in layout.segments
        }
        squares["clipped"] = jnp.zeros(())
        if config.max_grad_norm is not None:
            whole = jnp.sqrt(sum(squares.values()))
            squares["clipped"] = (whole > config.max_grad_norm).astype(jnp.float32)
            gradient *= jnp.minimum(1.0, config.max_grad_norm / (whole + 1e-6))
        direction, optimizer_state = descent_direction(
            config.optimizer, optimizer, gradient, optimizer_state, vector, layout
        )
        return vector - rate * direction, optimizer_state, squares

    return Descent(lambda params: initial_state(config.optimizer, optimizer, params), step)


def gradient_metrics(*networks: Numbers) -> Numbers:
    """Norms over all networks that took a step, from what their steps reported."""
    metrics: Numbers = {}
    whole = jnp.zeros(())
    for part in PARTS:
        square = sum(n[part] for n in networks if part in n)
        if any(part in n for n in networks):
            metrics[f"train/metrics/grad_norm/{part}"] = jnp.sqrt(square)
            whole += square
    clipped = jnp.mean(jnp.stack([n["clipped"] for n in networks]))
    return metrics | {"train/metrics/grad_norm/all": jnp.sqrt(whole), "train/metrics/grad_clip_fraction": clipped}


def critic_metrics(q: Array, error: Array, target: Array) -> Numbers:
    """Of action values [n_critics, B], their errors, and what they were to be [B]."""
    return {
        "train/metrics/q_mean": jnp.mean(q),
        "train/metrics/q_max": jnp.max(jnp.abs(q)),
        "train/metrics/td_error": jnp.mean(jnp.abs(error)),
        "train/data/return_mean": jnp.mean(target),
        "train/data/return_std": jnp.std(target),
    }


def polyak(target: Array, online: Array, tau: Array | float) -> Array:
    return target + tau * (online - target)


def run_steps(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, rows: Any, count: int) -> tuple[Any, Any]:
    """`count` gradient steps over minibatches [G, …] in one loop; a single one needs none."""
    if count > 1:
        return jax.lax.scan(step, start, rows)
    end, made = step(start, jax.tree.map(lambda x: x[0], rows))
    return end, jax.tree.map(lambda x: x[None], made)


def parameter_report(before: Any, after: Any, target: Any | None, online: Any) -> Numbers:
    """Sizes of an epoch's parameters: all of them before and after, and the target network beside its online twin."""
    flat = lambda tree: Layout.of(tree).flatten(tree)  # noqa: E731
    old, new = flat(before), flat(after)
    metrics = {
        "train/metrics/update_norm_ratio": norm(new - old) / (norm(old) + 1e-8),
        "train/metrics/param_norm": norm(new),
        "train/metrics/param_checksum": jnp.sum(new),
    }
    if target is not None:
        ours = flat(online)
        metrics["train/metrics/target_distance"] = norm(flat(target) - ours) / (norm(ours) + 1e-8)
    return metrics
