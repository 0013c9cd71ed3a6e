"""Lines of metrics.csv as columns of float64, a block of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gymnasium_solver.limits import MOST_COLUMNS_OF_METRICS

NUMBER_BYTES = b"0123456789+-.eEnaifNIty, \r\n"
COMMA, NEWLINE, SPACE = b",\n "
FORMER_NAMES = {"train/cnt/gradient_steps": "train/cnt/updates"}  # in files written before they were renamed


def column_names(header: bytes) -> list[str]:
    """Of the file's first line, read no further than the longest there may be; none if it has not ended by then, or
    names more columns than are read."""
    text = header.decode(errors="replace").strip()
    names = text.split(",", MOST_COLUMNS_OF_METRICS) if text and header.endswith(b"\n") else []
    if len(names) > MOST_COLUMNS_OF_METRICS:
        return []
    there = set(names)
    return [name if (now := FORMER_NAMES.get(name, name)) in there else now for name in names]


def parse(
    blocks: Iterable[bytes], names: Sequence[str], wanted: Sequence[str], length: int
) -> tuple[np.ndarray, list[list[int]], int]:
    """Columns [wanted, row] of blocks of `length` bytes together, rows of measured NaN, lines left out.

    `names` are those of all columns; a block is whole lines.
    """
    positions = [names.index(name) for name in wanted]
    table = np.empty((len(wanted), 0))
    measured_nan: list[list[int]] = [[] for _ in wanted]
    filled = consumed = skipped_lines = 0
    for block in blocks:
        consumed += len(block)
        data, grid, skipped = _tokens(block, len(names))
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
        numbers[filled] = [number(cell) for cell in text.split(b",")]
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


def number(cell: bytes) -> float:
    """NaN for what is none."""
    try:
        return float(cell)
    except ValueError:
        return float("nan")
