"""Which candidate is better than the baseline, and whether that is so: a race first, then a test on fresh seeds.

The race drops the worse half after every round and claims nothing. What wins it is tested against the baseline on seeds
that neither has seen. At most two candidates are tested, at most twice each, at a share of alpha each: whatever the
number of candidates, all claims together are wrong at most alpha of the time when nothing is better (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gymnasium_solver.statistics import (
    ALPHA,
    Bounds,
    improvement_interval,
    is_above,
    probability_of_improvement,
    seeds_for_ranks,
)
from gymnasium_solver.verify.objective import Score, as_numbers, difference, standing

BASELINE = "baseline"

Entry = tuple[str, int]  # candidate and seed
# None where the budget ended before the training did.
Measure = Callable[[Sequence[Entry]], Mapping[Entry, Score | None]]


@dataclass(frozen=True)
class Rules:
    """How many seeds a look at the test takes, and how many candidates are tested."""

    looks: tuple[int, ...] = (5, 10)
    attempts: int = 2
    alpha: float = ALPHA

    @property
    def alpha_of_a_look(self) -> float:
        return self.alpha / (self.attempts * len(self.looks))

    @property
    def seeds_needed(self) -> int:
        """A side, before runs wholly apart are significant."""
        return seeds_for_ranks(self.alpha_of_a_look)


@dataclass
class Standings:
    """Scores by candidate and seed, and in which round each candidate was dropped."""

    scores: dict[str, dict[int, Score]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True  # False where the budget ended it

    def of(self, label: str) -> list[Score]:
        return list(self.scores.get(label, {}).values())

    def ranking(self) -> list[str]:
        """Those that lasted longest first, the better before the worse."""
        rounds = {label: self.dropped.get(label, math.inf) for label in self.scores if self.scores[label]}
        return sorted(rounds, key=lambda label: (rounds[label], standing(self.of(label))), reverse=True)

    def add(self, measured: Mapping[Entry, Score | None]) -> None:
        for (label, seed), one in measured.items():
            if one is None:
                self.is_complete = False
            else:
                self.scores.setdefault(label, {})[seed] = one


def race(labels: Sequence[str], measure: Measure, seeds: Sequence[int]) -> Standings:
    """A round a seed; the better half goes on, two at least."""
    standings, running = Standings(), list(labels)
    for number, seed in enumerate(seeds):
        standings.add(measure([(label, seed) for label in running]))
        if not standings.is_complete:
            break
        running.sort(key=lambda label: standing(standings.of(label)), reverse=True)
        last_round = number == len(seeds) - 1
        kept = len(running) if last_round else max(2, math.ceil(len(running) / 2))
        for label in running[kept:]:
            standings.dropped[label] = number
        running = running[:kept]
    return standings


@dataclass(frozen=True)
class Confirmation:
    """A candidate against the baseline on fresh seeds."""

    label: str
    baseline: list[Score]
    candidate: list[Score]
    p_value: float
    alpha: float  # what the p-value is held against
    verdict: Literal["better", "worse", "no difference shown", "too few seeds"]
    cap: int | None = None  # env steps after which a training counted as not having got there

    @property
    def probability(self) -> float:
        """That a seed of the candidate is better than one of the baseline."""
        return probability_of_improvement(*as_numbers(self.baseline, self.candidate)) if self.baseline else math.nan

    @property
    def probability_interval(self) -> Bounds:
        baseline, candidate = as_numbers(self.baseline, self.candidate)
        return improvement_interval(baseline, candidate)


def confirm(label: str, measure: Measure, seeds: Sequence[int], rules: Rules) -> Confirmation:
    """In batches: at each look the test may claim a difference; seeds are only added while it does not. A batch that
    the budget cuts short decides nothing: what the look before it said stands."""
    standings = Standings()
    found: Confirmation | None = None
    for before, look in zip((0, *rules.looks), rules.looks, strict=False):
        batch = seeds[before:look]
        standings.add(measure([(side, seed) for seed in batch for side in (BASELINE, label)]))
        if found is not None and not standings.is_complete:
            break
        found = _judge(label, standings, rules)
        if found.verdict in ("better", "worse") or not standings.is_complete:
            break
    assert found is not None
    return found


def _judge(label: str, standings: Standings, rules: Rules) -> Confirmation:
    baseline, candidate = standings.of(BASELINE), standings.of(label)
    if min(len(baseline), len(candidate)) < 2:
        return Confirmation(label, baseline, candidate, 1.0, rules.alpha_of_a_look, "too few seeds")
    p_value = difference(baseline, candidate)
    verdict: Literal["better", "worse", "no difference shown", "too few seeds"] = "no difference shown"
    # A look that the clock chose is none of those that alpha was shared among.
    if not standings.is_complete or len(baseline) < rules.seeds_needed:
        verdict = "too few seeds"
    elif p_value <= rules.alpha_of_a_look:
        verdict = "better" if is_above(*as_numbers(baseline, candidate)) else "worse"
    return Confirmation(label, baseline, candidate, p_value, rules.alpha_of_a_look, verdict)
