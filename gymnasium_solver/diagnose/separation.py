"""Which settings separate good configurations from bad ones, and how sure that is.

The configuration is the unit: its seeds are one number, the share of them that did well. A setting is tested by the
split of its values that tells good from bad best; dealing the outcomes anew to the configurations, within each
algorithm, says how good the best split is by chance alone. P-values are Holm's for all settings that vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gymnasium_solver.diagnose.history import Value
from gymnasium_solver.diagnose.splits import Setting, varying, words
from gymnasium_solver.statistics import ALPHA, Bounds, holm, wilson

FEWEST = 6  # good and bad ones: a perfect split of 6 and 6 is chance 2 times in 924, enough for some twenty settings
DEALS = 2000


@dataclass(frozen=True)
class Separation:
    names: tuple[str, ...]  # settings that always changed together
    better: str  # the values that do better, in words
    worse: str
    shares: tuple[float, float]  # of good runs, with the better values and with the others
    sizes: tuple[int, int]  # configurations
    interval: Bounds  # of the difference of the shares, for the split that fits best: rather too far from 0
    p_value: float
    not_apart_from: tuple[str, ...]  # stronger ones; among configurations alike in those, nothing is left to see
    better_values: frozenset[Value]
    worse_values: frozenset[Value]

    def is_worse(self, value: Value) -> bool | None:
        """Which side a value is on, a number by the nearest that was seen; None for a word that was not."""
        if value in self.better_values or value in self.worse_values:
            return value in self.worse_values
        seen = [known for known in self.better_values | self.worse_values if isinstance(known, float)]
        if not isinstance(value, float) or len(seen) < len(self.better_values | self.worse_values):
            return None
        return min(seen, key=lambda known: abs(known - value)) in self.worse_values


@dataclass
class Separations:
    found: list[Separation] = field(default_factory=list)  # surest first
    tested: list[tuple[str, ...]] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)  # one value in nearly all configurations
    only_by_algorithm: list[str] = field(default_factory=list)  # changed with the algorithm, never without


def are_enough(good: np.ndarray) -> bool:
    above = int((good >= 0.5).sum())
    return min(above, len(good) - above) >= FEWEST


def separate(settings: Sequence[Mapping[str, Value]], good: np.ndarray) -> Separations:
    """`good` is the share of each configuration's runs that did well."""
    algos = np.unique([str(entry.get("algo_id")) for entry in settings], return_inverse=True)[1]
    result, tests, deals = Separations(), [], _Deals()
    for setting in varying(settings):
        strata = np.zeros_like(algos) if "algo_id" in setting.names else algos
        within = setting.splits[_spread(setting.splits, strata[setting.rows]) > 0]
        if len(within):
            tests.append(_Test(Setting(setting.names, setting.values, setting.rows, within), good, strata, deals))
        elif len(setting.splits):
            result.only_by_algorithm += setting.names
        else:
            result.untested += setting.names
    result.tested = [test.setting.names for test in tests]
    adjusted = holm([test.p_value() for test in tests])
    surest = sorted(
        ((p, test) for p, test in zip(adjusted, tests, strict=True) if p <= ALPHA),
        key=lambda pair: (pair[0], -pair[1].strength),
    )
    for place, (p_value, test) in enumerate(surest):
        stronger = [other for _, other in surest[:place] if test.p_value(held=other) > ALPHA]
        result.found.append(test.separation(p_value, tuple(other.setting.names[0] for other in stronger)))
    return result


class _Test:
    """The best split of one setting against those of outcomes dealt anew."""

    def __init__(self, setting: Setting, good: np.ndarray, strata: np.ndarray, deals: _Deals) -> None:
        self.setting, self._deals = setting, deals
        self._good, self._strata = good[setting.rows], strata[setting.rows]
        strengths = _strengths(setting.splits, _centred(self._good, self._strata)[None], self._strata)[0]
        best = int(np.abs(strengths).argmax())
        self.strength = abs(float(strengths[best]))
        self._side = setting.splits[best] if strengths[best] > 0 else ~setting.splits[best]
        self.side_of_row = np.full(len(good), -1)
        self.side_of_row[setting.rows] = self._side

    def p_value(self, held: _Test | None = None) -> float:
        """With `held`, among configurations that are on the same side of that setting's split."""
        strata = self._strata if held is None else 3 * self._strata + held.side_of_row[self.setting.rows]
        splits = self.setting.splits[_spread(self.setting.splits, strata) > 0]
        if not len(splits):
            return 1.0
        outcomes = _centred(self._good, strata)
        seen = np.abs(_strengths(splits, outcomes[None], strata)).max()
        dealt = np.abs(_strengths(splits, self._deals.of(outcomes, strata), strata)).max(axis=1)
        return float((1 + (dealt >= seen - 1e-5).sum()) / (1 + DEALS))

    def separation(self, p_value: float, not_apart_from: tuple[str, ...]) -> Separation:
        shares, sizes = _shares(self._good, self._side, self._strata)
        better, worse = words(self.setting.values, self._side)
        values = list(zip(self.setting.values, self._side, strict=True))
        return Separation(
            names=self.setting.names,
            better=better,
            worse=worse,
            shares=shares,
            sizes=sizes,
            interval=_difference(shares, sizes),
            p_value=p_value,
            not_apart_from=not_apart_from,
            better_values=frozenset(value for value, is_better in values if is_better),
            worse_values=frozenset(value for value, is_better in values if not is_better),
        )


class _Deals:
    """[deal, configuration]: outcomes in random order within strata. Most settings share theirs."""

    def __init__(self) -> None:
        self._made: dict[bytes, np.ndarray] = {}

    def of(self, outcomes: np.ndarray, strata: np.ndarray) -> np.ndarray:
        key = outcomes.tobytes() + strata.tobytes()
        if key not in self._made:
            rng = np.random.default_rng(0)
            dealt = np.tile(outcomes.astype(np.float32), (DEALS, 1))
            for stratum in np.unique(strata):
                within = np.flatnonzero(strata == stratum)
                dealt[:, within] = rng.permuted(dealt[:, within], axis=1)
            self._made[key] = dealt
        return self._made[key]


def _centred(values: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Without the mean of each stratum, over the last axis."""
    centred = values.astype(float)
    for stratum in np.unique(strata):
        within = strata == stratum
        centred[..., within] -= centred[..., within].mean(axis=-1, keepdims=True)
    return centred


def _spread(splits: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """Of each split within strata: 0 where it only tells strata apart."""
    if not len(splits):
        return np.zeros(0)
    return np.sqrt(np.square(_centred(splits, strata)).sum(axis=1)).round(9)


def _strengths(splits: np.ndarray, outcomes: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """[outcomes, split]: difference of the sides' means in units that are alike for all splits."""
    directions = _centred(splits, strata) / _spread(splits, strata)[:, None]
    return outcomes @ directions.T.astype(np.float32)


def _shares(good: np.ndarray, side: np.ndarray, strata: np.ndarray) -> tuple[tuple[float, float], tuple[int, int]]:
    """Means of both sides over strata that have both (weighted as Mantel and Haenszel do), and their sizes."""
    sums, sizes, weights = np.zeros(2), np.zeros(2, int), 0.0
    for stratum in np.unique(strata):
        sides = [good[(strata == stratum) & where] for where in (side, ~side)]
        counts = np.array([len(values) for values in sides])
        if counts.all():
            weight = counts.prod() / counts.sum()
            sums += weight * np.array([values.mean() for values in sides])
            sizes += counts
            weights += weight
    return (float(sums[0] / weights), float(sums[1] / weights)), (int(sizes[0]), int(sizes[1]))


def _difference(shares: tuple[float, float], sizes: tuple[int, int]) -> Bounds:
    """95 % interval of the difference of two shares (Newcombe 1998, method 10)."""
    (low, high), (other_low, other_high) = (wilson(*side) for side in zip(shares, sizes, strict=True))
    difference = shares[0] - shares[1]
    return (
        difference - math.hypot(shares[0] - low, other_high - shares[1]),
        difference + math.hypot(high - shares[0], shares[1] - other_low),
    )
