"""A training that another process does, as the events and the state that the views of `gsolve train` draw."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gymnasium_solver import api
from gymnasium_solver.api.reading import log_entries, new_rows
from gymnasium_solver.api.store import version_of, written_at
from gymnasium_solver.cli.progress import EVAL_REWARD, SHOWN, Progress
from gymnasium_solver.cli.sparkline import Curve
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.processes import SILENCE_SECONDS

if TYPE_CHECKING:
    from gymnasium_solver.runs.index.rows import Mark
    from gymnasium_solver.runs.reader import Run

POINTS = 2000  # of a curve's past; more would not show
DIAGNOSE_SECONDS = 10.0
DIAGNOSE_SHARE = 0.02  # of the time


class Seen(NamedTuple):
    """An event as train.session's, whose module brings in JAX."""

    kind: str
    run: str
    data: dict[str, Any]


class FileProgress(Progress):
    """The clock and the speed of a training are those of the process that does it."""

    def __init__(self) -> None:
        super().__init__()
        self.record: dict[str, Any] = {}
        self.speed: float | None = None

    @property
    def elapsed(self) -> float:
        seconds = float(self.record.get("elapsed_s") or 0.0)
        if self.record.get("status") != "running":
            return seconds
        silence = time.time() - float(self.record.get("heartbeat") or 0.0)
        return seconds + min(max(silence, 0.0), SILENCE_SECONDS)

    @property
    def fps(self) -> float | None:
        if self.clock.pace is None:
            return self.steps / self.elapsed if self.elapsed else None
        return self.speed if self.speed is not None and math.isfinite(self.speed) else None


class Following:
    """Asked again and again, tells what has been written since."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.progress = FileProgress()
        self.is_running = True
        self._began = False
        self._pace = [name for name in (run.clock.column, run.clock.pace) if name]
        self._mark: Mark | None = None
        self._log_version: Any = None
        self._log: list[dict[str, str]] = []

    def news(self) -> Iterator[Any]:
        """Events, or at least one that means nothing but that time has passed."""
        if written_at(self.run) is None:
            raise NotFoundError(
                f"run {self.run.run_id} was deleted while it was watched; gsolve runs lists those that are left"
            )
        record = self.run.status  # before the rows, so that none is missed between the two
        self.progress.record, self.is_running = record, record["status"] == "running"
        warnings = self._new_warnings()
        if not self._began:
            self._began = True
            yield self._event("started", **self._beginning(record))
        for row in self._new_rows():
            self.progress.speed = row.get(self.run.clock.pace or "", self.progress.speed)
            if EVAL_REWARD in row:
                yield self._event("evaluated", ep_rew_mean=row[EVAL_REWARD])
            yield self._event("epoch", metrics=row)
        for warning in warnings:
            yield self._event("warning", message=warning)
        if self.is_running:
            yield self._event("waited")
        else:
            yield self._event("finished", status=record["status"], summary=self.run.summary())

    def catch_up(self) -> None:
        for event in self.news():
            self.progress.feed(event.kind, event.run, event.data)

    def _event(self, kind: str, **data: Any) -> Seen:
        return Seen(kind, self.run.run_id, data)

    def _beginning(self, record: dict[str, Any]) -> dict[str, Any]:
        config = self.run.config
        said = [entry["message"] for entry in self._log if entry["message"].startswith("engine ")]
        engine, _, reason = said[-1].removeprefix("engine ").partition(": ") if said else ("run in", "", self.run.path)
        return {
            "path": self.run.path,
            "config": config,
            "engine": engine,
            "reason": reason,
            "threshold": record.get("threshold", config.get("reward_threshold")),
            self.run.clock.budget: self.run.clock.budget_of(record, config),
        }

    def _new_rows(self) -> Iterator[dict[str, float]]:
        with new_rows(self.run, (*SHOWN, *self._pace), self._mark) as rows:
            self._mark = rows.mark
            if rows.continues:
                yield from rows
            elif rows.mark is not None:  # the first time, or a file with other columns
                yield from self._past()

    def _past(self) -> Iterator[dict[str, float]]:
        """Fill the curves at once; what is told is the newest."""
        self.progress.curves.clear()
        columns = self.run.metrics.overview([EVAL_REWARD])
        for name in SHOWN:
            if name in columns and (values := columns[name].values[columns[name].recorded]).size:
                curve = self.progress.curves[name] = Curve()
                for value in values[:: 1 + len(values) // POINTS].tolist():
                    curve.add(value)
                curve.last = float(values[-1])
        evaluated = columns[EVAL_REWARD].values if EVAL_REWARD in columns else np.empty(0)
        known = evaluated[~np.isnan(evaluated)]
        self.progress.best_eval = float(known.max()) if known.size else None
        newest = {name: self.run.metrics.last(name) for name in self._pace if name in columns}
        if columns:
            yield {name: value for name, value in newest.items() if not np.isnan(value)}

    def _new_warnings(self) -> list[str]:
        version = version_of(self.run, "log")
        if version == self._log_version:
            return []
        seen, self._log_version = len(self._log), version
        self._log = log_entries(self.run.log_lines())
        return [entry["message"] for entry in self._log[seen:] if entry["level"] == "WARNING"]


class Diagnoser:
    """The diagnosis of a run in progress, made beside the watching and so seldom that it takes little of the time."""

    def __init__(self, run: Run) -> None:
        self.found: list[str] = []
        self._run = run
        self._shown: list[str] = []
        self._due = time.monotonic()
        self._work: threading.Thread | None = None

    def has_news(self) -> bool:
        if self._work is not None and self._work.is_alive():
            return False
        news, self._shown = self.found != self._shown, self.found
        if time.monotonic() >= self._due:
            self._work = threading.Thread(target=self.look, daemon=True)  # nobody waits for it in the end
            self._work.start()
        return news

    def look(self) -> list[str]:
        """What hinders the run most, and how it will end, a line each."""
        began = time.monotonic()
        try:
            document = api.diagnose(api.load_run(self._run.path))
        except Exception as error:  # the training is what people watch
            self.found = [f"the diagnosis failed ({type(error).__name__}: {error})"]
        else:
            self.found = [*_finding(document), *_outlook(document)]
        took = time.monotonic() - began
        self._due = time.monotonic() + max(DIAGNOSE_SECONDS, took / DIAGNOSE_SHARE)
        return self.found


def _finding(document: dict[str, Any]) -> Iterator[str]:
    for first in document["bottlenecks"][:1]:
        yield f"{first['severity']}: {first['title']} ({first['cause']}, {first['confidence']:.0%} sure)"


def _outlook(document: dict[str, Any]) -> Iterator[str]:
    outlook = document["outlook"] or {}
    odds = outlook.get("probability_of_threshold")
    if odds is not None and not document["summary"]["solved"]:
        yield f"outlook: {odds:.0%} odds of the threshold, {outlook['action']}"
