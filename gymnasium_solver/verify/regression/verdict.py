"""Did a config become slower to learn? Its seeds now against the seeds of a stored baseline.

Steps to the threshold are compared as logarithms: twice as many is as much worse from 10k to 20k as from 100k to 200k.
A seed that never got there counts with its whole budget, which is less than it would have needed: the test errs towards
"no difference". A threshold is only seen to be reached at an evaluation, so seeds that were solved at the same one are
spread over the steps since the evaluation before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gymnasium_solver.statistics import ALPHA, FEWEST, holm, seeds_needed, welch

Verdict = Literal["regressed", "improved", "unchanged", "identical", "cannot tell", "failed", "no baseline"]
Metric = Literal["steps", "return"]

# A difference that can be shown but is smaller is not worth a failing build; spec: 10 % is where `medium` begins.
SMALLEST = 0.1
# What "unchanged" rules out: this much more steps, this share of the return less.
TOLERANCE: dict[Metric, float] = {"steps": 0.5, "return": 0.2}


@dataclass(frozen=True)
class Measured:
    """What a config brought, one entry a seed."""

    threshold: float | None
    max_env_steps: int
    seeds: tuple[int, ...]
    solved: tuple[bool, ...]
    env_steps: tuple[int, ...]
    reward: tuple[float, ...]
    seconds: tuple[float, ...]

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Measured:
        lists = {name: tuple(row[name]) for name in ("seeds", "solved", "env_steps", "reward", "seconds")}
        return cls(row["threshold"], row["max_env_steps"], **lists)

    def steps(self, budget: int) -> list[float]:
        """Of a seed that was not solved: the budget, or its own if that is smaller."""
        return [
            float(min(n, budget)) if ok else float(budget) for n, ok in zip(self.env_steps, self.solved, strict=True)
        ]

    def outcome(self, seed: int) -> tuple[Any, ...]:
        """What a repeated training has to bring again, whatever the machine's speed."""
        at = self.seeds.index(seed)
        return self.solved[at], self.env_steps[at], round(self.reward[at], 2)

    @property
    def pace(self) -> float:
        """Env steps per second, of the middle seed."""
        return float(np.median([n / max(s, 1e-9) for n, s in zip(self.env_steps, self.seconds, strict=True)]))


@dataclass(frozen=True)
class Change:
    """Of the cost of learning: how much larger it is now, as a share, with what the data still allow."""

    metric: Metric
    share: float
    least: float
    most: float
    p_worse: float
    p_better: float
    seeds_needed: int | None  # a side, to rule out more than the tolerance

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.metric]


def is_identical(before: Measured, now: Measured) -> bool:
    """Every seed that both have brought the same, and now has no others."""
    return set(now.seeds) <= set(before.seeds) and all(before.outcome(s) == now.outcome(s) for s in now.seeds)


def change(before: Measured, now: Measured, slot: float) -> Change:
    """By steps where at least half of the baseline's seeds got there, else by return; `slot`: env steps between
    evaluations."""
    if sum(before.solved) * 2 >= len(before.solved):
        budget = min(before.max_env_steps, now.max_env_steps)
        costs = [np.log(_spread(side.steps(budget), side.solved, slot)) for side in (before, now)]
        return _change("steps", *costs)
    scale = abs(float(np.mean(before.reward))) or 1.0
    return _change("return", *(-np.asarray(side.reward) / scale for side in (before, now)))


def _spread(steps: Sequence[float], solved: Sequence[bool], slot: float) -> np.ndarray:
    spread = np.asarray(steps, dtype=float)
    slots = np.round(spread / slot)
    for index in np.unique(slots[np.asarray(solved)]):
        tied = np.flatnonzero((slots == index) & np.asarray(solved))
        width = min(slot, float(spread[tied].min()))
        spread[tied] -= width * (np.arange(tied.size) + 0.5) / tied.size
    return spread


def _change(metric: Metric, before: np.ndarray, now: np.ndarray) -> Change:
    from scipy.special import stdtrit

    difference = float(now.mean() - before.mean())
    errors = [side.var(ddof=1) / side.size for side in (before, now)]
    error = math.sqrt(sum(errors))
    reach = 0.0
    if error > 0:
        freedom = error**4 / sum(e**2 / (side.size - 1) for e, side in zip(errors, (before, now), strict=True))
        reach = error * float(stdtrit(freedom, 1 - ALPHA))
    p = welch(before, now)
    worse = p / 2 if difference > 0 else 1 - p / 2
    deviation = math.sqrt((before.var(ddof=1) + now.var(ddof=1)) / 2)
    tolerated = math.log1p(TOLERANCE[metric]) if metric == "steps" else TOLERANCE[metric]
    as_share = math.expm1 if metric == "steps" else float
    return Change(
        metric=metric,
        share=as_share(difference),
        least=as_share(difference - reach),
        most=as_share(difference + reach),
        p_worse=worse,
        p_better=1 - worse,
        seeds_needed=seeds_needed(tolerated / deviation) if deviation > 0 else None,
    )


def verdicts(changes: Mapping[str, Change]) -> dict[str, Verdict]:
    """One a config. That any is wrongly called regressed happens at most 5 times in 100, however many there are (Holm);
    the same holds for improved."""
    worse = dict(zip(changes, holm([c.p_worse for c in changes.values()]), strict=True))
    better = dict(zip(changes, holm([c.p_better for c in changes.values()]), strict=True))
    found: dict[str, Verdict] = {}
    for name, one in changes.items():
        if worse[name] <= ALPHA and one.share >= SMALLEST:
            found[name] = "regressed"
        elif better[name] <= ALPHA and one.share <= -SMALLEST / (1 + SMALLEST):
            found[name] = "improved"
        else:
            found[name] = "unchanged" if one.most <= one.tolerance else "cannot tell"
    return found


def has_enough(before: Measured, now: Measured) -> bool:
    return min(len(before.seeds), len(now.seeds)) >= FEWEST
