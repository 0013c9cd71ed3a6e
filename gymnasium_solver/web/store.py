"""The runs directory as the server sees it: what is inside it and nothing else."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gymnasium_solver import api
from gymnasium_solver.api.groups import EXPERIMENT, RECORD, Group, find
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.index import Changes, Index
from gymnasium_solver.runs.inside import is_inside, leads_outside
from gymnasium_solver.runs.layout import plain
from gymnasium_solver.runs.metrics_reader import file_version
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web.columns import Columns

NAME = re.compile(r"[^./\\~\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")  # or the beginning of one
LONGEST_NAME = 255  # bytes, as in most file systems
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
        self._require_name(ref)
        if (self.runs_dir / ref / RECORD).is_file():
            raise NotFoundError(f"{ref} is a group of seeds, not a run; /api/runs?group={ref} lists its runs")
        found = api.load_run(self._whole_id(ref), runs_dir=self.runs_dir)
        self._require_inside(found.path)
        return found

    def _whole_id(self, ref: str) -> str:
        """Of a unique beginning, where the index knows it: thousands of directories take seconds to look through."""
        if (self.runs_dir / ref).exists():
            return ref
        self.refresh()
        total, rows = self.index.find(ref, limit=MOST_ALIKE)
        ids = [row["run_id"] for row in rows if row["run_id"].startswith(ref)]
        return ids[0] if total <= MOST_ALIKE and len(ids) == 1 else ref

    def run_or_group(self, ref: str) -> Run | Group:
        self._require_name(ref)
        whole = self._whole_id(ref)
        place = str((self.runs_dir / whole).absolute())  # not a user's home, whatever it is called
        found = find(place if self._is_called(whole) else whole, self.runs_dir)
        self._require_inside(found.path)
        for run in found.runs() if isinstance(found, Group) else ():
            self._require_inside(run.path)
        return found

    def experiment(self, ref: str) -> Path:
        self._require_name(ref)
        path = self.runs_dir / ref
        if not (path / EXPERIMENT).is_file():
            raise NotFoundError(f"there is no experiment {ref!r} in {self.runs_dir}")
        self._require_inside(path)
        return path

    def experiments(self) -> list[Path]:
        """Their directories, newest first."""
        found = (path.parent for path in self.runs_dir.glob(f"*/{EXPERIMENT}") if is_inside(self.runs_dir, path))
        return sorted(found, reverse=True)

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

    def _require_name(self, ref: str) -> None:
        is_short = len(ref.encode(errors="replace")) <= LONGEST_NAME
        if not is_short or not (NAME.fullmatch(ref) or self._is_called(ref)):
            raise NotFoundError(f"{ref[:100]!r} is not the id of a run; ids have no slashes, and no point in front")

    def _is_called(self, ref: str) -> bool:
        """Directories that others made may have any name; the list shows them all."""
        if Path(ref).name != ref or ref == "..":
            return False
        return any((self.runs_dir / ref / name).is_file() for name in (layout.CONFIG, RECORD, EXPERIMENT))

    def _require_inside(self, path: Path) -> None:
        if path.resolve().parent != self.runs_dir.resolve():
            raise NotFoundError(f"{path.name!r} is not in {self.runs_dir}; only runs in it are served")
        if links := leads_outside(path):
            raise NotFoundError(
                f"{path.name} is not served: {', '.join(links[:5])} is a link out of it; put the file itself there"
            )


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


@contextmanager
def still_there(run: Run) -> Iterator[None]:
    """Whatever reading stumbles over in a run that is being deleted, it is gone."""
    try:
        yield
    except Exception as error:
        if (run.path / layout.CONFIG).is_file():
            raise
        raise NotFoundError(f"run {run.run_id} was deleted while it was read") from error
    if not (run.path / layout.CONFIG).is_file():
        raise NotFoundError(f"run {run.run_id} was deleted while it was read")


def files_of(run: Run) -> list[str]:
    """What may be fetched as it is: the report and its pictures."""
    pictures = sorted(f"{layout.PLOTS}/{path.name}" for path in (run.path / layout.PLOTS).glob("*.png"))
    return [name for name in (layout.REPORT, *pictures) if (run.path / name).is_file()]
