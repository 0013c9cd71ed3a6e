"""metrics.csv as it is written: one row, one write; a row is there whole or it is not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from gymnasium_solver.runs.layout import EPOCHS, replace_file
from gymnasium_solver.runs.metrics_cells import column_names


class MetricsFile:
    """Appends rows. All rows have as many cells as the header, an empty cell being a value that was not measured."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._columns: dict[str, None] = {}
        self._open()

    def append(self, row: Mapping[str, Any]) -> None:
        new = [name for name in row if name not in self._columns]
        if new:
            self._add_columns(new)
        line = ",".join([cell(row.get(name)) for name in self._columns]) + "\n"
        before = os.fstat(self._descriptor).st_size
        try:
            _write_all(self._descriptor, line.encode())
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        with self.path.open("rb") as file:
            self._columns = dict.fromkeys(column_names(file.readline()))

    def _add_columns(self, new: list[str]) -> None:
        for name in new:
            if not name or set(name) & set(',"\r\n'):
                raise ValueError(f"{name!r} cannot be the name of a column")
        header = ",".join([*self._columns, *new]).encode() + b"\n"
        padding = b"," * len(new) + b"\n" if self._columns else b"\n"
        with self.path.open("rb") as file:
            file.readline()
            replace_file(self.path, chain([header], (line.rstrip(b"\r\n") + padding for line in file)))
        self.close()
        self._open()


def cell(value: Any) -> str:
    """Shortest text that reads back as the same number; NaN and infinity survive, since they are evidence."""
    if value is None:
        return ""
    if isinstance(value, int):
        return str(int(value))
    return repr(float(value)).removesuffix(".0")


def trim(path: Path, epoch: int) -> int:
    """Drop rows after `epoch` and damaged ones; the others stay byte for byte. Returns how many went."""
    dropped = 0

    def kept(lines: Iterator[bytes], columns: list[bytes]) -> Iterator[bytes]:
        nonlocal dropped
        at = columns.index(EPOCHS.encode()) if EPOCHS.encode() in columns else None
        beyond = False
        for line in lines:
            cells = line.split(b",")
            whole = line.endswith(b"\n") and len(cells) == len(columns) and b"\0" not in line
            if whole and at is not None:
                with contextlib.suppress(ValueError):
                    beyond = float(cells[at]) > epoch
            if whole and not beyond:
                yield line
            else:
                dropped += 1

    try:
        file = path.open("rb")
    except FileNotFoundError:
        return 0
    with file:
        header = file.readline()
        if not header.endswith(b"\n"):  # nothing, or less than a header: start over
            replace_file(path, [])
            return int(bool(header))
        replace_file(path, chain([header], kept(file, header.strip().split(b","))))
    return dropped


def _write_all(descriptor: int, data: bytes) -> None:
    """One write, unless the disk takes only part of it: then the next one says why."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])
