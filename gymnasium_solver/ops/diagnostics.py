"""What an update reports about the networks, for diagnosis."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import norm

Metrics = dict[str, Array]
# Of the layer's mean spread: a unit below it is dormant (cf. https://arxiv.org/abs/2302.12902).
_DEAD_UNIT_SHARE = 0.025


def dead_units(layers: list[Array]) -> Array:
    """Share of hidden units whose output hardly varies over these observations; each layer is [B, width]."""
    spreads = [jnp.std(layer, axis=0) for layer in layers]
    dead = [s <= jnp.maximum(_DEAD_UNIT_SHARE * jnp.mean(s), 1e-4) for s in spreads]
    return jnp.mean(jnp.concatenate(dead).astype(jnp.float32))


def saturation(before_tanh: Array) -> Array:
    """Share of actions that the tanh holds at its bound, where it passes no gradient."""
    return jnp.mean((jnp.abs(before_tanh) > 3.0).astype(jnp.float32))


def entropy_metrics(entropy: Array, max_entropy: float | None) -> Metrics:
    metrics = {"train/metrics/entropy": entropy, "train/loss/entropy": -entropy}
    if max_entropy:
        metrics["train/metrics/entropy_relative"] = entropy / max_entropy
    return metrics


def critic_metrics(q: Array, error: Array, target: Array) -> Metrics:
    """Of action values [n_critics, B], their errors, and their targets [B]."""
    return {
        "train/metrics/q_mean": jnp.mean(q),
        "train/metrics/q_max": jnp.max(jnp.abs(q)),
        "train/metrics/td_error": jnp.mean(jnp.abs(error)),
        "train/data/return_mean": jnp.mean(target),
        "train/data/return_std": jnp.std(target),
    }


def change_metrics(before: Array, after: Array) -> Metrics:
    """Parameter vectors before and after learning."""
    return {
        "train/metrics/update_norm_ratio": norm(after - before) / (norm(before) + 1e-8),
        "train/metrics/param_norm": norm(after),
        "train/metrics/param_checksum": jnp.sum(after),
    }


def parameter_metrics(before: Any, after: Any, target: Any, online: Any) -> Metrics:
    """Parameter trees: all before and after learning, and the target network beside its online twin."""
    flat = lambda tree: Layout.of(tree).flatten(tree)  # noqa: E731
    ours = flat(online)
    distance = norm(flat(target) - ours) / (norm(ours) + 1e-8)
    return change_metrics(flat(before), flat(after)) | {"train/metrics/target_distance": distance}
