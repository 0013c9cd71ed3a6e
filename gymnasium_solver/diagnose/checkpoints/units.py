"""Hidden units that do nothing, or what another one does already."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.checkpoints.finding import Finding, Severity, number
from gymnasium_solver.diagnose.checkpoints.layers import Arrays, Chain, Layer

_NEARLY_ZERO = 1e-6  # of the largest weight of a layer
# Shares of a layer. Some dead units are normal for ReLU, half of them where the input is one number of one sign.
_CAUTION, _HALF = 0.25, 0.5


def dead_units(chain: Chain, config: Mapping[str, Any], normalized: bool, second_moments: Arrays) -> Iterator[Finding]:
    following = [[layer] for layer in chain.hidden[1:]] + [chain.readers]
    ceilings = _ceilings(chain.hidden, config, normalized) if config.get("activation") == "relu" else None
    for index, (layer, readers) in enumerate(zip(chain.hidden, following, strict=True)):
        if not layer.weight.any():  # reported as a whole
            continue
        reasons = {
            "no incoming weight": _unread(layer.weight.T),
            "no outgoing weight": _without_readers(layer, readers),
            "a ReLU that can never fire": ceilings[index] <= 0 if ceilings else np.zeros(layer.units, bool),
            "no gradient": _without_gradient(layer, second_moments),
        }
        dead = np.logical_or.reduce(list(reasons.values()))
        count, share = int(dead.sum()), float(dead.mean())
        if not count:
            continue
        told = ", ".join(f"{int(mask.sum())} have {reason}" for reason, mask in reasons.items() if mask.any())
        yield Finding(
            "dead-units",
            _by_share(share),
            f"{count} of {layer.units} units of {layer.name} do nothing: {told}",
            (layer.name,),
            share,
            "they learn nothing and carry no signal (a ReLU that never fires, inputs always 0): the network is "
            "smaller than it looks",
            "lower the learning rate or the update ratio, or use tanh, silu or layer_norm; a few dead units are normal",
        )


def _by_share(share: float) -> Severity:
    if share == 1:
        return "high"
    if share >= _HALF:
        return "medium"
    return "low" if share >= _CAUTION else "info"


def _unread(rows: np.ndarray) -> np.ndarray:
    """Which rows are (nearly) zero, next to the largest of them."""
    largest = np.abs(rows).max(axis=1)
    return largest <= _NEARLY_ZERO * largest.max() if largest.any() else np.zeros(len(rows), bool)


def _without_readers(layer: Layer, readers: list[Layer]) -> np.ndarray:
    parts = [reader.by_input(layer.units) for reader in readers]
    if not parts or any(part is None for part in parts):
        return np.zeros(layer.units, bool)
    return _unread(np.concatenate([part.reshape(layer.units, -1) for part in parts if part is not None], axis=1))


def _without_gradient(layer: Layer, second_moments: Arrays) -> np.ndarray:
    """Units whose weights and bias have had no gradient for as long as Adam remembers."""
    weight, bias = (second_moments.get(layer.tensor(leaf)) for leaf in ("weight", "bias"))
    if weight is None or bias is None:
        return np.zeros(layer.units, bool)
    by_unit = weight.reshape(layer.units, -1) if layer.outputs_first else weight.reshape(-1, layer.units).T
    idle = ~by_unit.any(axis=1) & (bias == 0)
    return idle & (not idle.all())  # all of them: that is told of the optimiser, and is not the units' fault


def _ceilings(hidden: list[Layer], config: Mapping[str, Any], normalized: bool) -> list[np.ndarray]:
    """Upper bounds of what goes into each ReLU, by interval arithmetic: at or below 0 it never fires. The inputs are
    known where they are images, or normalised and clipped."""
    bounds = []
    above: np.ndarray | None = None  # of the layer before; it puts out nothing below 0
    for layer in hidden:
        bias = np.zeros(layer.units) if layer.bias is None else layer.bias
        by_input = layer.by_input(len(above)) if above is not None else None
        if layer.scale is not None and layer.shift is not None:
            # Numbers with mean 0 and standard deviation 1 are at most √n.
            bound = np.abs(layer.scale) * math.sqrt(layer.units) + layer.shift
        elif above is None:
            if layer.is_convolution:
                bound = bias + np.maximum(layer.weight, 0).sum(axis=0)
            elif normalized:
                bound = bias + (number(config.get("clip_obs")) or 10.0) * np.abs(layer.weight).sum(axis=0)
            else:
                bound = np.full(layer.units, np.inf)
        elif by_input is None:  # actions join here
            bound = np.full(layer.units, np.inf)
        else:
            excited = np.where(by_input > 0, by_input, 0).sum(axis=1)  # [units before, units]
            reach = np.zeros_like(excited, dtype=np.float64)
            np.multiply(excited, np.maximum(above, 0)[:, None], out=reach, where=excited > 0)
            bound = bias + reach.sum(axis=0)
        bounds.append(bound)
        above = bound
    return bounds


def duplicate_units(chain: Chain) -> Iterator[Finding]:
    for layer in chain.hidden:
        columns = layer.weight if layer.bias is None else np.vstack([layer.weight, layer.bias])
        sizes = np.abs(layer.weight).max(axis=0)
        columns = columns[:, sizes > 1e-3 * sizes.max()]  # those (nearly) without a weight are dead, not doubled
        copies = _copies(columns) if columns.size else 0
        share = copies / layer.units
        if copies:
            yield Finding(
                "duplicate-units",
                "high" if share >= _HALF else "medium" if share >= 0.1 else "low",
                f"{copies} of {layer.units} units of {layer.name} are copies of another",
                (layer.name,),
                share,
                "identical units get identical gradients and stay identical: the layer acts as if it had fewer",
                "initialise weights at random, not with a constant; check code that copies or ties weights",
            )


def _copies(columns: np.ndarray) -> int:
    """How many columns equal another one. Equal columns have equal projections, and sorting numbers is cheap."""
    largest = np.abs(columns).max()
    projected = np.random.default_rng(0).standard_normal(len(columns)) @ columns
    ranked = columns[:, np.argsort(projected)]
    near = np.flatnonzero(np.diff(np.sort(projected)) <= 1e-5 * largest * math.sqrt(len(columns)))
    return int((np.abs(ranked[:, near] - ranked[:, near + 1]).max(axis=0, initial=0) <= 1e-5 * largest).sum())
