"""A runs directory that is looked at again and again: an index of its runs, their curves, and what of it is served."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.api import served
from gymnasium_solver.api.columns import Columns, Curves
from gymnasium_solver.api.groups import RECORD, Group
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.checkpoints import SUFFIX
from gymnasium_solver.runs.index.index import SORTS, Changes, Index
from gymnasium_solver.runs.metrics_reader import file_version
from gymnasium_solver.runs.outcome import OUTCOMES as OUTCOMES
from gymnasium_solver.runs.reader import Run

OLD_SECONDS, OLDEST_SECONDS = 0.25, 1.2  # what the index says may be as old, in a small directory and in a large one
MOST_ALIKE = 50

SERVED = re.compile(rf"{re.escape(layout.REPORT)}|{layout.PLOTS}/[A-Za-z0-9_.+-]+\.svg")
MADE_OF = {
    "metrics": (layout.METRICS,),
    "log": (layout.LOG,),
    "diagnosis": (layout.METRICS, layout.STATUS, layout.CONFIG, layout.LOG, layout.NOISE_SCALE),
}


class Store:
    sorts = SORTS  # what `index.find` may order by

    def __init__(self, runs_dir: Path, when_read: Callable[[str], None] = lambda _: None) -> None:
        self.runs_dir = runs_dir
        self.index = Index.open(runs_dir)
        self.columns = Columns(lambda path: when_read(path.parent.name))
        self.listeners: list[Callable[[Changes], None]] = []
        self._refreshing = threading.Lock()
        self._refreshed = -OLDEST_SECONDS
        self._took = 0.0

    def close(self) -> None:
        self.columns.close()
        self.index.close()

    def run(self, ref: str) -> Run:
        """By id, unique beginning of one, or `@last`; never by path."""
        served.require_name(ref, self.runs_dir)
        if (self.runs_dir / ref / RECORD).is_file():
            raise NotFoundError(f"{ref} is a group of seeds, not a run; /api/runs?group={ref} lists its runs")
        return served.run(self._whole_id(ref), self.runs_dir)

    def run_or_group(self, ref: str) -> Run | Group:
        served.require_name(ref, self.runs_dir)
        return served.run_or_group(self._whole_id(ref), self.runs_dir)

    def _whole_id(self, ref: str) -> str:
        """Of a unique beginning, where the index knows it: thousands of directories take seconds to look through."""
        if (self.runs_dir / ref).exists():
            return ref
        self.refresh()
        total, rows = self.index.find(ref, limit=MOST_ALIKE)
        ids = [row["run_id"] for row in rows if row["run_id"].startswith(ref)]
        return ids[0] if total <= MOST_ALIKE and len(ids) == 1 else ref

    def metric_names(self, run: Run) -> list[str]:
        return self.columns.metrics(run.path / layout.METRICS).names

    def curves(self, run: Run, names: Sequence[str]) -> tuple[Curves, bool]:
        """Of those that it has, over env steps, and whether all values are in them."""
        return self.columns.curves(run.path / layout.METRICS, names)

    def standing(self, group: Group) -> str:
        """Its status, where one that says it is running but is not has crashed."""
        return group.standing(lambda: self.index.find(group=group.group_id, status="running", limit=0)[0] > 0)

    def summary(self, run: Run) -> dict[str, Any]:
        self.refresh()
        return self.index.get(run.run_id) or plain(run.summary())  # too young for the index

    def refresh(self) -> None:
        """Bring the index up to date and tell the listeners what has changed, unless that was just done."""
        with self._refreshing:
            began = time.monotonic()
            if began - self._refreshed < min(max(OLD_SECONDS, 3 * self._took), OLDEST_SECONDS):
                return
            changes = self.index.refresh()
            self._refreshed = time.monotonic()
            self._took = self._refreshed - began
            for listener in self.listeners:
                listener(changes)


def version_of(run: Run, what: str) -> tuple[Any, ...]:
    """Changes whenever one of the files does that `what` is made of: `metrics`, `log`, `diagnosis`, or the checkpoint
    of this name."""
    files = MADE_OF.get(what) or (f"{layout.CHECKPOINTS}/{what}{SUFFIX}",)
    return (run.path, *(file_version(run.path / name) for name in files))


def written_at(run: Run) -> int | None:
    """When its configuration last was, in nanoseconds; None if it is gone."""
    try:
        return (run.path / layout.CONFIG).stat().st_mtime_ns
    except OSError:
        return None


def files_of(run: Run) -> list[str]:
    """What may be fetched as it is: the report and its pictures."""
    pictures = sorted(f"{layout.PLOTS}/{path.name}" for path in (run.path / layout.PLOTS).glob("*.svg"))
    return [name for name in (layout.REPORT, *pictures) if (run.path / name).is_file()]


def file_of(run: Run, name: str) -> Path:
    place = run.path / name
    if not SERVED.fullmatch(name) or not place.is_file():
        there = ", ".join(files_of(run)[:20]) or f"none yet; gsolve report {run.run_id} writes them"
        raise NotFoundError(f"run {run.run_id} has no file {name[:100]!r} to show; there are {there}")
    return place
