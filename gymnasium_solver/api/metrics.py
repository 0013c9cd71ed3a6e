"""What metrics mean, as the front ends show it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any


def catalogue() -> list[dict[str, Any]]:
    """Every metric's name, unit, meaning, and healthy range with where that comes from; a name that ends with * stands
    for all that begin so."""
    from gymnasium_solver.metrics.catalogue import FAMILIES, METRICS

    return [asdict(metric) for metric in (*METRICS, *FAMILIES)]


def describe(name: str) -> dict[str, Any]:
    """`unit`, `meaning` and `healthy` range, None where the catalogue does not say."""
    from gymnasium_solver.metrics.catalogue import describe

    metric = describe(name)
    if metric is None:
        return {"unit": None, "healthy": None, "meaning": None}
    healthy = (metric.low, metric.high) if metric.has_range else None
    return {"unit": metric.unit, "healthy": healthy, "meaning": metric.meaning}
