"""Will a run in progress reach its threshold? Growth curves fitted to resampled points, the odds counted."""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnasium_solver.diagnose.inference import Ranked
from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.readings import LEAST_POINTS, Readings
from gymnasium_solver.diagnose.series import Series

SAMPLES = 200
UNLIKELY = 0.2
MOST_GAIN = 4.0  # times what was gained so far


def foresee(readings: Readings, performance: Performance, ranked: list[Ranked]) -> dict[str, Any] | None:
    """None for a run that is over."""
    if readings.status != "running":
        return None
    odds, reasons = _odds(readings, performance)
    sure = ranked[0] if ranked and ranked[0].confidence >= 0.5 and performance.is_bad else None
    if sure is not None and sure.cause.id == "training-too-short":  # answered by going on
        sure = None
    if odds is None or odds > UNLIKELY:
        action = "continue"
    elif sure is not None:
        action = "stop and restart with the recommended change"
        reasons.append(f"{sure.cause.title} ({sure.confidence:.0%} sure)")
    else:
        action = "adjust"
    return {"action": action, "probability_of_threshold": odds, "reasons": reasons}


def _odds(readings: Readings, performance: Performance) -> tuple[float | None, list[str]]:
    curve, threshold, planned = readings.returns, performance.threshold, readings.planned
    if performance.verdict == "solved":
        return 1.0, ["an evaluation has reached the threshold"]
    if curve is None or threshold is None or not planned:
        return None, ["a forecast needs a threshold, a budget and a finished episode"]
    if len(curve.values) < LEAST_POINTS:
        return None, [f"{len(curve.values)} points of the learning curve are too few for a forecast"]
    share = readings.steps / planned
    odds = _extrapolated(curve, threshold, planned)
    reasons = [f"growth curves fitted to {len(curve.values)} points reach {threshold:g} in {odds:.0%} of resamples"]
    usual = readings.usual_steps
    if usual and readings.steps > 3 * usual and (performance.score or 0.0) < 0.5:
        odds *= 0.3
        reasons.append(f"the shipped configuration needs {usual:,.0f} steps; this run has had over three times as many")
    elif usual and readings.steps < usual and planned > 1.5 * usual:
        odds = max(odds, 0.5)
        reasons.append(f"it is early: the shipped configuration needs {usual:,.0f} steps")
    if curve.collapse:
        odds *= 0.3
        reasons.append("the return has collapsed once")
    reasons.append(f"{share:.0%} of the budget has been spent")
    return float(np.clip(odds, 0.02, 0.98)), reasons


def _extrapolated(curve: Series, threshold: float, planned: float) -> float:
    """Share of resampled curves whose best-fitting growth passes the threshold before the budget ends."""
    rng = np.random.default_rng(0)
    thin = curve.thin
    x, y = thin.steps / planned, thin.values
    ahead = np.linspace(x[-1], 1.0, 20)
    shapes = [lambda t, p=p: t**p for p in (0.3, 0.6, 1.0, 1.5)]
    shapes += [lambda t, k=k: 1 - np.exp(-t / k) for k in (0.05, 0.15, 0.4)]
    shapes += [lambda t, m=m: 1 / (1 + np.exp(-(t - m) / 0.08)) for m in (0.3, 0.6, 0.9)]
    noise = max(curve.noise, 1e-12)
    reached = 0
    for _ in range(SAMPLES):
        pick = rng.integers(0, len(x), len(x))
        best, forecast = np.inf, None
        for shape in shapes:
            g = shape(x[pick])
            design = np.stack([np.ones_like(g), g], axis=1)
            coefficients, *_ = np.linalg.lstsq(design, y[pick], rcond=None)
            error = float(((design @ coefficients - y[pick]) ** 2).sum())
            if error < best:
                start, end, *future = coefficients[0] + coefficients[1] * shape(np.array([x[0], x[-1], *ahead]))
                # A curve that has hardly moved yet fits shapes that explode ahead.
                best, forecast = error, np.minimum(future, end + MOST_GAIN * max(0.0, end - start))
        assert forecast is not None
        reached += bool((forecast + noise * rng.normal() >= threshold).any())
    return reached / SAMPLES
