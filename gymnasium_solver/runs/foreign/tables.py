"""CSV, JSON and JSON-lines files of other programs as columns of numbers: quoted, cut off, or with text among them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.runs.metrics_cells import NUMBER_BYTES
from gymnasium_solver.runs.metrics_reader import Metrics

LINES_AT_A_TIME = 20_000
MAX_COLUMNS = 2_000
MAX_DEPTH = 12
MAX_NAME = 200
WANDB_COLUMNS = ("_step", "_runtime", "_timestamp")
TELLING = 50  # cells that show whether a column is text


@dataclass
class Table:
    """Columns of equal length; `there` is False where a column has no cell. `settings` is what was no number a row."""

    columns: dict[str, np.ndarray] = field(default_factory=dict)
    there: dict[str, np.ndarray] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


def read_csv(path: Path) -> Table:
    """With a header; a first line that starts with # is a comment."""
    with path.open("rb") as file:
        first, second = file.readline(1 << 20), file.readline(1 << 20)
    if not first.strip():
        return Table(notes=[f"{path.name} is empty"])
    if b"\0" in first:
        return Table(notes=[f"{path.name} is no text"])
    if not first.startswith(b"#") and b'"' not in first and b"," in first and not second.translate(None, NUMBER_BYTES):
        numbers = Metrics(path)
        if numbers.names and not numbers.skipped_lines:
            columns = numbers.to_dict()
            return Table(columns, {name: numbers.recorded(name) for name in columns})
    return _read_any_csv(path)


def _read_any_csv(path: Path) -> Table:
    table = Table()
    cells: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        header = file.readline()
        if header.startswith("#"):
            table.comment, header = header[1:], file.readline()
        delimiter = max(",;\t", key=header.count)
        names = next(csv.reader([header], delimiter=delimiter), [])
        rows = csv.reader(file, delimiter=delimiter)
        damaged = 0
        while True:
            try:
                block = list(islice(rows, LINES_AT_A_TIME))
            except csv.Error:
                table.notes.append(f"{path.name} is damaged from line {rows.line_num} on")
                break
            if not block:
                break
            whole = [row for row in block if len(row) == len(names)]
            damaged += sum(1 for row in block if row and len(row) != len(names))
            for index, name in enumerate(names):
                if whole and name and names.index(name) == index:  # of columns of one name the first
                    cells.setdefault(name, []).append(_numbers([row[index] for row in whole]))
    if damaged:
        table.notes.append(f"{path.name}: {damaged} lines that are cut off or damaged were left out")
    for name, blocks in cells.items():
        values, there = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        if there.any():
            table.columns[name], table.there[name] = values, there
    return table


def _numbers(cells: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and where there is one; text is none."""
    there = np.array([cell != "" for cell in cells], bool)
    values = np.full(len(cells), np.nan)
    try:
        values[there] = [float(cell) for cell in cells if cell != ""]
    except ValueError:
        samples = list(islice((x for x in cells if x), TELLING))
        if all(as_number(cell) is None for cell in samples):  # names, dates: no cell of them is a number
            return values, np.zeros(len(cells), bool)
        for index, cell in enumerate(cells):
            number = as_number(cell)
            there[index] = number is not None
            values[index] = np.nan if number is None else number
    return values, there


def as_number(value: Any) -> float | None:
    """Numbers, and text that is one; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def read_json(path: Path, *, nan_is_absent: bool = False) -> Table:
    """Rows as JSON lines, as a list of objects, or as an object of columns. W&B has NaN where it has nothing."""
    table = Table()
    parts: dict[str, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    count = 0
    for block in _blocks(path, table):
        nan_is_absent = nan_is_absent or any(name in block[0] for name in WANDB_COLUMNS)
        columns = _block_columns(block, table.settings)
        for name in list(columns)[: MAX_COLUMNS if not parts else None]:
            values, there = _column(columns[name], nan_is_absent)
            if there.any() and (name in parts or len(parts) < MAX_COLUMNS):
                parts.setdefault(name, []).append((count, values, there))
        count += len(block)
    for name, pieces in parts.items():
        table.columns[name], table.there[name] = np.full(count, np.nan), np.zeros(count, bool)
        for begin, values, there in pieces:
            table.columns[name][begin : begin + len(values)] = values
            table.there[name][begin : begin + len(values)] = there
    if len(parts) == MAX_COLUMNS:
        table.notes.append(f"{path.name}: only its first {MAX_COLUMNS} columns were read")
    if not count and not table.notes:
        table.notes.append(f"{path.name} holds no rows")
    return table


def _blocks(path: Path, table: Table) -> Iterator[list[dict[str, Any]]]:
    rows = _rows(path, table)
    while block := list(islice(rows, LINES_AT_A_TIME)):
        yield block


def _block_columns(block: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, list[Any]]:
    """Cells by column, None where a row has none; settings that are repeated in every row are put aside."""
    if any(dict in set(map(type, row.values())) for row in block):
        block = [dict(flat(row)) for row in block]
        for name in [name for name in block[-1] if name.startswith("config/")]:
            settings[name.removeprefix("config/")] = block[-1][name]
    columns = dict.fromkeys(block[0])
    for row in block:
        if not row.keys() <= columns.keys():
            columns |= dict.fromkeys(row)
    return {name: [row.get(name) for row in block] for name in columns if not name.startswith("config/")}


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
        first = file.readline(1 << 26)
        if not first.strip():
            table.notes.append(f"{path.name} is empty")
            return
        value = parse_json(first)
        file.seek(0)
        if isinstance(value, dict):
            yield from _line_rows(file, path.name, table)
            return
        document = parse_json(file.read())
    if document is None:
        table.notes.append(f"{path.name} is cut off, damaged, or no JSON")
        return
    yield from _document_rows(document, table)


def _line_rows(file: Any, name: str, table: Table) -> Iterator[dict[str, Any]]:
    only: Any = None
    count = damaged = 0
    while lines := list(islice(file, LINES_AT_A_TIME)):
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
            for index in range(max(map(len, columns.values()))):
                yield {name: value[index] for name, value in columns.items() if index < len(value)}
            return
        tall = [value for value in document.values() if isinstance(value, dict)]
        if tall and len(tall) == len(document) and all(key.isdigit() for value in tall for key in value):
            for index in sorted({key for value in tall for key in value}, key=int):
                yield {name: value.get(index) for name, value in document.items()}
            return
        yield document
    elif isinstance(document, list):
        yield from (row for row in document if isinstance(row, dict))


def parse_json(text: bytes) -> Any:
    """None if it is none; nesting of any depth and NaN are no trouble."""
    from pydantic_core import from_json

    try:
        return from_json(text)
    except ValueError:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def flat(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Leaves of nested objects, their names joined by slashes."""
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for key, item in value.items():
            name = f"{prefix}/{key}" if prefix else str(key)
            if isinstance(item, dict):
                yield from flat(item, name, depth + 1)
            else:
                yield name[:MAX_NAME], item
