"""Results by date: the best so far, and whether later configurations do better than earlier ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np

from gymnasium_solver.diagnose.history import Configuration, PastRun
from gymnasium_solver.statistics import compare, interquartile_mean

Metric = Literal["frames", "seconds", "return"]
FEWEST = 8  # configurations, half of them early, half late
DAYS, WEEKS = 14, 26 * 7  # spans, in days, that are told by the day and by the week


def result(run: PastRun, metric: Metric) -> float:
    """Infinite where the threshold was not reached, nan where the run does not tell."""
    if metric == "return":
        return run.reward
    return run.frames if metric == "frames" else run.seconds


def over_time(configurations: Sequence[Configuration], metric: Metric) -> dict[str, Any]:
    dated = sorted(
        ((day, run) for entry in configurations for run in entry.runs if (day := _day(run.started)) is not None),
        key=lambda pair: (pair[0], pair[1].started),
    )
    return {
        "metric": metric,
        **_periods(dated, metric),
        "trend": _trend([entry for entry in configurations if _day(entry.started) is not None], metric),
    }


def _periods(dated: Sequence[tuple[date, PastRun]], metric: Metric) -> dict[str, Any]:
    if not dated:
        return {"period": "day", "periods": []}
    span = (dated[-1][0] - dated[0][0]).days
    period = "day" if span <= DAYS else "week" if span <= WEEKS else "month"
    groups: dict[date, list[PastRun]] = {}
    for day, run in dated:
        groups.setdefault(_first_day(day, period), []).append(run)
    sign = -1.0 if metric == "return" else 1.0
    best, periods = math.inf, []
    for first, runs in groups.items():
        values = np.array([result(run, metric) for run in runs])
        values = values[np.isfinite(values)]
        best = min(best, (sign * values).min(initial=math.inf))
        periods.append(
            {
                "from": first.isoformat(),
                "runs": len(runs),
                "solved": sum(run.solved is True for run in runs),
                "iqm": interquartile_mean(values) if values.size else None,
                "best_so_far": sign * best if math.isfinite(best) else None,
            }
        )
    return {"period": period, "periods": periods}


def _trend(configurations: Sequence[Configuration], metric: Metric) -> dict[str, Any]:
    """Configurations of the later half against those of the earlier one; each counts once, by its median run."""
    scored = [
        (entry.started, float(np.median(values)))
        for entry in configurations
        if (values := [x for run in entry.runs if not math.isnan(x := result(run, metric))])
    ]
    found: dict[str, Any] = {"configurations": len(scored), "needed": FEWEST, "verdict": "too few configurations"}
    if len(scored) < FEWEST:
        return found
    scores = [score for _, score in sorted(scored)]
    half = len(scores) // 2
    compared = compare(scores[:half], scores[half:], larger_is_better=metric == "return")
    words = {"better": "getting better", "worse": "getting worse"}
    return found | {
        "verdict": words.get(compared.verdict, "no trend shown"),
        "iqm_earlier": compared.iqm[0],
        "iqm_later": compared.iqm[1],
        "probability_later_is_better": compared.probability,
        "interval": compared.probability_interval,
        "p_value": compared.p_value,
    }


def _day(started: str) -> date | None:
    try:
        return date.fromisoformat(started[:10])
    except ValueError:
        return None


def _first_day(day: date, period: str) -> date:
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day
