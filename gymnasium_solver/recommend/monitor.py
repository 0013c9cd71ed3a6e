"""The diagnosis of a training while it goes on: silent until something is certain, each finding told once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gymnasium_solver.metrics.clocks import clock_of

if TYPE_CHECKING:  # the engine takes a while to import: a run that is over before it is needed does without
    from gymnasium_solver.diagnose.engine import Diagnosis
    from gymnasium_solver.diagnose.inference import Ranked

EVALUATION = "val/roll/ep_rew_mean"
LEAST_SECONDS = 3.0  # of a run before it is looked at
CERTAIN = 0.8  # confidence, twice in a row
HOPELESS = 0.2  # odds of the threshold
LEAST_ROWS = 8
SHARE_OF_TIME = 0.02  # that looking may take
KEPT = 2000  # rows; of a longer run every second one is dropped


@dataclass(frozen=True)
class Finding:
    cause: str
    severity: str
    message: str


class Monitor:
    """Is given every row of metrics as it is written; returns what has become certain with it."""

    def __init__(self, config: Mapping[str, Any], spaces: Mapping[str, Any], threshold: float | None) -> None:
        self._config, self._spaces, self._threshold = config, spaces, threshold
        self._x = clock_of(config).column
        self._rows: list[dict[str, float]] = []
        self._stride, self._skipped = 1, 0
        self._suspected: str | None = None
        self._told: set[str] = set()
        self._due = time.perf_counter() + LEAST_SECONDS

    def observe(self, row: Mapping[str, float]) -> list[Finding]:
        self._keep(row)
        now = time.perf_counter()
        if len(self._rows) < LEAST_ROWS or now < self._due:
            return []
        found = self._certain(self._diagnosis())
        self._due = time.perf_counter() + (time.perf_counter() - now) / SHARE_OF_TIME
        return found

    def _keep(self, row: Mapping[str, float]) -> None:
        """Rows with an evaluation always; of the others fewer, the more there are."""
        self._skipped += 1
        if self._skipped < self._stride and EVALUATION not in row:
            return
        self._skipped = 0
        self._rows.append(dict(row))
        if len(self._rows) > KEPT:
            others = [row for row in self._rows if EVALUATION not in row][::2]
            evaluated = [row for row in self._rows if EVALUATION in row]
            self._rows = sorted([*others, *evaluated[-KEPT // 2 :]], key=lambda row: row.get(self._x, 0.0))
            self._stride *= 2

    def _diagnosis(self) -> Diagnosis:
        from gymnasium_solver.diagnose.engine import diagnose
        from gymnasium_solver.diagnose.readings import Readings
        from gymnasium_solver.diagnose.series import Series

        names = {name for row in self._rows for name in row}
        steps = np.array([row.get(self._x, np.nan) for row in self._rows])
        curves = {}
        for name in names:
            values = np.array([row.get(name, np.nan) for row in self._rows], float)
            if (curve := Series.of(steps, values)) is not None:
                curves[name] = curve
        record = {"threshold": self._threshold, "solved": False}
        return diagnose(Readings("", "running", self._config, curves, self._spaces, record=record))

    def _certain(self, diagnosis: Diagnosis) -> list[Finding]:
        from gymnasium_solver.diagnose.engine import severity
        from gymnasium_solver.diagnose.evidence import BY_NAME

        ranked = diagnosis.ranked[0] if diagnosis.ranked else None
        suspected, self._suspected = self._suspected, ranked.cause.id if ranked else None
        if ranked is None or ranked.cause.id in self._told or suspected != ranked.cause.id:
            return []
        invariant = any(BY_NAME[name].invariant for name in ranked.speaks_for)
        if not invariant and not self._is_hopeless(diagnosis, ranked):
            return []
        self._told.add(ranked.cause.id)
        return [Finding(ranked.cause.id, severity(diagnosis, ranked), _message(diagnosis, ranked))]

    def _is_hopeless(self, diagnosis: Diagnosis, ranked: Ranked) -> bool:
        from gymnasium_solver.diagnose.outlook import foresee

        readings, performance = diagnosis.readings, diagnosis.performance
        if ranked.confidence < CERTAIN or not performance.is_bad or performance.improving:
            return False
        if ranked.cause.category == "bug":  # suspected, not proved: no reason to interrupt anyone
            return False
        outlook = foresee(readings, performance, diagnosis.ranked)
        odds = outlook["probability_of_threshold"] if outlook else None
        return odds is not None and odds <= HOPELESS


def _message(diagnosis: Diagnosis, ranked: Ranked) -> str:
    from gymnasium_solver.recommend.recommendations import flag, recommend

    advice = recommend(diagnosis)
    changes = ", ".join(f"{name}={flag(value)}" for name, value in (advice[0]["set"] if advice else {}).items())
    remedy = f"; try {changes}" if changes else f"; look at {ranked.cause.where}" if ranked.cause.where else ""
    return f"{ranked.cause.id}: {ranked.cause.title} ({ranked.confidence:.0%} sure){remedy}"
