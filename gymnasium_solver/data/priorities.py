"""Prioritised replay, https://arxiv.org/abs/1511.05952: sums over priorities, so that drawing and changing some of a
million takes as long as for a few thousand.

A tree of fan-out 64 rather than 2: three or four levels, each one NumPy call over all draws. Sums are always made anew
from their children, so they do not drift.
"""

from __future__ import annotations

import numpy as np

_FAN = 64


class Priorities:
    def __init__(self, size: int, alpha: float, eps: float) -> None:
        self._alpha, self._eps = alpha, eps
        self.newest = 1.0  # the largest so far: what is new is replayed soon
        widths = [size]
        while widths[-1] > _FAN:
            widths.append(-(-widths[-1] // _FAN))
        # levels[0] are the priorities; a level's nodes come in blocks of _FAN, one to each node of the next.
        self._levels = [np.zeros((-(-width // _FAN), _FAN)) for width in widths]

    @property
    def total(self) -> float:
        return float(self._levels[-1].sum())

    def set(self, index: np.ndarray, priority: np.ndarray | float) -> None:
        self._levels[0].reshape(-1)[index] = priority
        for below, above in zip(self._levels[:-1], self._levels[1:], strict=True):
            index = index // _FAN
            above.reshape(-1)[index] = below[index].sum(axis=1)

    def update(self, index: np.ndarray, errors: np.ndarray) -> None:
        priority = (np.abs(errors).astype(np.float64) + self._eps) ** self._alpha
        self.newest = max(self.newest, float(priority.max()))
        self.set(index, priority)

    def sample(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices in proportion to their priority, one from each of `count` equal slices of the total, in random
        order; and the probability of each."""
        total = self.total
        point = (rng.permutation(count) + rng.random(count)) * (total / count)
        block = np.zeros(count, np.int64)
        for level in reversed(self._levels):
            nodes = level[block]
            sums = np.cumsum(nodes, axis=1)
            child = np.minimum((sums <= point[:, None]).sum(axis=1), _FAN - 1)
            rows = np.arange(count)
            # Rounding may lead past the last node that holds anything.
            empty = nodes[rows, child] <= 0
            if empty.any():
                child[empty] = np.argmax(nodes[empty], axis=1)
            point = np.maximum(point - (sums[rows, child] - nodes[rows, child]), 0.0)
            block = block * _FAN + child
        return block, self.chance(block)

    def chance(self, index: np.ndarray) -> np.ndarray:
        return self._levels[0].reshape(-1)[index] / self.total

    def to_arrays(self, filled: int) -> dict[str, np.ndarray]:
        return {
            "priorities": self._levels[0].reshape(-1)[:filled].copy(),
            "newest_priority": np.array([self.newest]),
        }

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self.newest = float(arrays["newest_priority"][0])
        self._levels[0].reshape(-1)[: len(arrays["priorities"])] = arrays["priorities"]
        for below, above in zip(self._levels[:-1], self._levels[1:], strict=True):
            above.reshape(-1)[: len(below)] = below.sum(axis=1)
