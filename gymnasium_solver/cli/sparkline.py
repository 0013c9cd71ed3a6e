"""The history of a metric, drawn in one line."""

from __future__ import annotations

import math

from gymnasium_solver.metrics.sparkline import sparkline


class Curve:
    """The history of one metric in bounded memory: when full, neighbours are merged into their mean."""

    def __init__(self, capacity: int = 256) -> None:
        self.last = math.nan
        self._points: list[float] = []
        self._capacity = capacity
        self._stride = 1
        self._pending: list[float] = []

    def add(self, value: float) -> None:
        self.last = value
        if not math.isfinite(value):
            return
        self._pending.append(value)
        if len(self._pending) < self._stride:
            return
        self._points.append(sum(self._pending) / len(self._pending))
        self._pending.clear()
        if len(self._points) == self._capacity:
            self._points = [(a + b) / 2 for a, b in zip(self._points[::2], self._points[1::2], strict=True)]
            self._stride *= 2

    def sparkline(self, width: int) -> str:
        return sparkline(self._points, width)
