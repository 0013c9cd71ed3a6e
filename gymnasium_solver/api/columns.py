"""Columns of metrics.csv kept in memory: parsed once, extended by the rows that were appended since.

A file too large to parse while a reader waits is answered from stretches spread evenly over it, until a thread in the
background has read it whole.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.api.curves import in_order
from gymnasium_solver.runs.metrics_reader import STRETCH, STRETCHES, Metrics
from gymnasium_solver.runs.reader import Run

KEPT_BYTES = 384 << 20
KEPT_FILES = 500

Curves = dict[str, tuple[np.ndarray, np.ndarray]]


class Table:
    """One file. `metrics` is a snapshot: readers may go on with it while the file grows."""

    def __init__(self, path: Path) -> None:
        self.metrics = Metrics(path, Run(path.parent).clock)
        self.x = self.metrics.clock.column
        self.lock = threading.Lock()
        self.being_read = False
        self._curves: Curves = {}
        self._curves_of: Metrics | None = None
        self._stretches: dict[str, np.ndarray] = {}
        self._stretches_of: tuple[Any, int] = (None, -1)  # the file's identity and size then

    @property
    def bytes(self) -> int:
        curves = (array for curve in self._curves.values() for array in curve if array.base is None)  # no views
        return self.metrics.nbytes + sum(array.nbytes for array in (*self._stretches.values(), *curves))

    def exact(self, names: Sequence[str]) -> Curves:
        metrics = self.metrics
        metrics.load([self.x, *names])
        if self._curves_of is not metrics:
            self._curves, self._curves_of = {}, metrics
        steps = metrics[self.x] if self.x in metrics.names else None
        self._curves |= {name: in_order(steps, metrics[name]) for name in names if name not in self._curves}
        return {name: self._curves[name] for name in names}

    @property
    def rows(self) -> int:
        """About how many, by those in the stretches."""
        sampled = max((len(column) for column in self._stretches.values()), default=0)
        return int(sampled * self.metrics.size / (STRETCHES * STRETCH))

    def sampled(self, names: Sequence[str]) -> Curves:
        """From stretches, those already read not again until the file is a tenth longer."""
        metrics = self.metrics
        identity, size = self._stretches_of
        if metrics.identity != identity or metrics.size > 1.1 * size:
            size, self._stretches = metrics.size, {}
            self._stretches_of = (metrics.identity, size)
        if wanted := [name for name in (self.x, *names) if name not in self._stretches]:
            self._stretches |= metrics.sampled(wanted, size)  # all columns from the same places
        return {name: in_order(self._stretches.get(self.x), self._stretches[name]) for name in names}


class Columns:
    """Of many files; those not asked for the longest go first when memory runs out."""

    def __init__(self, when_read: Callable[[Path], None] = lambda _: None) -> None:
        self._tables: OrderedDict[Path, Table] = OrderedDict()
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, "read-metrics")
        self._when_read = when_read

    def close(self) -> None:
        self._reader.shutdown(wait=False, cancel_futures=True)

    def metrics(self, path: Path) -> Metrics:
        """The file as it is now."""
        table = self._table(path)
        with table.lock:
            table.metrics = table.metrics.grown()
            return table.metrics

    def curves(self, path: Path, names: Sequence[str]) -> tuple[Curves, bool]:
        """Finite values of these columns over the run's clock (over rows where that was not logged), and whether they
        are all there are."""
        table = self._table(path)
        with table.lock:
            metrics = table.metrics = table.metrics.grown()
            names = [name for name in names if name in metrics.names]
            missing = {table.x, *names} & set(metrics.names) - set(metrics.loaded)
            if missing and metrics.is_large:
                sampled = table.sampled(names)
                self._read_later(table, names)
                return sampled, False
            found = table.exact(names)
        self._make_room(path)
        return found, True

    def _table(self, path: Path) -> Table:
        with self._lock:
            table = self._tables.get(path)
            if table is None:
                table = self._tables[path] = Table(path)
            self._tables.move_to_end(path)
            if len(self._tables) > KEPT_FILES:
                self._tables.popitem(last=False)
            return table

    def _read_later(self, table: Table, names: Sequence[str]) -> None:
        """With those that are there already, if there is room for both; not at all if it is too much anyway."""
        room = KEPT_BYTES // (8 * max(table.rows, 1))
        asked = {table.x, *names}
        wanted = asked | set(table.metrics.loaded)
        wanted = wanted if len(wanted) <= room else asked
        if not table.being_read and len(wanted) <= room:
            table.being_read = True
            self._reader.submit(self._read, table, wanted)

    def _read(self, table: Table, names: set[str]) -> None:
        path = table.metrics.path
        try:
            whole = Metrics(path, table.metrics.clock)
            whole.load(names)
            with table.lock:
                table.metrics = whole
            self._make_room(path)
        finally:
            table.being_read = False
        self._when_read(path)

    def _make_room(self, newest: Path) -> None:
        with self._lock:
            held = sum(table.bytes for table in self._tables.values())
            for path in list(self._tables):
                if held <= KEPT_BYTES or path == newest:
                    break
                held -= self._tables.pop(path).bytes
            if held > KEPT_BYTES and newest in self._tables:
                self._tables[newest] = Table(newest)
