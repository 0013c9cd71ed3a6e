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
    if not math.isfinite(high - low):  # beyond what a float can hold
        means = [mean / 4 for mean in means]
        low, high = low / 4, high / 4
    if high - low <= 1e-9 * max(abs(high), abs(low)):
        return BLOCKS[3] * size
    return "".join(BLOCKS[min(int((mean - low) / (high - low) * 8), 7)] for mean in means)
