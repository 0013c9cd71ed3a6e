"""One run as a comparison sees it: what it was, its curves, and what it came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gymnasium_solver.metrics.clocks import Clock
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.metrics_reader import Column
from gymnasium_solver.runs.reader import Run

EVALUATION, TRAINING, FINAL = "val/roll/ep_rew_mean", "train/roll/ep_rew_mean", "test/roll/ep_rew_mean"

Curve = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class ComparedRun:
    run: Run
    config: dict[str, Any]
    summary: dict[str, Any]
    columns: dict[str, Column]
    library: str | None  # that trained it, if it was not this one
    command: Sequence[str]

    @classmethod
    def read(cls, run: Run) -> ComparedRun:
        command = run.environment.get("command")
        return cls(
            run=run,
            config=run.config,
            summary=run.summary(),
            columns=run.metrics.overview([EVALUATION, TRAINING, FINAL]),
            library=layout.read_json(run.path / layout.SOURCE).get("library"),
            command=[str(part) for part in command] if isinstance(command, list) else [],
        )

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def clock(self) -> Clock:
        return self.run.clock

    @property
    def seed(self) -> int | None:
        return self.summary["seed"]

    @cached_property
    def variant(self) -> str:
        """As it was asked for on the command line, else the algorithm; of another library with its name."""
        prefix = f"{self.config.get('env_id')}:"
        asked = [part.removeprefix(prefix) for part in self.command if part.startswith(prefix)]
        name = asked[0] if asked else str(self.config.get("algo_id") or "unknown algorithm")
        return f"{self.library} {name}" if self.library else name

    def curve(self, name: str) -> Curve:
        """(steps of the clock, values), finite ones only; empty if it was not recorded."""
        column = self.columns.get(name)
        if column is None:
            return np.empty(0), np.empty(0)
        known = np.isfinite(column.steps) & np.isfinite(column.values)
        return column.steps[known], column.values[known]

    def median(self, name: str, start: float = 0.0, stop: float = 1.0) -> float | None:
        """Of the values between two shares of the run's steps."""
        values = self.part(name, start, stop)
        return float(np.median(values)) if values.size else None

    def part(self, name: str, start: float, stop: float) -> np.ndarray:
        steps, values = self.curve(name)
        return values[(steps >= start * self.trained) & (steps <= stop * self.trained)]

    @cached_property
    def trained(self) -> float:
        """Steps it got to; rows, where the clock was not logged."""
        return max(
            (float(np.nanmax(x.steps)) for x in self.columns.values() if np.isfinite(x.steps).any()), default=0.0
        )

    @property
    def ended_solved(self) -> bool:
        """Whether it stopped because it was good enough: then its last reward stands for what would have followed."""
        return bool(self.summary["status"] == "solved")

    def last(self, name: str) -> float:
        values = self.curve(name)[1]
        return float(values[-1]) if values.size else math.nan

    def steps_to(self, threshold: float, name: str) -> float:
        """Steps to the first value at the threshold; infinite if there is none."""
        steps, values = self.curve(name)
        at = np.flatnonzero(values >= threshold)
        return float(steps[at[0]]) if at.size else math.inf

    def seconds_at(self, steps: float) -> float:
        """Since the start of training; NaN where the pace is not known."""
        if math.isinf(steps):
            return math.inf
        at, pace = self.curve(self.clock.pace or "")
        if at.size and pace[near := int(np.argmin(np.abs(at - steps)))] > 0:
            return steps / float(pace[near])
        elapsed = self.summary["duration_s"]
        return steps / self.trained * float(elapsed) if elapsed and self.trained else math.nan

    @property
    def pace(self) -> float:
        """Steps per second over the whole run."""
        return self.trained / seconds if (seconds := self.seconds_at(self.trained)) > 0 else math.nan
