"""How much a change is expected to help: steps to the threshold, from measured reruns with such changes.

Those of the fault benchmark come with the package; what `gsolve optimize` measured beside the run takes their place
once there is enough of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.inference import calibration
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.metrics.clocks import ENV_STEPS

ENOUGH = 10  # seeds measured here before they count more than those of the benchmark
QUANTILES = (0.1, 0.5, 0.9)


def expected_impact(cause: str, readings: Readings, budget: float | None = None) -> dict[str, Any]:
    """An 80 % interval. None stands for a threshold that is not reached within the budget (the run's, unless the change
    brings another)."""
    most = budget or readings.planned or math.inf
    unit, scale, of_what = _scale(readings)
    if scale is not None and readings.threshold is not None and (here := _measured_here(cause, readings, unit)):
        source = f"{len(here)} seeds measured here by gsolve optimize, relative to {of_what}"
        quantiles = np.quantile(here, QUANTILES, method="nearest")
        return _counted(readings, [_steps(share, scale, most) for share in quantiles], most, source)
    measured: Mapping[str, Any] = calibration().get("impact", {}).get(unit, {})
    if readings.clock is not ENV_STEPS:  # the benchmark has no such runs
        measured = {}
    entry = measured.get("causes", {}).get(cause) or measured.get("all")
    if entry is None or scale is None or readings.threshold is None:
        source = "no threshold to count steps to" if readings.threshold is None else "not measured for this cause yet"
        return not_known(readings, source)
    runs = entry["runs"]
    which = "this kind of change" if cause in measured.get("causes", {}) else "changes of any kind"
    source = f"{runs} measured reruns after {which}, relative to {of_what} (benchmarks/faults)"
    steps = [None if share is None else _steps(share, scale, most) for share in entry["quantiles"]]
    return _counted(readings, steps, most, source)


def _counted(readings: Readings, steps: Sequence[int | None], most: float, source: str) -> dict[str, Any]:
    if steps[0] is None and math.isfinite(most):
        source = f"the threshold is not expected within {most:,.0f} {readings.clock.unit}, from {source}"
    low, mid, high = steps
    return _impact(readings, low, mid, high, source)


def not_known(readings: Readings, why: str) -> dict[str, Any]:
    return _impact(readings, None, None, None, why)


def _impact(readings: Readings, low: int | None, mid: int | None, high: int | None, source: str) -> dict[str, Any]:
    metric = f"{readings.clock.name}_to_threshold"
    return {"metric": metric, "low": low, "mid": mid, "high": high, "source": source}


def _measured_here(cause: str, readings: Readings, unit: str) -> list[float]:
    """Shares of the unit, one per seed, infinite where the threshold was not reached; empty while they are too few."""
    tests = [record for record in readings.impacts if record.get("cause") == cause and record.get(unit)]
    shares = [math.inf if steps is None else steps / record[unit] for record in tests for steps in record["steps"]]
    return shares if len(shares) >= ENOUGH else []


def _steps(share: float, scale: float, most: float) -> int | None:
    """To two digits: more would claim to be known."""
    is_reached = math.isfinite(share) and share * scale <= most
    return int(min(float(f"{share * scale:.2g}"), most)) if is_reached else None


def _scale(readings: Readings) -> tuple[str, float | None, str]:
    """What steps are measured in: those a shipped configuration needs, else the run's budget."""
    if usual := readings.usual_steps:
        return "usual", float(usual), "what the shipped configuration needs"
    return "budget", readings.planned, "the budget of the run"
