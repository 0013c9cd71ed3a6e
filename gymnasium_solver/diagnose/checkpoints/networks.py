"""What the weights of a checkpoint tell by themselves: broken numbers, layers that do nothing, sizes out of range."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.checkpoints.finding import Finding
from gymnasium_solver.diagnose.checkpoints.layers import (
    Arrays,
    Layer,
    chains_of,
    is_moment,
    is_parameter,
    is_replay,
    is_target,
    layers_of,
)
from gymnasium_solver.diagnose.checkpoints.units import dead_units, duplicate_units
from gymnasium_solver.plain import listed

# Weights start with a root mean square of about 1/√inputs. Trained ones of shipped configs came to 1 to 10 times that,
# and to 79 times in a solved run (MountainCar-v0:dqn), so larger ones alone say little.
_NOTED, _LARGE, _EXPLODED = 50.0, 200.0, 2000.0
_LOG_STD = (-5.0, 2.0)
_LOG_STD_EXTREME = (-10.0, 5.0)
_LOG_ALPHA = (-12.0, 5.0)


def network_findings(
    arrays: Arrays, config: Mapping[str, Any], second_moments: Arrays, optimizer_steps: float
) -> Iterator[Finding]:
    """`second_moments` by the name of the parameter, where an optimiser's state can be told apart."""
    yield from _non_finite(arrays)
    # A tensor with NaN in it would poison every comparison below; it has been named.
    sound = {name: array for name, array in arrays.items() if array.dtype.kind == "f" and np.isfinite(array).all()}
    layers = layers_of(sound)
    yield from _zero_layers(layers)
    moments = second_moments if optimizer_steps >= 100 else {}
    for chain in chains_of(layers):
        yield from dead_units(chain, config, "obs_statistics/var" in arrays, moments)
        yield from duplicate_units(chain)
    yield from _exploding(layers)
    yield from _out_of_range(sound)


def _non_finite(arrays: Arrays) -> Iterator[Finding]:
    counts = {
        name: int(array.size - np.isfinite(array).sum())
        for name, array in arrays.items()
        if array.dtype.kind in "fc" and not is_replay(name) and not name.startswith("obs_statistics/")
    }
    broken = {name: count for name, count in counts.items() if count}
    moments = {name: count for name, count in broken.items() if is_moment(name)}
    weights = {n: c for n, c in broken.items() if n not in moments and (is_parameter(n) or is_target(n))}
    rest = {n: c for n, c in broken.items() if n not in moments and n not in weights}
    remedy = "continue from an earlier checkpoint with a lower learning rate and a gradient clip (max_grad_norm)"
    for found, kind, words in (
        (weights, "non-finite-parameters", "parameters"),
        (moments, "non-finite-optimizer-state", "values of the optimiser state"),
        (rest, "non-finite-state", "values of the training state"),
    ):
        if found:
            yield Finding(
                kind,
                "critical",
                f"{sum(found.values())} {words} are NaN or infinite, in "
                + listed((f"{name} ({count} of {arrays[name].size})" for name, count in found.items()), 3),
                tuple(found),
                sum(found.values()),
                "training diverged; everything computed with them is NaN too, and further training cannot repair it",
                remedy,
            )


def _zero_layers(layers: Mapping[str, Layer]) -> Iterator[Finding]:
    zero = [name for name, layer in layers.items() if not layer.weight.any()]
    if zero:
        yield Finding(
            "zero-layer",
            "high",
            f"all weights of {listed(zero, 3)} are exactly 0",
            tuple(zero),
            len(zero),
            "the layer outputs only its bias, and the layers before it get no gradient through it",
            "initialise weights at random (orthogonal, or uniform by the number of inputs), never with zeros",
        )


def _exploding(layers: Mapping[str, Layer]) -> Iterator[Finding]:
    times = {
        name: float(np.sqrt(np.mean(np.square(layer.weight, dtype=np.float64)) * len(layer.weight)))
        for name, layer in layers.items()
    }
    large = sorted((name for name in times if times[name] >= _NOTED), key=lambda name: -times[name])
    if large:
        most = times[large[0]]
        yield Finding(
            "exploding-weights",
            "high" if most >= _EXPLODED else "medium" if most >= _LARGE else "info",
            "weights are much larger than at initialisation (root mean square against 1/√inputs): "
            + listed((f"{name} {times[name]:.3g} times" for name in large), 3),
            tuple(large),
            most,
            "such a layer saturates the ones after it, and small optimiser steps no longer change it",
            "lower the learning rate, scale or normalise rewards and observations, or use weight_decay with adamw",
        )


def _out_of_range(arrays: Arrays) -> Iterator[Finding]:
    for name, array in arrays.items():
        leaf = name.replace("/", ".").rpartition(".")[2].lower()
        if not array.size or not is_parameter(name):
            continue
        if leaf in ("log_std", "logstd", "actor_logstd", "actor_log_std"):
            # gSDE: a unit of the policy's body has a row of its own, and their variances add up.
            is_sde = array.ndim == 2 and len(array) > 1
            yield from _log_std(name, np.median(array, axis=0) + 0.5 * math.log(len(array)) if is_sde else array)
        elif leaf in ("log_alpha", "log_ent_coef"):
            yield from _log_alpha(name, float(array.reshape(-1)[0]))


def _log_std(name: str, log_std: np.ndarray) -> Iterator[Finding]:
    outside = (log_std < _LOG_STD[0]) | (log_std > _LOG_STD[1])
    if not outside.any():
        return
    extreme = float(log_std.flat[int(np.argmax(np.abs(log_std - np.mean(_LOG_STD))))])
    small = extreme < _LOG_STD[0]
    yield Finding(
        "log-std-out-of-range",
        "medium" if _LOG_STD_EXTREME[0] <= extreme <= _LOG_STD_EXTREME[1] else "high",
        f"{name} is {extreme:.3g}, a standard deviation of {math.exp(min(extreme, 700)):.3g}; {int(outside.sum())} of "
        f"{log_std.size} are outside {_LOG_STD[0]:g} to {_LOG_STD[1]:g}",
        (name,),
        extreme,
        "the policy no longer explores and its ratios explode" if small else "actions are noise, clipped at the bounds",
        "raise ent_coef, lower policy_lr" if small else "lower ent_coef and policy_lr, check the reward's scale",
    )


def _log_alpha(name: str, value: float) -> Iterator[Finding]:
    if not _LOG_ALPHA[0] <= value <= _LOG_ALPHA[1]:
        low = value < _LOG_ALPHA[0]
        yield Finding(
            "temperature-out-of-range",
            "medium",
            f"{name} is {value:.3g}, a temperature of {math.exp(min(value, 700)):.3g}",
            (name,),
            value,
            "entropy no longer counts: the policy may have collapsed" if low else "entropy outweighs the reward",
            "check target_entropy (−number of action dimensions), ent_coef_lr and the reward's scale",
        )
