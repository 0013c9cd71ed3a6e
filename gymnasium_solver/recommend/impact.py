"""How much a change is expected to help: env steps to the threshold, from measured reruns with such changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.diagnose.inference import calibration
from gymnasium_solver.diagnose.readings import Readings

METRIC = "env_steps_to_threshold"


def expected_impact(cause: str, readings: Readings) -> dict[str, Any]:
    """An 80 % interval. None stands for a threshold that is not reached within the budget."""
    unit, scale, of_what = _scale(readings)
    measured: Mapping[str, Any] = calibration().get("impact", {}).get(unit, {})
    entry = measured.get("causes", {}).get(cause) or measured.get("all")
    if entry is None or scale is None or readings.threshold is None:
        source = "no threshold to count steps to" if readings.threshold is None else "not measured for this cause yet"
        return {"metric": METRIC, "low": None, "mid": None, "high": None, "source": source}
    low, mid, high = (None if share is None else int(float(f"{share * scale:.2g}")) for share in entry["quantiles"])
    runs = entry["runs"]
    which = "this kind of change" if cause in measured.get("causes", {}) else "changes of any kind"
    return {
        "metric": METRIC,
        "low": low,
        "mid": mid,
        "high": high,
        "source": f"{runs} measured reruns after {which}, in units of {of_what} (benchmarks/faults)",
    }


def _scale(readings: Readings) -> tuple[str, float | None, str]:
    """What steps are measured in: those a shipped configuration needs, else the run's budget."""
    if usual := readings.usual_steps:
        return "usual", float(usual), "what the shipped configuration needs"
    return "budget", readings.planned, "the budget of the run"
