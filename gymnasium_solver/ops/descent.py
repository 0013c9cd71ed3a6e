"""One gradient step, for every algorithm: clip, optimiser, learning rate, and the norms that diagnosis looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import descent_direction, initial_state, make_optimizer

PARTS = ("actor_head", "critic_head", "trunk")
Metrics = dict[str, Array]


class Norms(NamedTuple):
    squares: dict[str, Array]  # squared gradient norm of each part of the network
    clipped: Array  # 1 where the gradient was longer than allowed


class Descent(NamedTuple):
    """Acts on one network's parameters. `step` takes them as a vector (`ops/flat.py`), the optimiser's state, the
    gradients as a tree, the learning rate (one, or one per parameter) and the layout; `step_tree` takes and returns a
    tree, with one learning rate, for wide networks: copying them into a vector and back costs more than it saves."""

    initial: Callable[[Any], Any]
    step: Callable[[Array, Any, Any, Array, Layout], tuple[Array, Any, Norms]]
    step_tree: Callable[[Any, Any, Any, Array], tuple[Any, Any, Norms]]


def make_descent(optimizer: str, *, eps: float, weight_decay: float, max_grad_norm: float | None) -> Descent:
    transform = make_optimizer(optimizer, eps=eps, weight_decay=weight_decay)

    def direction(vector: Array, state: Any, gradients: Any, layout: Layout) -> tuple[Array, Any, Norms]:
        gradient = layout.flatten(gradients)
        squares = {
            part: jnp.sum(jnp.square(gradient[slice(*layout.segments[part])]))
            for part in PARTS
            if part in layout.segments
        }
        clipped = jnp.zeros(())
        if max_grad_norm is not None:
            length = jnp.sqrt(sum(squares.values()))
            clipped = (length > max_grad_norm).astype(jnp.float32)
            gradient *= jnp.minimum(1.0, max_grad_norm / (length + 1e-6))
        found, state = descent_direction(optimizer, transform, gradient, state, vector, layout)
        return found, state, Norms(squares, clipped)

    def step(vector: Array, state: Any, gradients: Any, rate: Array, layout: Layout) -> tuple[Array, Any, Norms]:
        downhill, state, norms = direction(vector, state, gradients, layout)
        return vector - rate * downhill, state, norms

    def step_tree(params: Any, state: Any, gradients: Any, rate: Array) -> tuple[Any, Any, Norms]:
        layout = Layout.of(params)
        downhill, state, norms = direction(layout.flatten(params), state, gradients, layout)
        return jax.tree.map(lambda p, d: p - rate * d, params, layout.unflatten(downhill)), state, norms

    return Descent(lambda params: initial_state(optimizer, transform, params), step, step_tree)


def descent_for(config: Any) -> Descent:
    """As the fields of a config say."""
    return make_descent(
        config.optimizer,
        eps=config.optimizer_eps,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
    )


def gradient_metrics(*networks: Norms) -> Metrics:
    """Gradient norms by part, over all networks that took a step."""
    squares = {
        part: sum((n.squares[part] for n in networks if part in n.squares), jnp.zeros(()))
        for part in PARTS
        if any(part in n.squares for n in networks)
    }
    return {
        **{f"train/metrics/grad_norm/{part}": jnp.sqrt(square) for part, square in squares.items()},
        "train/metrics/grad_norm/all": jnp.sqrt(sum(squares.values())),
        "train/metrics/grad_clip_fraction": jnp.mean(jnp.stack([n.clipped for n in networks])),
    }


def learning_rates(layout: Layout, hp: Mapping[str, Array]) -> Array:
    """One rate for all parameters of an actor-critic, or one per parameter where `value_lr` sets the critic's own."""
    if "value_lr" not in hp:
        return hp["policy_lr"]
    leaf_parts = ("actor_head", "critic_head", "trunk/policy", "trunk/shared", "trunk/value")
    of_critic = ("critic_head", "trunk/value")
    stretches = sorted((*layout.segments[part], part in of_critic) for part in leaf_parts if part in layout.segments)
    return jnp.concatenate(
        [jnp.full(stop - start, hp["value_lr" if critic else "policy_lr"]) for start, stop, critic in stretches]
    )


def polyak(target: Any, online: Any, tau: Array | float) -> Any:
    """A target network's parameters (a vector or a tree), moved a share `tau` towards the online ones."""
    return jax.tree.map(lambda ours, theirs: ours + tau * (theirs - ours), target, online)
