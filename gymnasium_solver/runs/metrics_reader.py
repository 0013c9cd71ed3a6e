"""metrics.csv as it is read: columns of float64, parsed when they are asked for, from files of any size and state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.limits import LONGEST_LINE
from gymnasium_solver.metrics.clocks import ENV_STEPS, Clock
from gymnasium_solver.runs.metrics_cells import column_names, parse

LARGE = 1 << 25  # bytes; all columns of more take over a second
STRETCH, STRETCHES = 1 << 16, 256
CHUNK = 1 << 18  # fits the cache: ten times the memory is three times as slow
# A caller who has come for this many columns one by one (pandas does) will come for all of them.
FEW_COLUMNS = 6


class Column(NamedTuple):
    steps: np.ndarray
    values: np.ndarray
    recorded: np.ndarray  # where there is a cell: a NaN there was measured


class Metrics(Mapping[str, np.ndarray], dict):  # type: ignore[misc,metaclass]  # pandas.DataFrame asks for a dict
    """Column name → values, NaN where a cell is empty.

    A half-written last line is not there; lines that are no rows of numbers are left out and counted in
    `skipped_lines`. A run that is being written is seen as it was when its first column was read.
    """

    def __init__(self, path: Path, clock: Clock = ENV_STEPS) -> None:
        super().__init__()
        self.path, self.clock = path, clock
        self.names: list[str] = []
        self._columns: dict[str, np.ndarray] = {}
        self._measured_nan: dict[str, np.ndarray] = {}
        self._skipped: int | None = None
        self.identity: Any = None  # of the file, which is replaced as a whole when its header changes
        self.size = 0  # bytes of it that are looked at
        self._look()

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            if name not in self.names:
                raise KeyError(name)
            self.load([name] if len(self._columns) < FEW_COLUMNS else self.names)
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Metrics({str(self.path)!r}, {len(self.names)} columns)"

    @property
    def skipped_lines(self) -> int:
        if self._skipped is None:
            self.load(self.names[:1])
        return self._skipped or 0

    def recorded(self, name: str) -> np.ndarray:
        """True where the column has a cell: tells a NaN that was measured from a value that was not."""
        recorded = ~np.isnan(self[name])
        recorded[self._measured_nan[name]] = True
        return recorded

    def last(self, name: str) -> float:
        """The newest measured value (it may be NaN); NaN if there is none or no such column."""
        if name not in self.names:
            return float("nan")
        measured = self[name][self.recorded(name)]
        return float(measured[-1]) if measured.size else float("nan")

    def series(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(counts of the clock, values) without NaN; both empty if the column does not exist."""
        x = self.clock.column
        if name not in self.names or x not in self.names:
            return np.empty(0), np.empty(0)
        self.load([x, name])
        steps, values = self._columns[x], self._columns[name]
        known = ~(np.isnan(steps) | np.isnan(values))
        return steps[known], values[known]

    def to_dict(self) -> dict[str, np.ndarray]:
        self.load(self.names)
        return {name: self._columns[name] for name in self.names}

    def load(self, names: Iterable[str]) -> None:
        """Parse these columns in one pass over the file; those that do not exist are passed over."""
        if file_version(self.path)[0] != self.identity:  # the header was rewritten: columns read so far are of the past
            self._look()
        wanted = [name for name in dict.fromkeys(names) if name in self.names and name not in self._columns]
        if not wanted and self._skipped is not None:
            return
        table, measured_nan, self._skipped = parse(self._blocks(), self.names, wanted, self.size)
        for name, values, positions_of_nan in zip(wanted, table, measured_nan, strict=True):
            self._columns[name] = values
            self._measured_nan[name] = np.array(positions_of_nan, int)

    def overview(self, whole: Iterable[str] = ()) -> dict[str, Column]:
        """Every column with its rows' counts of the clock. Of a file too large to parse at once, columns are read in
        stretches spread evenly over it, those in `whole` (few, or seldom filled) entirely."""
        x = self.clock.column
        if not self.is_large:
            self.load(self.names)
            steps = self._columns.get(x)
            return {name: Column(self._steps(steps, len(self[name])), self[name], self.recorded(name)) for name in self}
        exact = [name for name in whole if name in self.names]
        self.load([*exact, x])
        table, measured_nan, _ = parse(self._stretches(self.size), self.names, self.names, STRETCHES * STRETCH)
        at = self._steps(table[self.names.index(x)] if x in self.names else None, table.shape[1])
        found = {}
        for name, values, nan_rows in zip(self.names, table, measured_nan, strict=True):
            recorded = ~np.isnan(values)
            recorded[np.array(nan_rows, int)] = True
            found[name] = Column(at, values, recorded)
        for name in exact:
            steps = self._steps(self._columns.get(x), len(self[name]))
            found[name] = Column(steps, self[name], self.recorded(name))
        return found

    @property
    def is_large(self) -> bool:
        return self.size > LARGE

    @property
    def loaded(self) -> list[str]:
        """Columns that are parsed, and so at hand."""
        return list(self._columns)

    @property
    def nbytes(self) -> int:
        """Memory that they take."""
        return sum(column.nbytes for column in self._columns.values())

    def sampled(self, names: Iterable[str], size: int) -> dict[str, np.ndarray]:
        """These columns in stretches spread evenly over the first `size` bytes of the file."""
        wanted = [name for name in dict.fromkeys(names) if name in self.names]
        table, _, _ = parse(self._stretches(size), self.names, wanted, STRETCHES * STRETCH)
        return dict(zip(wanted, table, strict=True))

    def grown(self) -> Metrics:
        """The same file as it is now, with the columns that are parsed here; of those, only rows that were appended
        since are parsed. This one stays as it is, for whoever reads it."""
        if file_version(self.path) == (self.identity, self.size):
            return self
        now = Metrics(self.path, self.clock)
        if now.identity != self.identity or now.size < self.size or now.names != self.names:
            return now
        names = self.loaded
        tail = _whole_lines(self.path, self.size, now.size)
        if not names or tail is None:
            return now
        table, nan_rows, skipped = parse([tail] if tail else [], names=now.names, wanted=names, length=len(tail))
        for name, values, rows in zip(names, table, nan_rows, strict=True):
            before = self._columns[name]
            now._columns[name] = np.concatenate([before, values])
            now._measured_nan[name] = np.concatenate([self._measured_nan[name], np.array(rows, int) + len(before)])
        now._skipped = (self._skipped or 0) + skipped
        return now

    @staticmethod
    def _steps(steps: np.ndarray | None, rows: int) -> np.ndarray:
        """Rows are numbered where the clock was not logged."""
        return np.arange(rows, dtype=float) if steps is None else steps

    def _stretches(self, size: int) -> Iterator[bytes]:
        """Whole lines from places spread evenly over so many bytes of the file, their last line among them."""
        with self.path.open("rb") as file:
            first = len(file.readline())
            for start in np.linspace(first, max(first, size - STRETCH), STRETCHES).astype(int):
                file.seek(start)
                data = file.read(min(STRETCH, size - int(start)))
                begin = 0 if start == first else data.find(b"\n") + 1
                end = data.rfind(b"\n") + 1
                if begin < end:
                    yield data[begin:end]

    def _look(self) -> None:
        self._columns, self._measured_nan, self._skipped = {}, {}, None
        self.identity, self.size = file_version(self.path)
        self.names = self._header()

    def _header(self) -> list[str]:
        if not self.size:
            return []
        try:
            with self.path.open("rb") as file:
                return column_names(file.readline(min(self.size, LONGEST_LINE)))
        except OSError:  # gone meanwhile, not to be read, or no file at all
            self.size = 0
            return []

    def _blocks(self) -> Iterator[bytes]:
        """The rows in pieces that end with a line; a last line without its end is left out."""
        if not self.names:
            return
        with self.path.open("rb") as file:
            left = self.size - len(file.readline())
            rest = b""
            while left > 0 and (data := file.read(min(CHUNK, left))):
                left -= len(data)
                data = rest + data
                cut = data.rfind(b"\n") + 1
                rest = data[cut:][
                    :LONGEST_LINE
                ]  # of a line that is too long to be a row, enough to tell that it is none
                if cut:
                    yield data[:cut]


def file_version(path: Path) -> tuple[Any, int]:
    """What identifies the file (it is replaced as a whole when its header changes), and its length."""
    try:
        state = path.stat()
    except OSError:
        return None, 0
    return (state.st_dev, state.st_ino), state.st_size


def _whole_lines(path: Path, start: int, end: int) -> bytes | None:
    """Lines that ended between these places in the file; one that had begun before `start` is among them."""
    longest = 1 << 16
    with path.open("rb") as file:
        file.seek(max(0, start - longest))
        before = file.read(start - max(0, start - longest))
        begun = before[before.rfind(b"\n") + 1 :]
        if len(begun) == len(before):  # no line ends there: not a file as ours are
            return None
        data = begun + file.read(end - start)
    return data[: data.rfind(b"\n") + 1]
