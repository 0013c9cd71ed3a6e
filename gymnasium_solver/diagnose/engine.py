"""What is wrong with a run: how it did, what it answered to every question, and the causes ranked by that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gymnasium_solver.diagnose.evidence import BY_NAME, Answer, answers
from gymnasium_solver.diagnose.inference import Ranked, rank
from gymnasium_solver.diagnose.performance import Performance, judge
from gymnasium_solver.diagnose.readings import Readings

BUDGET = "training-too-short"


@dataclass(frozen=True)
class Diagnosis:
    readings: Readings
    performance: Performance
    answers: Mapping[str, Answer | None]
    ranked: list[Ranked]


def diagnose(readings: Readings) -> Diagnosis:
    performance = judge(readings)
    found = answers(readings, performance)
    ranked = rank(found, performance, readings.algo, changed=readings.changed_since_solved)
    if readings.ended_early and not found["budget-small"]:  # the budget it had, it has not spent
        ranked = [entry for entry in ranked if entry.cause.id != BUDGET]
    return Diagnosis(readings, performance, found, ranked)


def severity(diagnosis: Diagnosis, entry: Ranked) -> str:
    """Critical: the run fails, and either an invariant is broken or two signals agree on a likely cause."""
    performance = diagnosis.performance
    invariant = any(BY_NAME[name].invariant for name in entry.speaks_for)
    if invariant and diagnosis.readings.status in ("failed", "diverged"):
        return "critical"
    if not performance.is_bad:
        if performance.verdict in ("unknown", "early") and invariant:
            return "high"
        if performance.verdict == "solved":
            return "low" if invariant else "info"
        return "medium" if invariant or entry.confidence >= 0.3 else "low"
    if performance.threshold is None and not invariant:  # whether it is bad at all is a guess
        return "high" if entry.confidence >= 0.5 else "medium"
    if performance.verdict == "partial" or (performance.score or 0.0) >= 0.8:
        return "high" if entry.confidence >= 0.3 or invariant else "medium"
    if invariant and entry.confidence >= 0.2:
        return "critical"
    # A suspected bug that breaks no invariant may be a hard task as well.
    if entry.confidence >= 0.4 and len(entry.speaks_for) >= 2 and entry.cause.category != "bug":
        return "critical"
    return "high" if entry.confidence >= 0.2 else "medium"
