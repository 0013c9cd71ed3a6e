"""From answers to causes: the performance gate, then a ranking by likelihood with calibrated confidence.

A cause's score is the sum over its evidence of log P(answer | cause) − log P(answer | any failing run). Answers depend
on one another, so scores are divided by a temperature before they become probabilities; it is fitted so that
confidence means what it says (calibration.json, made by benchmarks/faults).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gymnasium_solver.diagnose.causes import CAUSES, EFFICIENCY, Cause
from gymnasium_solver.diagnose.evidence import BY_NAME, GROUP_OF, SETTINGS, Answer
from gymnasium_solver.diagnose.performance import Performance

CALIBRATION = Path(__file__).parent / "calibration.json"
GUESSED_RATE = {"metrics": 0.15, "config": 0.05, "checkpoint": 0.03, "log": 0.03}  # of a yes, where nothing was counted
TRUST = 6.0  # a guess weighs as much as this many counted runs
REPEATED = 0.3  # what a further answer of the same group counts
EXCLUDED = 4.0  # taken from the score of a cause whose settings are all in their usual range
CHANGED = math.log(3.0)  # a setting that was another when the task was solved is three times as suspect
UNKNOWN = 1.0  # prior weight of a cause that is not in the catalogue
SHOWN = 0.04  # causes less likely than this are not reported
MOST = 5
MOST_CERTAIN = 0.99  # of anything read off curves
TIE = 1.5  # two causes whose confidence differs by less than this factor are told as a tie


@dataclass(frozen=True)
class Ranked:
    cause: Cause
    confidence: float
    speaks_for: tuple[str, ...]
    speaks_against: tuple[str, ...]


@cache
def calibration() -> Mapping[str, Any]:
    try:
        return json.loads(CALIBRATION.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def rank(
    answers: Mapping[str, Answer | None],
    performance: Performance,
    algorithm: str | None,
    counts: Mapping[str, Any] | None = None,
    changed: frozenset[str] = frozenset(),
) -> list[Ranked]:
    """Most likely first. Of a run that lacks nothing, only what breaks an invariant or costs time. `changed`: fields
    that differ from an earlier run which solved the same task."""
    counts = calibration() if counts is None else counts
    candidates = [cause for cause in CAUSES if cause.applies_to(algorithm) and _is_open(cause, answers)]
    if performance.is_short:
        candidates = [cause for cause in candidates if cause.id not in EFFICIENCY]
    else:
        candidates = [cause for cause in candidates if cause.id in EFFICIENCY or _breaks_invariant(cause, answers)]
    temperature = float(counts.get("temperature", 1.3))
    scores = {
        cause.id: _score(cause, answers, counts) / temperature
        + math.log(cause.prior)
        + (CHANGED if _settings(cause) & changed else 0.0)
        for cause in candidates
    }
    weights = {name: math.exp(min(score, 50.0)) for name, score in scores.items()}
    total = sum(weights.values()) + UNKNOWN
    ranked = [
        Ranked(cause, min(MOST_CERTAIN, weights[cause.id] / total), *_sides(cause, answers))
        for cause in sorted(candidates, key=lambda cause: -weights[cause.id])
    ]
    return [entry for entry in ranked if entry.confidence >= SHOWN and entry.speaks_for][:MOST]


def likelihood(cause: Cause, name: str, counts: Mapping[str, Any]) -> float:
    """P(yes | cause): the catalogue's guess, corrected by what was counted."""
    yes, total = counts.get("causes", {}).get(cause.id, {}).get(name, (0, 0))
    return (cause.evidence[name] * TRUST + yes) / (TRUST + total)


def rate(name: str, counts: Mapping[str, Any]) -> float:
    """P(yes) in failing runs of any cause."""
    yes, total = counts.get("failing", {}).get(name, (0, 0))
    guess = 0.01 if BY_NAME[name].invariant else GUESSED_RATE[BY_NAME[name].kind]
    return (guess * TRUST + yes) / (TRUST + total)


def _score(cause: Cause, answers: Mapping[str, Answer | None], counts: Mapping[str, Any]) -> float:
    """Each group of questions counts with its strongest answer in full, with the others in part."""
    groups: dict[str, list[float]] = {}
    for name in cause.evidence:
        answer = answers.get(name)
        if answer is None:
            continue
        p, q = likelihood(cause, name, counts), rate(name, counts)
        weight = math.log(p / q) if answer.holds else math.log((1 - p) / (1 - q))
        groups.setdefault(GROUP_OF.get(name, name), []).append(weight)
    score = 0.0
    for weights in groups.values():
        strongest = max(weights, key=abs)
        score += strongest + REPEATED * (sum(weights) - strongest)
    return score - (EXCLUDED if _is_excluded(cause, answers) else 0.0)


def _is_excluded(cause: Cause, answers: Mapping[str, Answer | None]) -> bool:
    """Whether all settings that would be out of range are known and are not."""
    settings = [answers.get(name) for name, p in cause.evidence.items() if p >= 0.7 and name in SETTINGS]
    known = [answer for answer in settings if answer is not None]
    return bool(known) and not any(known)


def _settings(cause: Cause) -> frozenset[str]:
    """Fields that the cause is about."""
    return frozenset(BY_NAME[name].metric for name in cause.evidence if name in SETTINGS)


def _is_open(cause: Cause, answers: Mapping[str, Answer | None]) -> bool:
    return not cause.needs or any(answers.get(name) for name in cause.needs)


def _breaks_invariant(cause: Cause, answers: Mapping[str, Answer | None]) -> bool:
    return any(BY_NAME[name].invariant and answers.get(name) and p >= 0.7 for name, p in cause.evidence.items())


def _sides(cause: Cause, answers: Mapping[str, Answer | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Evidence that fits the cause, and evidence that does not."""
    speaks_for, against = [], []
    for name, p in cause.evidence.items():
        answer = answers.get(name)
        if answer is None:
            continue
        if answer.holds and p >= 0.3:
            speaks_for.append(name)
        elif (answer.holds and p <= 0.1) or (not answer.holds and p >= 0.7):
            against.append(name)
    return tuple(speaks_for), tuple(against)
