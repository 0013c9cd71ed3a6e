"""Statistics over seeds: the seed is the replicate, never the episode.

Interquartile mean and stratified bootstrap as in Agarwal et al. 2021 (https://arxiv.org/abs/2108.13264); for two sides
on one environment Welch's test, or one on ranks where a seed never reached the threshold and its steps are infinite.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

ALPHA, POWER, LEVEL = 0.05, 0.8, 0.95
RESAMPLES = 2000
RESAMPLED_FROM = 5  # seeds; of fewer a bootstrap is far too narrow
FEWEST = 3  # seeds a side before anything is claimed
MOST_ARRANGEMENTS = 20_000  # of ranks that are counted one by one

Verdict = Literal["better", "worse", "no difference shown", "too few seeds"]
Bounds = tuple[float, float]
Values = Sequence[float] | np.ndarray


def interquartile_mean(values: Values) -> float:
    """Mean without the lowest and the highest quarter (rounded down) of the values; nan of none."""
    array = np.asarray(values, dtype=float)
    return float(interquartile_means(array)) if array.size else math.nan


def interquartile_means(values: np.ndarray) -> np.ndarray:
    """The same over the last axis."""
    cut = values.shape[-1] // 4
    return np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut].mean(axis=-1)


def bootstrap_interval(
    *groups: Values,
    statistic: Callable[..., np.ndarray] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Bounds:
    """Percentile interval of `statistic(*groups)`, by default the interquartile mean of all values together.

    Each group is resampled by itself (stratified). `statistic` gets arrays of [resamples, size of the group] and
    returns one number a resample. With a single value in each group there is no spread to learn from: (nan, nan).
    """
    arrays = [np.asarray(group, dtype=float) for group in groups]
    if max((array.size for array in arrays), default=0) < 2 or any(array.size == 0 for array in arrays):
        return (math.nan, math.nan)
    rng = np.random.default_rng(0)
    drawn = [array[rng.integers(array.size, size=(resamples, array.size))] for array in arrays]
    with np.errstate(invalid="ignore"):  # of infinities, where both sides have some
        values = statistic(*drawn) if statistic else interquartile_means(np.concatenate(drawn, axis=1))
    return _quantiles(np.asarray(values, dtype=float), level)


def _quantiles(values: np.ndarray, level: float) -> Bounds:
    """Order statistics, without interpolation: values may be infinite."""
    ordered = np.sort(values[~np.isnan(values)])
    if not ordered.size:
        return (math.nan, math.nan)
    tail = (1 - level) / 2
    low, high = (np.quantile(ordered, share, method="nearest") for share in (tail, 1 - tail))
    return float(low), float(high)


def probability_of_improvement(baseline: Values, candidate: Values) -> float:
    """That a seed of the candidate is above one of the baseline; ties count half. NaN if either has none."""
    if not (len(baseline) and len(candidate)):
        return math.nan
    return float(_improvement(np.asarray(baseline, float)[None], np.asarray(candidate, float)[None])[0])


def _improvement(baseline: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    above = candidate[:, None, :] > baseline[:, :, None]
    equal = candidate[:, None, :] == baseline[:, :, None]
    return (above + 0.5 * equal).mean(axis=(1, 2))


def improvement_interval(baseline: Values, candidate: Values, level: float = LEVEL) -> Bounds:
    """Newcombe's for the area under a ROC curve (2006, method 5): unlike a bootstrap it has a width where all seeds of
    one side are above those of the other, and it holds as often as it says with five seeds."""
    sizes = len(baseline), len(candidate)
    if min(sizes) < 2:
        return (math.nan, math.nan)
    seen, z = probability_of_improvement(baseline, candidate), _normal_quantile(0.5 + level / 2)

    def too_far(true: float) -> bool:
        extra = (sum(sizes) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return abs(seen - true) > z * math.sqrt(true * (1 - true) * (1 + extra) / (sizes[0] * sizes[1]))

    return _edge(0.0, seen, too_far), _edge(1.0, seen, too_far)


def _edge(far: float, near: float, too_far: Callable[[float], bool]) -> float:
    """Where values stop being too far from what was seen, by bisection."""
    for _ in range(40):
        middle = (far + near) / 2
        far, near = (middle, near) if too_far(middle) else (far, middle)
    return (far + near) / 2


def _normal_quantile(share: float) -> float:
    return NormalDist().inv_cdf(share)


def wilson(share: float, count: int, level: float = LEVEL) -> Bounds:
    """Interval of a share; never of width 0, however few there are."""
    z = _normal_quantile(0.5 + level / 2)
    spread = z * z / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / count + spread / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def iqm_interval(values: Values, level: float = LEVEL, possible: Bounds = (-math.inf, math.inf)) -> Bounds:
    """Of the interquartile mean: by bootstrap, or Student's where seeds are too few to resample. That one knows of no
    bounds: it is cut to what is `possible`, which is never less than what was seen."""
    from scipy.special import stdtrit

    array = np.asarray(values, dtype=float)
    if array.size < 2 or array.size >= RESAMPLED_FROM or not np.isfinite(array).all():
        return bootstrap_interval(array, level=level)
    half = float(stdtrit(array.size - 1, 0.5 + level / 2)) * array.std(ddof=1) / math.sqrt(array.size)
    least, most = min(possible[0], array.min()), max(possible[1], array.max())
    return float(max(array.mean() - half, least)), float(min(array.mean() + half, most))


def welch(baseline: Values, candidate: Values) -> float:
    """Two-sided p-value of a difference in means, spreads not assumed equal; 1 where either side has one value."""
    from scipy.special import stdtr

    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    if min(a.size, b.size) < 2:
        return 1.0
    error_a, error_b = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    if error_a + error_b == 0:
        return 1.0 if a.mean() == b.mean() else 0.0
    t = (b.mean() - a.mean()) / math.sqrt(error_a + error_b)
    freedom = (error_a + error_b) ** 2 / (error_a**2 / (a.size - 1) + error_b**2 / (b.size - 1))
    return float(2 * stdtr(freedom, -abs(t)))


def rank_test(baseline: Values, candidate: Values) -> float:
    """Two-sided p-value of a difference in ranks: every way to deal the ranks to the sides, or many random ones.

    Values may be infinite (never reached), and ties share their rank.
    """
    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    ranks = _ranks(np.concatenate([a, b]))
    centred = ranks - ranks.mean()
    seen = abs(centred[a.size :].sum())
    if math.comb(ranks.size, b.size) <= MOST_ARRANGEMENTS:
        sums = np.array([centred[list(chosen)].sum() for chosen in itertools.combinations(range(ranks.size), b.size)])
        return float((np.abs(sums) >= seen - 1e-9).mean())
    rng = np.random.default_rng(0)
    dealt = rng.permuted(np.tile(centred, (MOST_ARRANGEMENTS, 1)), axis=1)[:, : b.size].sum(axis=1)
    return float(((np.abs(dealt) >= seen - 1e-9).sum() + 1) / (MOST_ARRANGEMENTS + 1))


def _ranks(values: np.ndarray) -> np.ndarray:
    """From 1; equal values get the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


def seeds_for_ranks(alpha: float = ALPHA) -> int:
    """A side, before ranks that are wholly apart are significant."""
    count = 2
    while 2 / math.comb(2 * count, count) > alpha:
        count += 1
    return count


def difference_test(baseline: Values, candidate: Values) -> float:
    """Two-sided p-value: Welch's, or by ranks where values are infinite."""
    finite = bool(np.isfinite([*baseline, *candidate]).all())
    return welch(baseline, candidate) if finite else rank_test(baseline, candidate)


def is_above(baseline: Values, candidate: Values) -> bool:
    """Which way a difference goes that `difference_test` has shown: by means, or by ranks where values are infinite."""
    if np.isfinite([*baseline, *candidate]).all():
        return bool(np.mean(candidate) > np.mean(baseline))
    return probability_of_improvement(baseline, candidate) > 0.5


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for the number of tests: those at or below alpha are wrong together at most alpha of the time."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for position, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - position)))
        adjusted[index] = largest
    return adjusted


def effect_size(baseline: Values, candidate: Values) -> float:
    """Difference of means in standard deviations (pooled); nan where there is no spread to measure by."""
    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    if min(a.size, b.size) < 2 or not np.isfinite([*a, *b]).all():
        return math.nan
    pooled = math.sqrt((a.var(ddof=1) * (a.size - 1) + b.var(ddof=1) * (b.size - 1)) / (a.size + b.size - 2))
    if pooled == 0:
        return 0.0 if a.mean() == b.mean() else math.copysign(math.inf, b.mean() - a.mean())
    return float((b.mean() - a.mean()) / pooled)


def power(effect: float, seeds: int, alpha: float = ALPHA) -> float:
    """Chance that a two-sided t-test with so many seeds a side shows a difference of `effect` deviations."""
    from scipy.special import nctdtr, stdtrit

    freedom, shift = 2 * seeds - 2, abs(effect) * math.sqrt(seeds / 2)
    beyond = stdtrit(freedom, 1 - alpha / 2)
    return float(1 - nctdtr(freedom, shift, beyond) + nctdtr(freedom, shift, -beyond))


def seeds_needed(effect: float, wanted_power: float = POWER, alpha: float = ALPHA, most: int = 1000) -> int | None:
    """Seeds a side to show a difference of `effect` deviations; None if more than `most`."""
    if math.isnan(effect) or effect == 0:
        return None
    for seeds in range(FEWEST, most + 1):
        if power(min(abs(effect), 20.0), seeds, alpha) >= wanted_power:
            return seeds
    return None


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline, one number a seed."""

    seeds: tuple[int, int]
    iqm: tuple[float, float]
    probability: float  # that a seed of the candidate is better than one of the baseline
    probability_interval: Bounds
    p_value: float
    effect: float  # in standard deviations, positive where the candidate is better
    seeds_needed: int | None  # a side, to show a difference of this size
    verdict: Verdict

    @property
    def is_significant(self) -> bool:
        return self.verdict in ("better", "worse")


def compare(
    baseline: Values,
    candidate: Values,
    *,
    larger_is_better: bool = True,
    by_ratio: bool = False,
    alpha: float = ALPHA,
) -> Comparison:
    """The candidate's seeds against the baseline's; infinite values are seeds that never got there. `by_ratio`: twice
    is as far from once as four times from twice, as with steps and seconds; tested on logarithms."""
    a, b = np.asarray(baseline, dtype=float), np.asarray(candidate, dtype=float)
    sign = 1.0 if larger_is_better else -1.0
    probability = probability_of_improvement(sign * a, sign * b) if a.size and b.size else math.nan
    tested = [np.log(np.maximum(side, 1e-9)) if by_ratio else side for side in (a, b)]
    p_value = difference_test(*tested) if min(a.size, b.size) >= 2 else 1.0
    effect = sign * effect_size(*tested)
    verdict: Verdict = "no difference shown"
    if min(a.size, b.size) < FEWEST:
        verdict = "too few seeds"
    elif p_value <= alpha:
        verdict = "better" if is_above(sign * tested[0], sign * tested[1]) else "worse"
    return Comparison(
        seeds=(a.size, b.size),
        iqm=(interquartile_mean(a), interquartile_mean(b)),
        probability=probability,
        probability_interval=improvement_interval(sign * a, sign * b),
        p_value=p_value,
        effect=effect,
        seeds_needed=seeds_needed(effect),
        verdict=verdict,
    )
