"""Curves over the steps of a run, in as many points as someone can look at."""

from __future__ import annotations

from typing import Any

import numpy as np


def in_order(steps: np.ndarray | None, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finite values in the order of the steps; of the rows where there are none."""
    if steps is None:
        steps = np.arange(len(values), dtype=float)
    rows = min(len(steps), len(values))
    steps, values = steps[:rows], values[:rows]
    known = np.isfinite(steps) & np.isfinite(values)
    if not known.all():
        steps, values = steps[known], values[known]
    if (steps[1:] < steps[:-1]).any():
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    return steps, values


def between(
    steps: np.ndarray, values: np.ndarray, start: float | None, end: float | None
) -> tuple[np.ndarray, np.ndarray]:
    first = 0 if start is None else np.searchsorted(steps, start)
    behind = len(steps) if end is None else np.searchsorted(steps, end, "right")
    return steps[first:behind], values[first:behind]


def curve(steps: np.ndarray, values: np.ndarray, points: int) -> dict[str, Any]:
    """`steps` and `values`, thinned so that every peak stays, how many there are in `total`, and whether that is more:
    `downsampled`."""
    from gymnasium_solver.runs.thinning import thin

    total = len(steps)
    steps, values = thin(steps, values, points)
    whole = steps.astype(np.int64)
    return {
        "steps": (whole if (whole == steps).all() else steps).tolist(),
        "values": values.tolist(),
        "total": total,
        "downsampled": len(steps) < total,
    }
