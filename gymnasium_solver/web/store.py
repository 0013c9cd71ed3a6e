"""The runs directory as the server sees it: what is inside it and nothing else."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymnasium_solver.api import served
from gymnasium_solver.api.groups import RECORD, Group
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.index.index import Changes, Index
from gymnasium_solver.runs.metrics_reader import file_version
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web.columns import Columns

OLD_SECONDS, OLDEST_SECONDS = 0.25, 1.2  # what the index says may be as old, in a small directory and in a large one
MOST_ALIKE = 50
KEPT_ANSWERS = 32 << 20  # bytes


class Store:
    def __init__(self, runs_dir: Path, when_read: Callable[[str], None] = lambda _: None) -> None:
        self.runs_dir = runs_dir
        self.index = Index.open(runs_dir)
        self.columns = Columns(lambda path: when_read(path.parent.name))
        self.answers = Answers()
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


class Answers:
    """Documents that cost something to make, as bytes, for as long as what they were made of is the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Any) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Any, answer: bytes) -> bytes:
        with self._lock:
            self._bytes += len(answer) - len(self._kept.pop(key, b""))
            self._kept[key] = answer
            while self._bytes > KEPT_ANSWERS:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return answer


def version_of(run: Run, *files: str) -> tuple[Any, ...]:
    """Changes whenever one of these files of the run does."""
    return (run.path, *(file_version(run.path / name) for name in files))


def as_json(document: Any) -> bytes:
    try:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):  # NaN, or NumPy's own; most documents have none, and looking for them takes longer
        text = json.dumps(plain(document), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def files_of(run: Run) -> list[str]:
    """What may be fetched as it is: the report and its pictures."""
    pictures = sorted(f"{layout.PLOTS}/{path.name}" for path in (run.path / layout.PLOTS).glob("*.png"))
    return [name for name in (layout.REPORT, *pictures) if (run.path / name).is_file()]
