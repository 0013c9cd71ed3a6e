"""Optimisers named in a config, without their learning rate: that is a scheduled input of every update."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from gymnasium_solver.ops.flat import Layout


def make_optimizer(name: str, *, eps: float, weight_decay: float) -> optax.GradientTransformation:
    decay = [optax.add_decayed_weights(weight_decay)] if weight_decay else []
    if name == "adam":
        return optax.scale_by_adam(eps=eps)
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


def initial_state(name: str, optimizer: optax.GradientTransformation, params: Any) -> Any:
    """The optimiser's first state: zeros for all but Muon, and made by NumPy, because JAX would compile a program
    for each shape."""
    if name == "muon":
        return jax.tree.map(np.asarray, optimizer.init(params))
    if name not in _BY_TENSOR:
        params = np.zeros(sum(np.size(leaf) for leaf in jax.tree.leaves(params)), np.float32)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(optimizer.init, params))


def descent_direction(
    name: str, optimizer: optax.GradientTransformation, gradient: Array, state: Any, params: Array, layout: Layout
) -> tuple[Array, Any]:
    """What to subtract from the parameter vector, before the learning rate, and the optimiser's next state."""
    if name not in _BY_TENSOR:
        step, state = optimizer.update(gradient, state, params)
        return step, state
    steps, state = optimizer.update(layout.unflatten(gradient), state, layout.unflatten(params))
    return layout.flatten(steps), state


def norm(vector: Array) -> Array:
    return jnp.sqrt(jnp.sum(jnp.square(vector)))
