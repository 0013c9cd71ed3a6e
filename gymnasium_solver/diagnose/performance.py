"""Is the run bad? Judged against the threshold and a random policy before any cause is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING, Readings
from gymnasium_solver.diagnose.series import Series

Verdict = Literal["solved", "close", "partial", "failing", "collapsed", "early", "unknown"]
CLOSE = 0.9  # share of the way to the threshold
FAILING = 0.35
EARLY_SHARE = 0.25  # of the budget: a run in progress, or ended from outside, is not judged before
ENOUGH = 3.0  # times what the shipped configuration needs: no more has to be waited for
EARLY_ROWS = 8


@dataclass(frozen=True)
class Performance:
    verdict: Verdict
    start: float | None  # return of a policy that has learnt nothing
    best: float | None
    last: float | None
    threshold: float | None
    score: float | None  # share of the way from start to threshold, at its best
    improving: bool
    steps_to_threshold: float | None
    words: str

    @property
    def is_short(self) -> bool:
        """Whether it ended short of its threshold, be it by little."""
        return self.is_bad or self.verdict == "close"

    @property
    def is_bad(self) -> bool:
        return self.verdict in ("partial", "failing", "collapsed")


def judge(readings: Readings) -> Performance:
    curve = readings.returns
    threshold = readings.threshold
    start = _start(readings)
    if curve is None:
        words = "no episode has finished, so its returns are not known"
        return Performance("unknown", start, None, None, threshold, None, False, None, words)
    evaluated = readings.curves.get(EVALUATION)  # counts, however few there are
    best, last = (float(curve.smooth.max()), curve.last) if evaluated is None else (evaluated.high, evaluated.last)
    if (tested := readings.series("test/roll/ep_rew_mean")) is not None:  # the best checkpoint on fresh episodes
        best = max(best, tested.last)
    improving = curve.is_rising
    score = late = None
    if threshold is not None and start is not None and threshold > start:
        score, late = ((value - start) / (threshold - start) for value in (best, curve.late))
    solved = bool(readings.record.get("solved")) or (
        readings.record.get("solved") is None and threshold is not None and best >= threshold
    )
    is_near = not threshold or abs(threshold - best) <= 0.5 * abs(threshold)
    verdict = _verdict(solved, score, late, is_near, curve, readings.curves.get(TRAINING))
    if verdict not in ("solved", "close") and _is_early(readings):
        verdict = "early"
    reached = _reached(readings, threshold) if solved or (threshold is not None and best >= threshold) else None
    return Performance(
        verdict, start, best, last, threshold, score, improving, reached,
        _words(verdict, curve, score, improving, readings),
    )  # fmt: skip


def _start(readings: Readings) -> float | None:
    """The return of random actions where it is known and fits what is seen, else what the first episodes brought."""
    known, threshold = readings.baseline.get("random_return"), readings.threshold
    firsts = [float(c.values[0]) for n in (TRAINING, EVALUATION) if (c := readings.curves.get(n)) is not None]
    if known is None or threshold is None or threshold <= known:  # rewards on another scale than the environment's own
        return firsts[0] if firsts else known
    far = bool(firsts) and abs(firsts[0] - known) > 5 * (threshold - known)
    return firsts[0] if far else float(known)


def _is_early(readings: Readings) -> bool:
    """Whether a run in progress, or one that was cut short, has had neither its share of the budget nor what the task
    usually takes."""
    if not readings.planned or not (readings.status == "running" or readings.ended_early):
        return False
    counted = readings.curves.get(readings.clock.column)
    rows = len(counted.values) if counted else 0
    enough = EARLY_SHARE * readings.planned
    if usual := readings.usual_steps:
        enough = max(min(enough, ENOUGH * usual), min(usual, 0.6 * readings.planned))
    return rows < EARLY_ROWS or readings.steps < enough


def _verdict(
    solved: bool, score: float | None, late: float | None, is_near: bool, curve: Series, training: Series | None
) -> Verdict:
    """`is_near`: where random actions are terrible, nearly all of the way to the threshold can still be far from it."""
    if solved:
        return "solved"
    if score is None or late is None:
        if curve.collapse:
            return "collapsed"
        # Without a threshold: whether the return ever rose above its first values. What is learnt before the first
        # evaluation only the training episodes show, and there it may take a single row.
        stuck = _stands_still(curve, float(np.median(curve.values[:3])))
        if training is not None and training is not curve:
            stuck = stuck and (len(training.values) < EARLY_ROWS or _stands_still(training, training.values[:3].min()))
        return "failing" if stuck else "unknown"
    if score >= CLOSE and late < 0.5 * score:
        return "collapsed"
    if score >= CLOSE and is_near:
        return "close"
    if score > FAILING and late < 0.5 * score and curve.collapse:
        return "collapsed"
    return "partial" if score > FAILING else "failing"


def _stands_still(curve: Series, first: float) -> bool:
    return len(curve.values) >= EARLY_ROWS and curve.late <= first + 3 * curve.noise


def _reached(readings: Readings, threshold: float | None) -> float | None:
    for name in (EVALUATION, TRAINING):
        curve = readings.curves.get(name)
        if curve is not None and threshold is not None and (at := np.flatnonzero(curve.values >= threshold)).size:
            return float(curve.steps[at[0]])
    return None


def _words(verdict: Verdict, curve: Series, score: float | None, improving: bool, readings: Readings) -> str:
    ended = f"it ended after {readings.steps / (readings.planned or 1):.0%} of its budget, "
    shape = curve.shape(is_return=True, unit=readings.clock.unit)
    share = "" if score is None else f" ({max(0.0, score):.0%} of the way from random to the threshold)"
    return {
        "solved": "reached the threshold",
        "close": f"nearly at the threshold{share}",
        "partial": f"learnt something, but not enough{share}",
        "failing": f"hardly learnt anything{share}",
        "collapsed": f"learnt, then lost it again{share}",
        "early": f"{ended if readings.ended_early else ''}too early to judge; return: {shape}",
        "unknown": f"no threshold to judge by; return: {shape}",
    }[verdict] + (", and still improving" if improving and verdict in ("close", "partial", "failing") else "")
