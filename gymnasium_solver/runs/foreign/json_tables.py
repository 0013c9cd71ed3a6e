"""JSON and JSON-lines files of other programs as columns of numbers: cut off, nested, or with text among them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver import limits
from gymnasium_solver.limits import LARGEST_JSON, MOST_CELLS, MOST_COLUMNS
from gymnasium_solver.runs.foreign.tables import WANDB_COLUMNS, Table, as_number, flat, only_the_first

LINES_AT_A_TIME, BYTES_AT_A_TIME = 5_000, 1 << 22


def read_json(path: Path, *, nan_is_absent: bool = False) -> Table:
    """Rows as JSON lines, as a list of objects, or as an object of columns. W&B has NaN where it has nothing."""
    table = Table()
    parts: dict[str, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    count = 0
    for block in _blocks(path, table):
        nan_is_absent = nan_is_absent or any(name in block[0] for name in WANDB_COLUMNS)
        block, names = _flat_block(block, table.settings)
        names = [name for name in names if name in parts] + [x for x in names if x not in parts]
        names = names[:MOST_COLUMNS]
        if (count + len(block)) * max(len(parts), len(names)) > MOST_CELLS:
            table.notes.append(only_the_first(count, "rows", path))
            break
        for name in names:
            values, there = _column([row.get(name) for row in block], nan_is_absent)
            if there.any() and (name in parts or len(parts) < MOST_COLUMNS):
                parts.setdefault(name, []).append((count, values, there))
        count += len(block)
    for name, pieces in parts.items():
        table.columns[name], table.there[name] = np.full(count, np.nan), np.zeros(count, bool)
        for begin, values, there in pieces:
            table.columns[name][begin : begin + len(values)] = values
            table.there[name][begin : begin + len(values)] = there
    if len(parts) == MOST_COLUMNS:
        table.notes.append(only_the_first(MOST_COLUMNS, "columns", path))
    if not count and not table.notes:
        table.notes.append(f"{path.name} holds no rows")
    return table


def _blocks(path: Path, table: Table) -> Iterator[list[dict[str, Any]]]:
    rows = _rows(path, table)
    while block := list(islice(rows, LINES_AT_A_TIME)):
        yield block


def _flat_block(block: list[dict[str, Any]], settings: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows without nesting, and the names of their columns; settings that are repeated in every row are put aside."""
    if any(dict in set(map(type, row.values())) for row in block):
        block = [dict(flat(row)) for row in block]
        for name in [name for name in block[-1] if name.startswith("config/")]:
            settings[name.removeprefix("config/")] = block[-1][name]
    columns = dict.fromkeys(block[0])
    for row in block:
        if not row.keys() <= columns.keys():
            columns |= dict.fromkeys(row)
    return block, [name for name in columns if not name.startswith("config/")]


def _column(cells: list[Any], nan_is_absent: bool) -> tuple[np.ndarray, np.ndarray]:
    kinds = set(map(type, cells))
    if kinds <= {int, float, type(None)}:
        try:
            values = np.array(cells, float)  # None becomes NaN
        except OverflowError:
            kinds.add(str)
        else:
            there = ~np.isnan(values) if nan_is_absent else np.array([cell is not None for cell in cells])
            return values, there
    values = np.full(len(cells), np.nan)
    there = np.zeros(len(cells), bool)
    for index, cell in enumerate(cells):
        number = as_number(cell)
        if number is not None and not (nan_is_absent and number != number and not isinstance(cell, str)):
            values[index], there[index] = number, True
    return values, there


def _rows(path: Path, table: Table) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        first = file.readline(LARGEST_JSON)
        if not first.strip():
            table.notes.append(f"{path.name} is empty")
            return
        value = parse_json(first)
        file.seek(0)
        if isinstance(value, dict):
            yield from _line_rows(file, path.name, table)
            return
        text = file.read(LARGEST_JSON + 1)
    if len(text) > LARGEST_JSON:
        table.notes.append(
            f"{path.name} is larger than {limits.size(LARGEST_JSON)}, which is read of a single JSON document; write "
            "it as JSON lines or CSV"
        )
        return
    document = parse_json(text)
    if document is None:
        table.notes.append(f"{path.name} is cut off, damaged, or no JSON")
        return
    yield from _document_rows(document, table)


def _line_rows(file: Any, name: str, table: Table) -> Iterator[dict[str, Any]]:
    only: Any = None
    count = damaged = 0
    for lines in _lines_at_a_time(file):
        block = parse_json(b"[" + b",".join(lines) + b"]")
        for row in block if isinstance(block, list) else map(parse_json, lines):
            if isinstance(row, dict):
                if count:
                    if only is not None:
                        yield only
                        only = None
                    yield row
                else:
                    only = row
                count += 1
            else:
                damaged += 1
    if only is not None:  # one line: a row, or the whole document
        yield from _document_rows(only, table)
    if damaged:
        table.notes.append(f"{name}: {damaged} lines that are cut off or damaged were left out")


def _lines_at_a_time(file: Any) -> Iterator[list[bytes]]:
    """A line that is longer than a document may be comes in pieces, which are no rows."""
    lines, size = [], 0
    while line := file.readline(LARGEST_JSON):
        lines.append(line)
        size += len(line)
        if size > BYTES_AT_A_TIME or len(lines) == LINES_AT_A_TIME:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _document_rows(document: Any, table: Table) -> Iterator[dict[str, Any]]:
    """A list of rows; {"history": rows, "config": …}; columns as lists, or as pandas writes them."""
    if isinstance(document, dict):
        table.settings |= dict(flat(document.get("config", {})))
        for key in ("history", "rows", "metrics", "data", "logs"):
            if isinstance(document.get(key), list | dict):
                yield from _document_rows(document[key], table)
                return
        columns = {name: value for name, value in document.items() if isinstance(value, list)}
        if columns and all(len(value) > 1 or len(document) == len(columns) for value in columns.values()):
            longest_first = sorted(islice(columns.items(), MOST_COLUMNS), key=lambda column: -len(column[1]))
            yield from _rows_of_columns(longest_first)
            return
        tall = [value for value in document.values() if isinstance(value, dict)]
        if tall and len(tall) == len(document) and all(_is_row_number(key) for value in tall for key in value):
            having: dict[str, list[str]] = {}  # by the number of the row
            for name, value in islice(document.items(), MOST_COLUMNS):
                for row in value:
                    having.setdefault(row, []).append(name)
            for row in sorted(having, key=int):
                yield {name: document[name][row] for name in having[row]}
            return
        yield document
    elif isinstance(document, list):
        yield from (row for row in document if isinstance(row, dict))


def _rows_of_columns(longest_first: list[tuple[str, list[Any]]]) -> Iterator[dict[str, Any]]:
    for index in range(len(longest_first[0][1])):
        while index >= len(longest_first[-1][1]):
            longest_first.pop()
        yield {name: value[index] for name, value in longest_first}


def _is_row_number(key: str) -> bool:
    return key.isdecimal() and len(key) < 20


def parse_json(text: bytes) -> Any:
    """None if it is none."""
    try:
        return limits.parse_json(text)
    except ValueError:
        return None
