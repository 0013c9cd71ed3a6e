"""Whether what a recommendation promised came true in the run that followed it."""

from __future__ import annotations

import math
from typing import Any

from faults.training import Records, Task


def covered(document: dict[str, Any], task: Task | None, records: Records) -> bool | None:
    """Whether the interval of the first recommendation holds what was measured; None if it promised no such number."""
    recommendations = document.get("recommendations") or []
    impact = (recommendations[0].get("expected_impact") if recommendations else None) or {}
    if task is None or impact.get("low") is None:
        return None
    high = math.inf if impact.get("high") is None else impact["high"]  # it may never come to it
    value = measured(str(impact.get("metric")), task, records)
    return None if value is None else bool(impact["low"] <= value <= high)


def measured(metric: str, task: Task, records: Records) -> float | None:
    """The quantities that an impact may be stated in; any other is not judged here.

    `score`: 0 nothing learnt to 1 solved · `reward`: mean return of the final evaluation ·
    `env_steps_to_threshold`: steps until solved, without end if it was not.
    """
    record = records[task.key]
    if metric == "score":
        return float(record["score"])
    if metric == "reward":
        return None if record["reward"] is None else float(record["reward"])
    if metric == "env_steps_to_threshold":
        return float(record["steps"]) if record["solved"] else math.inf
    return None
