"""Intervals over few seeds and over cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Estimate(NamedTuple):
    value: float
    low: float
    high: float
    n: int  # cases

    def __str__(self) -> str:
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


def welch_interval(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Of the difference of the means, after − before, with unequal variances. The seed is the replicate."""
    difference = float(np.mean(after) - np.mean(before))
    parts = [np.var(x, ddof=1) / len(x) for x in (before, after)]
    if sum(parts) == 0:
        return difference, difference
    freedom = sum(parts) ** 2 / sum(p**2 / (len(x) - 1) for p, x in zip(parts, (before, after), strict=True))
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom) * np.sqrt(sum(parts)))
    return difference - half, difference + half


def over_cases(values: Sequence[float], confidence: float = 0.95, draws: int = 4000) -> Estimate | None:
    """The mean of one number a case, with a bootstrap interval over cases; None of none."""
    if not values:
        return None
    array = np.asarray(values, float)
    rng = np.random.default_rng(0)
    means = array[rng.integers(0, len(array), (draws, len(array)))].mean(axis=1)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(float(array.mean()), float(low), float(high), len(array))


def calibration_error(confidence: Sequence[float], correct: Sequence[bool], bins: int = 10) -> float | None:
    """Expected calibration error: how far stated confidence is from the share that is right, over bins of it."""
    if not confidence:
        return None
    stated, right = np.asarray(confidence, float), np.asarray(correct, float)
    place = np.minimum((stated * bins).astype(int), bins - 1)
    groups = [place == b for b in range(bins) if (place == b).any()]
    return float(sum(group.mean() * abs(stated[group].mean() - right[group].mean()) for group in groups))
