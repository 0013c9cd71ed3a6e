"""metrics.csv as it is read: columns of float64, parsed when they are asked for, from files of any size and state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.runs.layout import ENV_STEPS

LARGE = 1 << 25  # bytes; all columns of more take over a second
STRETCH, STRETCHES = 1 << 16, 256
CHUNK = 1 << 18  # fits the cache: ten times the memory is three times as slow
# A caller who has come for this many columns one by one (pandas does) will come for all of them.
FEW_COLUMNS = 6
NUMBER_BYTES = b"0123456789+-.eEnaifNIty, \r\n"
COMMA, NEWLINE, SPACE = b",\n "


class Column(NamedTuple):
    steps: np.ndarray
    values: np.ndarray
    recorded: np.ndarray  # where there is a cell: a NaN there was measured


class Metrics(Mapping[str, np.ndarray], dict):  # type: ignore[misc,metaclass]  # pandas.DataFrame asks for a dict
    """Column name → values, NaN where a cell is empty.

    A half-written last line is not there; lines that are no rows of numbers are left out and counted in
    `skipped_lines`. A run that is being written is seen as it was when its first column was read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.names: list[str] = []
        self._columns: dict[str, np.ndarray] = {}
        self._measured_nan: dict[str, np.ndarray] = {}
        self._skipped: int | None = None
        self._version: Any = None
        self._end = 0
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

    def series(self, name: str, x: str = ENV_STEPS) -> tuple[np.ndarray, np.ndarray]:
        """(environment steps, values) without NaN; both empty if the column does not exist."""
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
        if file_version(self.path)[0] != self._version:  # the header was rewritten: columns read so far are of the past
            self._look()
        wanted = [name for name in dict.fromkeys(names) if name in self.names and name not in self._columns]
        if not wanted and self._skipped is not None:
            return
        table, measured_nan, self._skipped = self._parse(self._blocks(), wanted, self._end)
        for name, values, positions_of_nan in zip(wanted, table, measured_nan, strict=True):
            self._columns[name] = values
            self._measured_nan[name] = np.array(positions_of_nan, int)

    def _parse(
        self, blocks: Iterable[bytes], wanted: list[str], length: int
    ) -> tuple[np.ndarray, list[list[int]], int]:
        """Columns [wanted, row] of blocks of `length` bytes together, rows of measured NaN, lines left out."""
        positions = [self.names.index(name) for name in wanted]
        table = np.empty((len(wanted), 0))
        measured_nan: list[list[int]] = [[] for _ in wanted]
        filled = consumed = skipped_lines = 0
        for block in blocks:
            consumed += len(block)
            data, grid, skipped = _tokens(block, len(self.names))
            skipped_lines += skipped
            numbers = _numbers(data, grid, positions)
            end = filled + len(numbers)
            if end > table.shape[1]:  # generous: memory that is never touched costs nothing
                wider = np.empty((len(wanted), end + int(1.5 * end * max(0.0, length / consumed - 1))))
                wider[:, :filled] = table[:, :filled]
                table = wider
            table[:, filled:end] = numbers.T
            if b"n" in block:
                for row, column in np.argwhere(np.isnan(numbers) & (_lengths(grid, positions) > 0)):
                    measured_nan[column].append(filled + row)
            filled = end
        return table[:, :filled], measured_nan, skipped_lines

    def overview(self, whole: Iterable[str] = ()) -> dict[str, Column]:
        """Every column with its rows' env steps. Of a file too large to parse at once, columns are read in stretches
        spread evenly over it, those in `whole` (few, or seldom filled) entirely."""
        if not self.is_large:
            self.load(self.names)
            steps = self._columns.get(ENV_STEPS)
            return {name: Column(self._steps(steps, len(self[name])), self[name], self.recorded(name)) for name in self}
        exact = [name for name in whole if name in self.names]
        self.load([*exact, ENV_STEPS])
        table, measured_nan, _ = self._parse(self._stretches(), self.names, STRETCHES * STRETCH)
        at = self._steps(table[self.names.index(ENV_STEPS)] if ENV_STEPS in self.names else None, table.shape[1])
        found = {}
        for name, values, nan_rows in zip(self.names, table, measured_nan, strict=True):
            recorded = ~np.isnan(values)
            recorded[np.array(nan_rows, int)] = True
            found[name] = Column(at, values, recorded)
        for name in exact:
            steps = self._steps(self._columns.get(ENV_STEPS), len(self[name]))
            found[name] = Column(steps, self[name], self.recorded(name))
        return found

    @property
    def is_large(self) -> bool:
        return self._end > LARGE

    @staticmethod
    def _steps(steps: np.ndarray | None, rows: int) -> np.ndarray:
        """Rows are numbered where env steps were not logged."""
        return np.arange(rows, dtype=float) if steps is None else steps

    def _stretches(self) -> Iterator[bytes]:
        """Whole lines from places spread evenly over the file, the last line among them."""
        with self.path.open("rb") as file:
            first = len(file.readline())
            for start in np.linspace(first, max(first, self._end - STRETCH), STRETCHES).astype(int):
                file.seek(start)
                data = file.read(min(STRETCH, self._end - int(start)))
                begin = 0 if start == first else data.find(b"\n") + 1
                end = data.rfind(b"\n") + 1
                if begin < end:
                    yield data[begin:end]

    def _look(self) -> None:
        self._columns, self._measured_nan, self._skipped = {}, {}, None
        self._version, self._end = file_version(self.path)
        self.names = self._header()

    def _header(self) -> list[str]:
        if not self._end:
            return []
        try:
            with self.path.open("rb") as file:
                line = file.readline(self._end)
        except OSError:  # gone meanwhile, not to be read, or no file at all
            self._end = 0
            return []
        text = line.decode(errors="replace").strip()
        return text.split(",") if line.endswith(b"\n") and text else []

    def _blocks(self) -> Iterator[bytes]:
        """The rows in pieces that end with a line; a last line without its end is left out."""
        if not self.names:
            return
        with self.path.open("rb") as file:
            left = self._end - len(file.readline())
            rest = b""
            while left > 0 and (data := file.read(min(CHUNK, left))):
                left -= len(data)
                data = rest + data
                cut = data.rfind(b"\n") + 1
                rest = data[cut:]
                if cut:
                    yield data[:cut]


def file_version(path: Path) -> tuple[Any, int]:
    """What identifies the file (it is replaced as a whole when its header changes), and its length."""
    try:
        state = path.stat()
    except OSError:
        return None, 0
    return (state.st_dev, state.st_ino), state.st_size


def _tokens(block: bytes, columns: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Bytes of the rows, the position [row, column] of the delimiter behind each cell, and lines left out."""
    data = np.frombuffer(block, np.uint8)
    delimiters = np.flatnonzero(data <= COMMA)  # one comparison, since digits, minus and point come after the comma
    kinds = data[delimiters]
    known = (kinds == COMMA) | (kinds == NEWLINE)
    if not known.all():
        delimiters, kinds = delimiters[known], kinds[known]
    rows, uneven = divmod(delimiters.size, columns)
    if not uneven and not block.translate(None, NUMBER_BYTES):
        line_ends = (kinds == NEWLINE).reshape(rows, columns)
        if line_ends[:, -1].all() and np.count_nonzero(line_ends) == rows:
            return data, delimiters.reshape(rows, columns), 0
    lines = block.split(b"\n")[:-1]
    good = [line for line in lines if line.count(b",") == columns - 1 and not line.translate(None, NUMBER_BYTES)]
    data, grid, _ = _tokens(b"".join(line + b"\n" for line in good), columns)
    return data, grid, len(lines) - len(good)


def _lengths(grid: np.ndarray, positions: list[int]) -> np.ndarray:
    """Bytes of the cells [row, wanted column]."""
    ends = grid.ravel()
    cells = np.arange(len(grid))[:, None] * grid.shape[1] + np.array(positions, int)
    before = np.where(cells > 0, ends[cells - 1], -1)
    return ends[cells] - before - 1


def _numbers(data: np.ndarray, grid: np.ndarray, positions: list[int]) -> np.ndarray:
    """The wanted columns as [row, column], NaN for an empty cell.

    Cells become one JSON list, because that is parsed exactly and 4 times as fast as by float() or NumPy. Cutting
    cells out costs twice as much as parsing them, so for many columns all are parsed.
    """
    from pydantic_core import from_json

    few = 3 * len(positions) < grid.shape[1]
    if few:
        lengths = _lengths(grid, positions)
        filled = lengths > 0
        text = _cut(data, grid[:, positions][filled], lengths[filled])
    else:
        filled = np.diff(grid.ravel(), prepend=-1).reshape(grid.shape) > 1
        text = _joined(data, grid, filled)
    if b"n" in text:
        text = text.replace(b"nan", b"NaN").replace(b"inf", b"Infinity")
    numbers = np.full(filled.shape, np.nan)
    try:
        numbers[filled] = from_json(b"[" + text + b"]")
    except ValueError:  # a cell that JSON would write otherwise, or that is no number at all
        numbers[filled] = [_number(cell) for cell in text.split(b",")]
    return numbers if few else numbers[:, positions]


def _cut(data: np.ndarray, ends: np.ndarray, lengths: np.ndarray) -> bytes:
    """These cells, padded to the same width and joined by commas."""
    width = int(lengths.max(initial=0))
    if not width:
        return b""
    padded = np.concatenate([data, np.full(width, SPACE, np.uint8)])
    cells = np.lib.stride_tricks.sliding_window_view(padded, width + 1)[ends - lengths]
    cells[np.arange(width + 1) >= lengths[:, None]] = SPACE
    cells[:, width] = COMMA
    return cells.tobytes()[:-1]


def _joined(data: np.ndarray, grid: np.ndarray, filled: np.ndarray) -> bytes:
    """All cells that are not empty, joined by commas."""
    joined = data.copy()
    joined[grid[:, -1]] = COMMA
    joined[grid[~filled]] = SPACE
    return joined.tobytes().rstrip(b", ")


def _number(cell: bytes) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
