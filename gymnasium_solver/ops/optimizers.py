"""Optimisers named in a config, without their learning rate: that is a scheduled input of every update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.ops.flat import Layout


class Optimizer(NamedTuple):
    """The two functions of Optax's transformations that are called here."""

    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], tuple[Any, Any]]


def adam(eps: float, b1: float = 0.9, b2: float = 0.999) -> Optimizer:
    """https://arxiv.org/abs/1412.6980, as Optax's `scale_by_adam`. Written here because almost every run uses it, and
    importing Optax takes a tenth of the time in which a small task is solved."""

    def init(params: Array) -> dict[str, Array]:
        return {"count": jnp.zeros((), jnp.int32), "mu": jnp.zeros_like(params), "nu": jnp.zeros_like(params)}

    def update(gradient: Array, state: dict[str, Array], params: Array) -> tuple[Array, dict[str, Array]]:
        count = state["count"] + 1
        mu = (1 - b1) * gradient + b1 * state["mu"]
        nu = (1 - b2) * jnp.square(gradient) + b2 * state["nu"]
        steps = count.astype(jnp.float32)
        direction = (mu / (1 - b1**steps)) / (jnp.sqrt(nu / (1 - b2**steps)) + eps)
        return direction, {"count": count, "mu": mu, "nu": nu}

    return Optimizer(init, update)


def make_optimizer(name: str, *, eps: float, weight_decay: float) -> Any:
    if name == "adam":
        return adam(eps)
    import optax

    decay = [optax.add_decayed_weights(weight_decay)] if weight_decay else []
    if name == "adamw":
        return optax.chain(optax.scale_by_adam(eps=eps), *decay)
    if name == "sgd":
        return optax.identity()
    if name == "rmsprop":
        return optax.scale_by_rms(decay=0.99, eps=eps, eps_in_sqrt=False)
    if name == "lamb":
        return optax.chain(optax.scale_by_adam(eps=eps), *decay, optax.scale_by_trust_ratio())
    if name == "lion":
        return optax.chain(optax.scale_by_lion(), *decay)
    if name == "muon":
        from optax.contrib import muon

        return muon(-1.0, weight_decay=weight_decay, adam_eps_root=0.0)
    raise ValueError(f"unknown optimizer {name!r}")


# Optimisers that look at whole tensors; the others work on one flat vector of all parameters.
_BY_TENSOR = ("lamb", "muon")


def initial_state(name: str, optimizer: Any, params: Any) -> Any:
    """The optimiser's first state: zeros for all but Muon, and made by NumPy, because JAX would compile a program
    for each shape."""
    if name == "muon":
        return jax.tree.map(np.asarray, optimizer.init(params))
    if name not in _BY_TENSOR:
        params = np.zeros(sum(np.size(leaf) for leaf in jax.tree.leaves(params)), np.float32)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(optimizer.init, params))


def descent_direction(
    name: str, optimizer: Any, gradient: Array, state: Any, params: Array, layout: Layout
) -> tuple[Array, Any]:
    """What to subtract from the parameter vector, before the learning rate, and the optimiser's next state."""
    if name not in _BY_TENSOR:
        step, state = optimizer.update(gradient, state, params)
        return step, state
    steps, state = optimizer.update(layout.unflatten(gradient), state, layout.unflatten(params))
    return layout.flatten(steps), state


def norm(vector: Array) -> Array:
    return jnp.sqrt(jnp.sum(jnp.square(vector)))
