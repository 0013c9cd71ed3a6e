"""The course of the return: did it rise, was it lost again, do evaluations agree with training episodes."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence, above
from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING, Readings


def _returns_equal(r: Readings, p: Performance) -> Answer | None:
    """Every episode brings the same, whatever is done."""
    curve = r.series(TRAINING)
    if curve is None or len(curve.values) < 4:
        return None
    spread = float(np.ptp(curve.values))
    return Answer(spread <= 1e-6 * max(1.0, abs(curve.high)), spread, "returns that vary")


def _return_flat(_: Readings, p: Performance) -> Answer | None:
    return None if p.score is None else Answer(p.score < 0.1, p.score, "above 0.1 of the way to the threshold")


def _return_below_start(r: Readings, p: Performance) -> Answer | None:
    curve = r.series(TRAINING) or r.returns
    if curve is None or p.start is None or len(curve.values) < 4:
        return None
    scale = abs(p.threshold - p.start) if p.threshold is not None else abs(p.start)
    drop = p.start - curve.late
    worse = drop > 0.1 * scale or (drop > 0.25 * abs(p.start) and drop > 0.02 * scale)
    holds = worse and drop > 2 * curve.noise
    return Answer(holds, curve.late, f"at least about {p.start:.4g}, as with random actions")


def _return_collapsed(r: Readings, _: Performance) -> Answer | None:
    curve = r.returns
    if curve is None or len(curve.values) < 6:
        return None
    found = curve.collapse
    return Answer(found is not None, curve.late, "the level reached before", found[0] if found else None)


def _return_unstable(r: Readings, _: Performance) -> Answer | None:
    curve = r.returns
    if curve is None or len(curve.values) < 8:
        return None
    swings = curve.oscillation if np.ptp(curve.smooth) > 3 * curve.noise else 0.0
    return above(swings, 0.4)


def _still_improving(r: Readings, p: Performance) -> Answer | None:
    return (
        None if r.returns is None or len(r.returns.values) < 4 else Answer(p.improving, r.returns.trend()[0], "no rise")
    )


def _gap(r: Readings, p: Performance) -> float | None:
    """Evaluation above training episodes, as a share of the way to the threshold."""
    evaluated, trained = r.late(EVALUATION), r.late(TRAINING)
    if evaluated is None or trained is None or p.start is None or p.threshold is None or p.threshold <= p.start:
        return None
    return (evaluated - trained) / (p.threshold - p.start)


QUESTIONS = (
    Evidence("returns-equal", "every episode brings the same return", TRAINING, _returns_equal),
    Evidence(
        "return-flat", "the return never beat that of random actions", "share of the way to the threshold", _return_flat
    ),
    Evidence("return-below-random", "the return is worse than that of random actions", TRAINING, _return_below_start),
    Evidence("return-collapsed", "what was learnt was lost again", TRAINING, _return_collapsed),
    Evidence("return-unstable", "the return swings up and down", "swings as a share of the range", _return_unstable),
    Evidence(
        "improving-at-end",
        "the return was still rising at the end",
        "change of the return in the last third",
        _still_improving,
    ),
    Evidence(
        "evaluation-above-training",
        "evaluations do much better than training episodes",
        "difference as a share of the way to the threshold",
        lambda r, p: above(_gap(r, p), 0.3),
    ),
    Evidence(
        "training-above-evaluation",
        "training episodes do much better than evaluations",
        "difference as a share of the way to the threshold",
        lambda r, p: above(None if (g := _gap(r, p)) is None else -g, 0.3),
    ),
)
