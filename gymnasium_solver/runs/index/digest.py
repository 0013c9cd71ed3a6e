"""What a run's summary and sparkline need of metrics.csv, in a few numbers that go on with every new row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.index.rows import Mark, NewRows
from gymnasium_solver.runs.reader import Run

EVALUATED, TRAINED = "val/roll/ep_rew_mean", "train/roll/ep_rew_mean"
COUNTS = (*(clock.column for clock in CLOCKS.values()), "train/cnt/epochs", "train/cnt/episodes")
LASTING = (*COUNTS, "test/roll/ep_rew_mean")
WANTED = (*LASTING, EVALUATED, TRAINED)
POINTS = 40  # of a sparkline


@dataclass
class Digest:
    """Answers what `Run.summary` asks of the metrics, without their rows."""

    mark: Mark | None = None
    columns: list[str] = field(default_factory=list)
    rows: int = 0
    newest: dict[str, float] = field(default_factory=dict)
    best: float = -math.inf
    rewards: int = 0
    points: list[float] = field(default_factory=list)  # means of `stride` rewards each; neighbours merge when full
    stride: int = 1
    pending: float = 0.0  # the sum of rewards that are not yet a point
    waiting: int = 0

    @classmethod
    def from_json(cls, text: str) -> Digest:
        known: dict[str, Any] = json.loads(text)
        return cls(**known | {"mark": Mark(*known["mark"]) if known["mark"] else None})

    def to_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def load(self, names: Iterable[str]) -> None:
        """Everything is there already."""

    def last(self, name: str) -> float:
        return self.newest.get(name, math.nan)

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The best reward and the last stand for all."""
        values = np.array([self.best, self.newest[name]] if self.rewards else [])
        return np.empty(len(values)), values

    @cached_property
    def reward(self) -> str:
        return EVALUATED if EVALUATED in self.columns else TRAINED

    def sparkline(self) -> list[float]:
        """At most forty means of the learning curve."""
        points = [*self.points, self.pending / self.waiting] if self.waiting else self.points
        size = min(POINTS, len(points))
        edges = [index * len(points) // size for index in range(size + 1)] if size else []
        return [sum(points[low:high]) / (high - low) for low, high in pairwise(edges)]

    def add(self, row: dict[str, float], x: str) -> None:
        self.rows += 1
        for name in LASTING:
            if name in row:
                self.newest[name] = row[name]
        reward = row.get(self.reward, math.nan)
        if math.isnan(reward) or math.isnan(row.get(x, math.nan)):
            return
        self.rewards += 1
        self.newest[self.reward] = reward
        self.best = max(self.best, reward)
        if math.isfinite(reward):
            self._draw(reward)

    def _draw(self, reward: float) -> None:
        self.pending += reward
        self.waiting += 1
        if self.waiting < self.stride:
            return
        self.points.append(self.pending / self.stride)
        self.pending, self.waiting = 0.0, 0
        if len(self.points) == 2 * POINTS:
            self.points = [(a + b) / 2 for a, b in zip(self.points[::2], self.points[1::2], strict=True)]
            self.stride *= 2


def digest(path: Path, before: Digest | None = None) -> Digest:
    """Of a run's metrics; only rows behind those that `before` has seen are read."""
    with NewRows(path / layout.METRICS, WANTED, before.mark if before else None) as rows:
        if before is not None and rows.continues:
            found = before
        else:
            found = Digest(columns=[name for name in WANTED if name in rows.names])
        x = Run(path).clock.column
        for row in rows:
            found.add(row, x)
    found.mark = rows.mark
    return found


class DigestedRun(Run):
    """A run whose summary costs no reading of its metrics."""

    def __init__(self, path: Path, known: Digest) -> None:
        super().__init__(path)
        self._digest = known

    @property
    def metrics(self) -> Any:
        return self._digest
