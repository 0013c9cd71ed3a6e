"""What is in a checkpoint, and what is wrong with it: NumPy only, no judgement of how well the policy acts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.checkpoints.finding import Finding, between, number, worst_first
from gymnasium_solver.diagnose.checkpoints.layers import Arrays, is_parameter, is_replay, natural, part_of
from gymnasium_solver.diagnose.checkpoints.networks import network_findings
from gymnasium_solver.diagnose.checkpoints.optimizer import optimizer_findings, optimizers_of
from gymnasium_solver.diagnose.checkpoints.state import replay_findings, statistics_findings, target_findings
from gymnasium_solver.plain import listed

__all__ = ["Audit", "Finding", "Part", "audit"]

_COUNTER = re.compile(r"[./](count|step|num_batches_tracked)$")
_FEW_STEPS = 20  # gradient steps after which something ought to have moved


@dataclass(frozen=True)
class Part:
    """One part of the network or of the training's state; norm, largest and zeros are those of its real numbers,
    counters left out."""

    name: str
    tensors: int
    values: int
    norm: float
    largest: float
    non_finite: int
    zero_share: float
    is_trained: bool
    drift: float | None = None  # distance from the earlier checkpoint, relative to its norm there
    drift_per_step: float | None = None


@dataclass(frozen=True)
class Audit:
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]  # the worst first

    @property
    def is_healthy(self) -> bool:
        return all(finding.severity in ("low", "info") for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {"healthy": self.is_healthy, **asdict(self)}


def audit(arrays: Arrays, meta: Mapping[str, Any], *, earlier: Arrays | None = None) -> Audit:
    """Look at named arrays. Of the metadata, `progress` (env_steps, updates), `config` (the run's, for its
    activation and intervals) and `earlier_progress` are used, where they are there."""
    progress, config = meta.get("progress") or {}, meta.get("config") or {}
    gradient_steps, env_steps = number(progress.get("updates")), number(progress.get("env_steps"))
    optimizers = optimizers_of(arrays, meta)
    moments = {name: moment for state in optimizers for name, moment in state.second.items()}
    steps = max((state.steps or 0.0 for state in optimizers), default=0.0)
    since = between(meta, "updates")
    findings = [
        *network_findings(arrays, config, moments, steps),
        *optimizer_findings(optimizers, config, gradient_steps),
        *target_findings(arrays, earlier, meta, gradient_steps),
        *statistics_findings(arrays, env_steps),
        *replay_findings(arrays),
        *_frozen(arrays, earlier or {}, since, config),
    ]
    return Audit(_parts(arrays, earlier, since), worst_first(findings))


def _parts(arrays: Arrays, earlier: Arrays | None, steps: float | None) -> tuple[Part, ...]:
    members: dict[str, list[str]] = {}
    for name in sorted(arrays, key=natural):
        if not is_replay(name):
            members.setdefault(part_of(name), []).append(name)
    parts = [_part(part, names, arrays, earlier or {}, steps) for part, names in members.items()]
    return tuple(sorted(parts, key=lambda part: not part.is_trained))


def _part(name: str, names: list[str], arrays: Arrays, earlier: Arrays, steps: float | None) -> Part:
    # One tensor after the other: a large network need not be in memory twice.
    measured = [each for each in names if arrays[each].dtype.kind == "f" and not _COUNTER.search(each)]
    size = sum(arrays[each].size for each in measured)
    finite = sum(int(np.isfinite(arrays[each]).sum()) for each in measured)
    zeros = sum(int((arrays[each] == 0).sum()) for each in measured)
    trained = all(is_parameter(each) for each in names)
    drift = None
    if trained and all(each in earlier and earlier[each].shape == arrays[each].shape for each in names):
        moved = math.hypot(*(_norm(np.subtract(arrays[each], earlier[each], dtype=np.float64)) for each in measured))
        drift = moved / max(math.hypot(*(_norm(earlier[each]) for each in measured)), 1e-12)
    return Part(
        name=name,
        tensors=len(names),
        values=sum(arrays[each].size for each in names),
        norm=math.hypot(*(_norm(arrays[each]) for each in measured)),
        largest=max((float(np.abs(_finite(arrays[each])).max(initial=0)) for each in measured), default=0.0),
        non_finite=size - finite,
        zero_share=zeros / size if size else 0.0,
        is_trained=trained,
        drift=drift,
        drift_per_step=drift / steps if drift is not None and steps else None,
    )


def _finite(array: np.ndarray) -> np.ndarray:
    return array[np.isfinite(array)]


def _norm(array: np.ndarray) -> float:
    return float(np.linalg.norm(_finite(array).astype(np.float64)))


def _frozen(arrays: Arrays, earlier: Arrays, steps: float | None, config: Mapping[str, Any]) -> Iterator[Finding]:
    """Layers that are as they were in the earlier checkpoint, although gradient steps were made since."""
    unused = config.get("vf_coef") == 0 or config.get("baseline") == "none"
    moved = {
        name: not np.array_equal(array, earlier[name])
        for name, array in arrays.items()
        # A table of values rightly stays as it is until the first reward.
        if name in earlier and is_parameter(name) and array.dtype.kind == "f" and name != "params/table" and array.size
        if not (unused and ("critic" in name or "value" in name))
    }
    # A bias may stay where its units are dead, and a scale of 1 is too large for the smallest of steps.
    still = [name for name, has_moved in moved.items() if not has_moved and arrays[name].ndim > 1]
    if not still or config.get("reset_interval") is not None or (steps is not None and steps < _FEW_STEPS):
        return
    if any(moved.values()):
        yield Finding(
            "frozen-part",
            "high",
            f"unchanged since the earlier checkpoint, unlike the rest: {listed(still, 3)}",
            tuple(still),
            len(still) / len(moved),
            "this part is not trained: no gradient, not in the optimiser, or overwritten at every step",
            "pass its parameters to the optimiser and check what blocks the gradient",
        )
    elif steps:
        yield Finding(
            "parameters-unchanged",
            "critical",
            f"no parameter changed in {steps:,.0f} gradient steps",
            tuple(still),
            0.0,
            "nothing is learnt: a learning rate of 0, or updates that are discarded",
            "check the learning rate in force (train/hp/policy_lr) and its schedule",
        )
