"""The index of a runs directory: every run's summary and sparkline, to be searched and sorted without opening it.

The directories are the truth and this is a cache of them: it may be deleted at any time, and rebuilds itself.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.index.digest import Digest, DigestedRun, digest
from gymnasium_solver.runs.index.store import PostgresStore, SqliteStore, Store
from gymnasium_solver.runs.reader import Run, default_runs_dir

# A new number for other columns or another content: versions side by side each have a table of their own.
TABLE = "gsolve_runs_3"
TEXTS = ("run_id", "env_id", "algo_id", "status", "group", "started_at", "updated_at", "clock")
NUMBERS = (
    *("seed", "progress", "budget", "env_steps", "epochs", "episodes", "max_env_steps"),
    *("best_reward", "last_reward", "test_reward", "threshold", "solved", "duration_s"),
)
SORTS = (*TEXTS, *NUMBERS)
COLUMNS = ("root", "stamp", *SORTS, "words", "document", "digest")
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    root {{text}} NOT NULL, stamp {{text}} NOT NULL,
    {", ".join(f'"{name}" {{text}} NOT NULL' for name in TEXTS)},
    {", ".join(f'"{name}" DOUBLE PRECISION' for name in NUMBERS)},
    words {{text}} NOT NULL, document {{text}} NOT NULL, digest {{text}} NOT NULL,
    PRIMARY KEY (root, run_id)
);
CREATE INDEX IF NOT EXISTS {TABLE}_started ON {TABLE} (root, started_at, run_id);
SELECT {", ".join(f'{TABLE}."{name}"' for name in COLUMNS)} FROM {TABLE} LIMIT 0
"""
INSERT = f"""
INSERT INTO {TABLE} ({", ".join(f'"{name}"' for name in COLUMNS)}) VALUES ({", ".join("?" for _ in COLUMNS)})
ON CONFLICT (root, run_id) DO UPDATE SET {", ".join(f'"{name}" = excluded."{name}"' for name in COLUMNS)}
"""
BATCH = 200  # runs that are stored at a time
WATCHED = (layout.CONFIG, layout.STATUS, layout.METRICS)
LARGEST = 2**31
LONGEST_SEARCH, MOST_WORDS = 1000, 20  # databases refuse what is much longer
Known = dict[str, tuple[str, str]]  # stamp and status by run id


class Changes(NamedTuple):
    """Run ids; a run that was written, or whose process died, has changed."""

    added: list[str]
    changed: list[str]
    removed: list[str]


class Index(AbstractContextManager["Index"]):
    """Any thread may use it; several processes may have the same one open."""

    def __init__(self, runs_dir: Path, store: Store, root: str) -> None:
        self.runs_dir, self.root = runs_dir, root
        self._store = store
        self._refreshing = threading.Lock()
        self._generation = store.generation
        self._seen: Known | None = None

    @classmethod
    def open(cls, runs_dir: str | Path | None = None, url: str | None = None, root: str | None = None) -> Index:
        """A file in the runs directory (in memory if none can be written there), or the PostgreSQL database at `url` or
        GSOLVE_INDEX_URL, where `root` or GSOLVE_INDEX_ROOT names this directory among others."""
        directory = default_runs_dir(Path(runs_dir) if runs_dir is not None else None)
        url = os.environ.get("GSOLVE_INDEX_URL") if url is None else url
        if not url:
            return cls(directory, SqliteStore(directory, SCHEMA), ".")  # moves with the directory
        root = root or os.environ.get("GSOLVE_INDEX_ROOT") or f"{socket.gethostname()}:{directory.resolve()}"
        return cls(directory, PostgresStore(url, SCHEMA, TABLE), _text(root))

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    def refresh(self) -> Changes:
        """Read what has changed in the directory, and say what has changed since this object last did so."""
        with self._refreshing:
            before = self._seen
            while True:
                self._store.check()
                self._generation = self._store.generation
                stored, self._seen = self._refresh()
                before = stored if before is None else before
                if self._generation == self._store.generation:  # else it was lost in the middle
                    return _changes(before, self._seen)

    def find(
        self,
        search: str = "",
        *,
        status: str | None = None,
        env: str | None = None,
        algo: str | None = None,
        group: str | None = None,
        solved: bool | None = None,
        sort: str = "-started_at",
        limit: int | None = None,
        offset: int = 0,
        everywhere: bool = False,
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many runs match, and their summaries from `offset` on, each with its `sparkline`.

        All words of `search` must occur in the id, environment, algorithm, status, group or error. A minus before
        `sort` means largest first; runs without the number come last. `everywhere`: all roots of a shared database.
        """
        exact = {"status": status, "env_id": env, "algo_id": algo, "group": group}
        conditions: list[tuple[str, Any]] = [] if everywhere else [("root = ?", self.root)]
        conditions += [(f'"{name}" = ?', _text(value)) for name, value in exact.items() if value is not None]
        words = search[:LONGEST_SEARCH].lower().split()[:MOST_WORDS]
        conditions += [("words LIKE ? ESCAPE '!'", f"%{_literal(word)}%") for word in words]
        if solved is not None:
            conditions.append(("solved = ?", float(solved)))
        where = " AND ".join(condition for condition, _ in conditions) or "1 = 1"
        parameters = [parameter for _, parameter in conditions]
        page = [LARGEST if limit is None else _bounded(limit), _bounded(offset)]
        count = f"SELECT count(*) FROM {TABLE} WHERE {where}"
        select = f"SELECT root, document FROM {TABLE} WHERE {where} ORDER BY {_order(sort)} LIMIT ? OFFSET ?"
        total = self._rows(count, parameters)[0][0]
        return total, [self._document(*row) for row in self._rows(select, [*parameters, *page])]

    def get(self, run_id: str) -> dict[str, Any] | None:
        """The run of this directory with exactly this id."""
        statement = f"SELECT root, document FROM {TABLE} WHERE root = ? AND run_id = ?"
        rows = self._rows(statement, [self.root, _text(run_id)])
        return self._document(*rows[0]) if rows else None

    def _rows(self, statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        rows = self._store.rows(statement, parameters)
        if self._store.generation != self._generation:  # a damaged file was given up while it was asked
            self.refresh()
            rows = self._store.rows(statement, parameters)
        return rows

    def _document(self, root: str, text: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(text)
        where = str(self.runs_dir / document["run_id"]) if root == self.root else f"{root}/{document['run_id']}"
        return {**document, "path": where, "root": root}

    def _refresh(self) -> tuple[Known, Known]:
        """What was stored, and what is stored now."""
        stored: Known = {
            run_id: (stamp, status)
            for run_id, stamp, status in self._store.rows(
                f"SELECT run_id, stamp, status FROM {TABLE} WHERE root = ?", [self.root]
            )
        }
        present = dict(_stamps(self.runs_dir))
        current = {run_id: stored[run_id] for run_id in present if run_id in stored}
        stale = [run_id for run_id in sorted(present) if self._is_stale(run_id, present[run_id], stored.get(run_id))]
        for begin in range(0, len(stale), BATCH):
            rows = []
            for run_id in stale[begin : begin + BATCH]:
                row = self._read(run_id, present[run_id], run_id in stored)
                if row is None:
                    current.pop(run_id, None)
                else:
                    rows.append(row)
                    current[run_id] = (present[run_id], row[COLUMNS.index("status")])
            self._store.write(INSERT, rows)
        gone = [(self.root, run_id) for run_id in sorted(stored) if run_id not in current]
        if gone:
            self._store.write(f"DELETE FROM {TABLE} WHERE root = ? AND run_id = ?", gone)
        return stored, current

    def _is_stale(self, run_id: str, stamp: str, stored: tuple[str, str] | None) -> bool:
        """A process that dies writes nothing: whether a run still runs is asked every time."""
        if stored is None or stored[0] != stamp:
            return True
        return stored[1] == "running" and Run(self.runs_dir / run_id).status["status"] != "running"

    def _read(self, run_id: str, stamp: str, is_known: bool) -> tuple[Any, ...] | None:
        """The row of a run, None if it has gone meanwhile. The stamp is older than what is read, never newer."""
        path = self.runs_dir / run_id
        before = None
        if is_known:
            statement = f"SELECT digest FROM {TABLE} WHERE root = ? AND run_id = ?"
            before = next((Digest.from_json(row[0]) for row in self._store.rows(statement, [self.root, run_id])), None)
        try:
            known = digest(path, before)
            summary = plain(DigestedRun(path, known).summary())
        except Exception as error:  # one damaged directory must not hide the others
            known = Digest()
            summary = _unreadable(run_id, path, error)
        if not (path / layout.CONFIG).is_file():
            return None
        texts = {name: _text(summary[name]) for name in TEXTS}
        texts["started_at"] = texts["started_at"] or _started(run_id)
        words = " ".join(_text(summary[name]) for name in ("run_id", "env_id", "algo_id", "status", "group", "error"))
        document = {**summary, "rows": known.rows, "sparkline": plain(known.sparkline())}
        return (
            *(self.root, stamp),
            *texts.values(),
            *(_sortable(summary[name]) for name in NUMBERS),
            *(words.lower(), json.dumps(document), known.to_json()),
        )


def _unreadable(run_id: str, path: Path, error: Exception) -> dict[str, Any]:
    """A row for a directory whose files say nothing that makes sense."""
    why = f"cannot be read: {type(error).__name__}: {error}"
    known = {"run_id": run_id, "status": "failed", "reason": why, "solved": False, "error": why, "path": str(path)}
    return {**dict.fromkeys((*TEXTS, *NUMBERS)), **known}


def _changes(before: Known, now: Known) -> Changes:
    return Changes(
        sorted(now.keys() - before.keys()),
        sorted(run_id for run_id in now.keys() & before.keys() if now[run_id] != before[run_id]),
        sorted(before.keys() - now.keys()),
    )


def _stamps(runs_dir: Path) -> Iterator[tuple[str, str]]:
    """Runs, each with what changes when one of its files does."""
    try:
        entries = os.scandir(runs_dir)
    except OSError:
        return
    with entries:
        for entry in entries:
            # A name that is no text cannot be stored, nor typed.
            is_named = entry.name == _text(entry.name)
            if is_named and entry.is_dir(follow_symlinks=False) and (stamp := _stamp(entry.path)):
                yield entry.name, stamp


def _stamp(path: str) -> str:
    """Empty for a directory that is no run. Strings, since thousands of `Path`s take longer than asking the disk."""
    parts = []
    for name in WATCHED:
        try:
            state = os.stat(f"{path}/{name}", follow_symlinks=False)  # noqa: PTH116
        except OSError:
            if name == layout.CONFIG:
                return ""
            parts.append("-")
        else:
            if stat.S_ISLNK(state.st_mode):  # it may lead to a file that is nobody's business
                return ""
            parts.append(f"{state.st_mtime_ns}.{state.st_size}.{state.st_ino}")
    return " ".join(parts)


def _started(run_id: str) -> str:
    """What an id says of a run without a status."""
    moment = re.match(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)", run_id)
    return "{}-{}-{}T{}:{}:{}".format(*moment.groups()) if moment else ""


def _order(sort: str) -> str:
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    if name not in SORTS:
        raise ConfigError(f"runs cannot be sorted by {name!r}; use one of {', '.join(SORTS)}, or -{SORTS[-1]}")
    direction = "DESC" if descending else "ASC"
    last = f'"{name}" IS NULL, ' if name in NUMBERS else ""
    return f'{last}"{name}" {direction}, run_id {direction}'


def _literal(word: str) -> str:
    return re.sub(r"([!%_])", r"!\1", _text(word))


def _text(value: Any) -> str:
    """As both databases can hold it: no NUL, no halves of surrogate pairs."""
    return "" if value is None else str(value).replace("\0", "").encode(errors="replace").decode()


def _sortable(value: Any) -> float | None:
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _bounded(value: int) -> int:
    return min(max(value, 0), LARGEST)
