"""A curve in few points that still shows every peak."""

from __future__ import annotations

import numpy as np


def thin(steps: np.ndarray, values: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `points` (2 or more) of these: the first, the last, and the lowest and highest of equal stretches.

    Points stay where they were measured: a peak is neither moved nor flattened. The same curve gives the same points.
    """
    if len(values) <= points:
        return steps, values
    kept = _extremes(values[1:-1], (points - 2) // 2) + 1
    kept = np.concatenate([[0], kept, [len(values) - 1]])
    return steps[kept], values[kept]


def _extremes(values: np.ndarray, stretches: int) -> np.ndarray:
    """Positions of the lowest and highest value of each stretch, in order."""
    if not stretches:
        return np.empty(0, int)
    size, rest = divmod(len(values), stretches)
    # Stretches of size + 1 first, then those of size: each part is a rectangle.
    cut = rest * (size + 1)
    found = []
    for start, end, width in ((0, cut, size + 1), (cut, len(values), size)):
        if end > start:
            block = values[start:end].reshape(-1, width)
            offsets = start + np.arange(len(block)) * width
            found += [offsets + block.argmin(axis=1), offsets + block.argmax(axis=1)]
    return np.unique(np.concatenate(found)) if found else np.empty(0, int)
