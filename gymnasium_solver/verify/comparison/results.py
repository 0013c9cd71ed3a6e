"""What each side came to over its seeds, and whether it is better than the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gymnasium_solver.statistics import ALPHA, Bounds, Comparison, compare, holm, interquartile_mean, iqm_interval


def side_results(rows: Sequence[Mapping[str, Any]], returns: Bounds, budget: float) -> dict[str, Any]:
    """Over the seeds of a side: their rewards can be within `returns`, their steps within the budget."""
    times = {"steps_to_threshold": (0.0, budget), "seconds_to_threshold": (0.0, math.inf)}
    possible = {"final_reward": returns, **times, "area": returns}
    paces = known(rows, "steps_per_second")
    return {
        "seeds": len(rows),
        "with_data": len(known(rows, "final_reward")),
        "solved": sum(row["solved"] for row in rows),
        "reached": sum(row["reached"] for row in rows),  # in a curve; the last evaluation of the best policy may too
        **{name: _over_seeds(known(rows, name), bounds) for name, bounds in possible.items()},
        "steps_per_second": float(np.median(paces)) if paces.size else math.nan,
    }


def known(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """One number a seed; infinite where a threshold was not reached."""
    return np.array([row[name] for row in rows if not math.isnan(row[name])])


def _over_seeds(values: np.ndarray, possible: Bounds) -> dict[str, Any]:
    if not values.size:
        return {"iqm": math.nan, "interval": (math.nan, math.nan), "median": math.nan, "spread": math.nan}
    spread = float(values.std(ddof=1)) if values.size > 1 and np.isfinite(values).all() else math.nan
    middle = float(np.quantile(values, 0.5, method="higher")) if np.isinf(values).any() else float(np.median(values))
    return {
        "iqm": interquartile_mean(values),
        "interval": iqm_interval(values, possible=possible),
        "median": middle,
        "spread": spread,
    }


@dataclass(frozen=True)
class Judged:
    """A side against the baseline by one measure, its p-value adjusted for the number of sides."""

    side: str
    measure: str
    comparison: Comparison
    p_adjusted: float

    @property
    def verdict(self) -> str:
        if self.comparison.verdict == "too few seeds":
            return "too few seeds"
        if self.p_adjusted > ALPHA or self.comparison.probability == 0.5:
            return "no difference shown"
        return "better" if self.comparison.probability > 0.5 else "worse"

    def document(self, baseline: str, decides: bool) -> dict[str, Any]:
        """Of several measures one decides: with as many chances, some difference would always be found."""
        found = self.comparison
        return {
            "side": self.side,
            "against": baseline,
            "measure": self.measure,
            "decides": decides,
            "verdict": self.verdict if decides else None,
            "seeds": list(found.seeds)[::-1],
            "probability_of_improvement": found.probability,
            "interval": found.probability_interval,
            "p_value": found.p_value,
            "p_adjusted": self.p_adjusted,
            "effect": found.effect,
            "seeds_needed": found.seeds_needed,
        }


def judge(names: Sequence[str], rows: Sequence[Sequence[Mapping[str, Any]]], measure: str) -> list[Judged]:
    """Every side but the first against the first."""
    baseline, *others = ([*known(side, measure)] for side in rows)
    is_cost = measure == "steps_to_threshold"  # fewer are better, and twice as many is as much worse everywhere
    found = [compare(baseline, other, larger_is_better=not is_cost, by_ratio=is_cost) for other in others]
    tested = [comparison.p_value for comparison in found if comparison.verdict != "too few seeds"]
    left = iter(holm(tested))
    adjusted = [1.0 if comparison.verdict == "too few seeds" else next(left) for comparison in found]
    return [Judged(name, measure, one, p) for name, one, p in zip(names[1:], found, adjusted, strict=True)]
