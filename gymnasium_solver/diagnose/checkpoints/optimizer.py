"""Optimisers in a checkpoint: their steps against the run's, and whether gradients ever reached them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.checkpoints.finding import Finding, number
from gymnasium_solver.diagnose.checkpoints.layers import TORCH_MOMENT, Arrays, is_parameter, natural, part_of
from gymnasium_solver.plain import listed


@dataclass
class OptimizerState:
    """Of one network. Moments go by the name of their parameter where that can be told."""

    name: str
    steps: float | None = None
    second: dict[str, np.ndarray] = field(default_factory=dict)


def optimizers_of(arrays: Arrays, meta: Mapping[str, Any]) -> list[OptimizerState]:
    found: dict[str, OptimizerState] = {}
    for name, array in arrays.items():
        if name.startswith("optimizer/"):
            _absorb_ours(found, arrays, name.split("/")[1:], array)
        elif moment := TORCH_MOMENT.fullmatch(name):
            state = found.setdefault(moment["optimizer"], OptimizerState(moment["optimizer"] or "optimizer"))
            if moment["kind"] == "step" and array.size == 1:
                state.steps = max(state.steps or 0.0, float(array.reshape(())))
            elif moment["kind"] in ("exp_avg_sq", "square_avg"):
                state.second[moment["parameter"]] = array
    for state in found.values():
        if all(key.isdigit() for key in state.second):
            state.second = _named(state, arrays)
    for prefix in meta.get("empty_optimizers", ()):
        found.setdefault(prefix, OptimizerState(prefix, 0.0))
    return list(found.values())


def _absorb_ours(found: dict[str, OptimizerState], arrays: Arrays, path: list[str], array: np.ndarray) -> None:
    """`actor/nu`, `count`, `0/nu/trunk/…`: of a network of its own or of all, one vector or a tensor a parameter."""
    network = path[0] if any(name.startswith(f"params/{path[0]}/") for name in arrays) and len(path) > 1 else ""
    state = found.setdefault(network, OptimizerState(network or "optimizer"))
    if path[-1] == "count" and array.size == 1:
        state.steps = max(state.steps or 0.0, float(array.reshape(())))
        return
    kind = next((kind for kind in ("nu", "square") if kind in path), None)
    if kind is None:
        return
    root = f"params/{network}/" if network else "params/"
    rest = "/".join(path[path.index(kind) + 1 :])
    if rest:
        state.second[root + rest] = array
        return
    names = sorted((name for name in arrays if name.startswith(root)), key=natural)
    sizes = [arrays[name].size for name in names]
    if sum(sizes) != array.size:
        state.second["/".join(["optimizer", *path])] = array
        return
    for name, piece in zip(names, np.split(array.reshape(-1), np.cumsum(sizes)[:-1]), strict=True):
        state.second[name] = piece.reshape(arrays[name].shape)


def _named(state: OptimizerState, arrays: Arrays) -> dict[str, np.ndarray]:
    """PyTorch numbers parameters in the order of the model: they are that stretch of them which has the same shapes."""
    moments = {int(number): moment for number, moment in state.second.items()}
    names = [name for name, array in arrays.items() if is_parameter(name) and array.dtype.kind == "f"]
    starts = [
        start
        for start in range(len(names) - max(moments, default=0))
        if all(arrays[names[start + number]].shape == moment.shape for number, moment in moments.items())
    ]
    if len(starts) == 1:
        return {names[starts[0] + number]: moment for number, moment in moments.items()}
    return {f"{state.name}.{number}.moment": moment for number, moment in moments.items()}


def optimizer_findings(
    optimizers: list[OptimizerState], config: Mapping[str, Any], gradient_steps: float | None
) -> Iterator[Finding]:
    for state in optimizers:
        renewed = config.get("reset_interval") is not None  # networks begin anew, and their optimisers with them
        if state.steps == 0 and gradient_steps and not renewed:
            yield Finding(
                "optimizer-never-stepped",
                "high",
                f"the optimiser {state.name} has taken no step, while the run has taken {gradient_steps:,.0f}",
                (state.name,),
                0.0,
                "this network was never trained, or its optimiser was recreated or not restored",
                "give the optimiser the parameters of the acting policy, call its step, and save and load its state",
            )
        elif state.steps and gradient_steps:
            yield from _steps_mismatch(state, config, gradient_steps, renewed)
        steps = gradient_steps if state.steps is None else state.steps  # RMSProp does not count
        if steps:
            yield from _without_gradient(state, steps, config)


def _steps_mismatch(
    state: OptimizerState, config: Mapping[str, Any], gradient_steps: float, renewed: bool
) -> Iterator[Finding]:
    steps = state.steps or 0.0
    delay = number(config.get("policy_delay")) or 1.0
    expected = gradient_steps / delay if "actor" in state.name else gradient_steps
    # Updates that a KL bound cuts short are counted in whole epochs.
    least, most = (0.5, 2.0) if config.get("target_kl") else (0.9, 1.1)
    too_few = steps < least * expected and not renewed
    if abs(steps - expected) > 5 and (too_few or steps > most * expected):
        yield Finding(
            "optimizer-steps-mismatch",
            "medium",
            f"the optimiser {state.name} has taken {steps:,.0f} steps, but the run counts {expected:,.0f}",
            (state.name,),
            steps / expected,
            "its state does not belong to these parameters: not restored on resume, or from another checkpoint",
            "save and restore the optimiser together with the parameters",
        )


def _without_gradient(state: OptimizerState, steps: float, config: Mapping[str, Any]) -> Iterator[Finding]:
    if not state.second:
        return
    meaning = "no gradient has reached it: cut off from the loss, multiplied by 0, or behind units that are all dead"
    remedy = "check the loss, its coefficients, stop_gradient/detach, and that the optimiser has these parameters"
    if not any(moment.any() for moment in state.second.values()):
        yield Finding(
            "optimizer-without-gradient",
            "high",
            f"all second moments of the optimiser {state.name} are 0 after {steps:,.0f} steps",
            (state.name,),
            steps,
            meaning,
            remedy,
        )
        return
    meant = config.get("vf_coef") == 0 or config.get("baseline") == "none"
    moved: dict[str, dict[str, bool]] = {}  # of each part, its layers
    for name, moment in state.second.items():
        if not (meant and ("critic" in name or "value" in name)):
            layers, layer = moved.setdefault(part_of(name), {}), re.sub(r"[/.]\w+$", "", name)
            layers[layer] = layers.get(layer, False) or bool(moment.any())
    still: list[str] = []
    for part, layers in moved.items():
        idle = [layer for layer, has_moved in layers.items() if not has_moved]
        still += [part] if len(idle) == len(layers) else idle
    if still:
        yield Finding(
            "part-without-gradient",
            "medium",
            f"second moments of {listed(still, 3)} are all 0 after {steps:,.0f} steps, unlike those of the rest",
            tuple(still),
            steps,
            meaning,
            remedy,
        )
