"""Whether what a recommendation promised came true in the run that followed it."""

from __future__ import annotations

from typing import Any

from faults.cases import Case, all_cases
from faults.training import Records, Task


def covered(case: Case, document: dict[str, Any], task: Task | None, records: Records) -> bool | None:
    """Whether the interval of the first recommendation holds what was measured; None if it promised no such number."""
    recommendations = document.get("recommendations") or []
    impact = (recommendations[0].get("expected_impact") if recommendations else None) or {}
    if task is None or impact.get("low") is None or impact.get("high") is None:
        return None
    value = measured(str(impact.get("metric")), case, task, records)
    return None if value is None else bool(impact["low"] <= value <= impact["high"])


def measured(metric: str, case: Case, task: Task, records: Records) -> float | None:
    """The quantities that an impact may be stated in; any other is not judged here.

    `score`: 0 nothing learnt to 1 solved · `reward`: mean return of the final evaluation ·
    `env_steps_to_threshold`: steps until solved, the budget if it was not.
    """
    record = records[task.key]
    if metric == "score":
        return float(record["score"])
    if metric == "reward":
        return None if record["reward"] is None else float(record["reward"])
    if metric == "env_steps_to_threshold":
        budget = all_cases()[task.case].config(task.seed, task.changes).max_env_steps
        return float(record["steps"] if record["solved"] else budget)
    return None
