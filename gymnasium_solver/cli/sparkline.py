"""A curve in one line of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """At most `width` blocks scaled between the smallest and largest value; each block is the mean of its stretch."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    size = min(width, len(finite))
    edges = [index * len(finite) // size for index in range(size + 1)]
    means = [sum(finite[low:high]) / (high - low) for low, high in pairwise(edges)]
    low, high = min(means), max(means)
    if high - low <= 1e-9 * max(abs(high), abs(low)):
        return BLOCKS[3] * size
    return "".join(BLOCKS[min(int((mean - low) / (high - low) * 8), 7)] for mean in means)


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
