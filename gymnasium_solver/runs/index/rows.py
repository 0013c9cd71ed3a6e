"""Rows of metrics.csv that were not there when it was last read: a file that only grew is read from where it ended."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gymnasium_solver.limits import LONGEST_LINE
from gymnasium_solver.runs.metrics_cells import NUMBER_BYTES, column_names, number

ANCHOR = 4096  # bytes before the place that tell whether it is still the same file


class Mark(NamedTuple):
    """How far a file was read. Checksums, since a replaced file may get the number of the one before."""

    end: int
    header: int
    anchor: int


class NewRows(AbstractContextManager["NewRows"]):
    """The rows after `since`, or all of them if the file has been replaced: then `continues` is false.

    Everything is taken from one open file, up to the last whole line at this moment, which `mark` remembers. Iterating
    gives the measured cells of each row; lines that are no rows of numbers are left out.
    """

    def __init__(self, path: Path, wanted: Sequence[str], since: Mark | None = None) -> None:
        self.names: list[str] = []
        self.mark: Mark | None = None
        self.continues = False
        self._wanted = wanted
        self._file: BinaryIO | None = None
        with contextlib.suppress(OSError):  # no row yet, or the run is gone
            self._file = path.open("rb") if path.is_file() else None
        if self._file is None:
            return
        header = self._file.readline(LONGEST_LINE)
        self.names = column_names(header)
        if not self.names:
            return
        end = _end_of_last_line(self._file, len(header))
        self.mark = Mark(end, zlib.crc32(header), _anchor(self._file, end))
        self.continues = (
            since is not None
            and since.header == self.mark.header
            and since.end <= end
            and since.anchor == _anchor(self._file, since.end)
        )
        self._begin = since.end if since is not None and self.continues else len(header)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __iter__(self) -> Iterator[dict[str, float]]:
        if self._file is None or self.mark is None:
            return
        places = [(name, self.names.index(name)) for name in self._wanted if name in self.names]
        columns, left = len(self.names), self.mark.end - self._begin
        self._file.seek(self._begin)
        for line in iter(partial(self._file.readline, LONGEST_LINE), b""):  # a longer one comes in pieces
            left -= len(line)
            if left < 0:  # written since
                return
            cells = line.rstrip(b"\r\n").split(b",")
            if len(cells) == columns and not line.translate(None, NUMBER_BYTES):
                measured = [(name, cells[place]) for name, place in places if cells[place]]
                try:
                    yield {name: float(cell) for name, cell in measured}
                except ValueError:  # a cell of the right characters that is no number all the same
                    yield {name: number(cell) for name, cell in measured}


def _end_of_last_line(file: BinaryIO, first: int) -> int:
    end = os.fstat(file.fileno()).st_size
    while end > first:
        begin = max(first, end - ANCHOR)
        file.seek(begin)
        cut = file.read(end - begin).rfind(b"\n") + 1
        if cut:
            return begin + cut
        end = begin
    return first


def _anchor(file: BinaryIO, end: int) -> int:
    file.seek(max(0, end - ANCHOR))
    return zlib.crc32(file.read(min(ANCHOR, end)))
