"""CSV files of other programs as columns of numbers: quoted, cut off, or with text among them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.limits import CELLS_AT_A_TIME, LONGEST_LINE, MOST_CELLS, MOST_COLUMNS, size
from gymnasium_solver.runs.foreign.tables import Table, as_number, only_the_first
from gymnasium_solver.runs.metrics_cells import NUMBER_BYTES
from gymnasium_solver.runs.metrics_reader import Metrics

LINES_AT_A_TIME = 20_000
TELLING = 50  # cells that show whether a column is text


def read_csv(path: Path) -> Table:
    """With a header; a first line that starts with # is a comment."""
    with path.open("rb") as file:
        first, second = file.readline(LONGEST_LINE), file.readline(LONGEST_LINE)
    if not first.strip():
        return Table(notes=[f"{path.name} is empty"])
    if b"\0" in first:
        return Table(notes=[f"{path.name} is no text"])
    if len(first) == LONGEST_LINE:
        return Table(notes=[f"{path.name} is no table: its first line is longer than {size(LONGEST_LINE)}"])
    if not first.startswith(b"#") and b'"' not in first and b"," in first and not second.translate(None, NUMBER_BYTES):
        numbers = Metrics(path)
        if 0 < len(numbers.names) <= MOST_COLUMNS and not numbers.skipped_lines:
            columns = numbers.to_dict()
            return Table(columns, {name: numbers.recorded(name) for name in columns})
    return _read_any_csv(path)


def _read_any_csv(path: Path) -> Table:
    table = Table()
    cells: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        lines = iter(partial(file.readline, LONGEST_LINE), "")
        header = next(lines, "")
        if header.startswith("#"):
            table.comment, header = header[1:], next(lines, "")
        delimiter = max(",;\t", key=header.count)
        try:
            names = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error as error:
            return Table(notes=[f"{path.name} is no table: its first line cannot be read ({error})"])
        places: dict[str, int] = {}
        for index, name in enumerate(names):
            if name and len(places) < MOST_COLUMNS:
                places.setdefault(name, index)  # of columns of one name the first
        count = 0
        for block in _csv_blocks(csv.reader(lines, delimiter=delimiter), len(names), path.name, table):
            if count * len(places) > MOST_CELLS:
                table.notes.append(only_the_first(count, "rows", path))
                break
            count += len(block)
            for name, index in places.items():
                cells.setdefault(name, []).append(_numbers([row[index] for row in block]))
    if len(places) == MOST_COLUMNS:
        table.notes.append(only_the_first(MOST_COLUMNS, "columns", path))
    for name, blocks in cells.items():
        values, there = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        if there.any():
            table.columns[name], table.there[name] = values, there
    return table


def _csv_blocks(rows: Any, columns: int, name: str, table: Table) -> Iterator[list[list[str]]]:
    """Rows of so many cells, as many at a time as fit; what is none is counted."""
    block: list[list[str]] = []
    damaged, at_a_time = 0, max(1, min(LINES_AT_A_TIME, CELLS_AT_A_TIME // max(1, columns)))
    try:
        for row in rows:
            if len(row) == columns:
                block.append(row)
            elif row:
                damaged += 1
            if len(block) == at_a_time:
                yield block
                block = []
    except csv.Error:
        table.notes.append(f"{name} is damaged from line {rows.line_num} on")
    if block:
        yield block
    if damaged:
        table.notes.append(f"{name}: {damaged} lines that are cut off or damaged were left out")


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
