"""Measured values over environment steps, and how several of them become the rows of one metrics.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gymnasium_solver.limits import CELLS_AT_A_TIME, MOST_CELLS
from gymnasium_solver.metrics.clocks import ENV_STEPS

WINDOW = 100  # episodes in a mean, as in the catalogue
ROWS_AT_A_TIME = 20_000  # of a narrow table


@dataclass(frozen=True)
class Series:
    """Values and the steps they belong to. A NaN here was measured; what was not measured is not here."""

    steps: np.ndarray
    values: np.ndarray
    times: np.ndarray | None = None  # seconds since the epoch, where the source has them

    def __len__(self) -> int:
        return len(self.values)

    def scaled(self, factor: float) -> Series:
        return self if factor == 1.0 else Series(self.steps, self.values * factor, self.times)

    def shifted(self, steps: float) -> Series:
        return Series(self.steps + steps, self.values, self.times)

    def finite(self) -> Series:
        known = np.isfinite(self.values)
        return self if known.all() else self.at(known)

    def in_order(self) -> Series:
        is_ordered = np.all(self.steps[1:] >= self.steps[:-1])
        return self if is_ordered else self.at(np.argsort(self.steps, kind="stable"))

    def at(self, places: np.ndarray) -> Series:
        """By a mask, or by indices."""
        return Series(self.steps[places], self.values[places], None if self.times is None else self.times[places])


def rolling_mean(series: Series, window: int = WINDOW) -> Series:
    """Mean of the last `window` values at each value."""
    series = series.finite().in_order()
    total = np.cumsum(np.concatenate([[0.0], series.values]))
    ends = np.arange(1, len(series) + 1)
    begins = np.maximum(ends - window, 0)
    return Series(series.steps, (total[ends] - total[begins]) / (ends - begins), series.times)


def best_so_far(series: Series) -> Series:
    series = series.finite().in_order()
    return Series(series.steps, np.maximum.accumulate(series.values), series.times)


def count_so_far(series: Series) -> Series:
    series = series.in_order()
    return Series(series.steps, np.arange(1.0, len(series) + 1), series.times)


def csv_chunks(columns: Mapping[str, Series]) -> Iterator[bytes]:
    """metrics.csv: a row for every step that any column has, empty where the column has none; the last value of a step
    counts. Rows are written as one JSON list, which is many times as fast as number by number."""
    from pydantic_core import to_json

    steps = _all_steps(columns)
    others = [name for name in columns if name != ENV_STEPS.column]
    yield ",".join([ENV_STEPS.column, *others]).encode() + b"\n"
    at_a_time = max(1, min(ROWS_AT_A_TIME, CELLS_AT_A_TIME // (1 + len(others))))
    edges = np.arange(0, len(steps) + at_a_time, at_a_time)
    placed = _placed(columns, others, steps, edges)
    for part, (begin, end) in enumerate(pairwise(np.minimum(edges, len(steps)).tolist())):
        cells = np.full((end - begin, 1 + len(others)), None, object)
        cells[:, 0] = steps[begin:end]
        for index, name in enumerate(others, start=1):
            rows, order, cuts = placed[id(columns[name].steps)]
            here = slice(cuts[part], cuts[part + 1])
            cells[rows[here] - begin, index] = columns[name].values[here if order is None else order[here]]
        text = to_json(cells.tolist(), inf_nan_mode="constants")[2:-2].replace(b"],[", b"\n") + b"\n"
        text = text.replace(b"null", b"").replace(b"NaN", b"nan").replace(b"Infinity", b"inf")
        yield text.replace(b".0,", b",").replace(b".0\n", b"\n")


def _placed(
    columns: Mapping[str, Series], names: list[str], steps: np.ndarray, edges: np.ndarray
) -> dict[int, tuple[np.ndarray, np.ndarray | None, list[int]]]:
    """For each array of steps: the rows of its values in order, that order unless it is theirs, cut at the edges."""
    placed: dict[int, tuple[np.ndarray, np.ndarray | None, list[int]]] = {}
    for series in (columns[name] for name in names):
        if id(series.steps) not in placed:
            rows, order = np.searchsorted(steps, series.steps), None
            if np.any(rows[1:] < rows[:-1]):
                order = np.argsort(rows, kind="stable")
                rows = rows[order]
            placed[id(series.steps)] = rows, order, np.searchsorted(rows, edges).tolist()
    return placed


def last_step(columns: Mapping[str, Series]) -> float:
    return max((float(series.steps.max()) for series in columns.values() if len(series)), default=0.0)


def within_reason(columns: Mapping[str, Series]) -> dict[str, Series]:
    """The first columns, as many as make a table of a bearable size: a row for every step that any of them has."""
    kept: dict[str, Series] = {}
    steps, more, seen = np.empty(0), [], set()
    rows = 0  # at most; counted only when that could be too many
    for name, series in columns.items():
        if id(series.steps) not in seen:
            seen.add(id(series.steps))
            more.append(series.steps)
            rows += len(series.steps)
        if rows * (1 + len(kept)) > MOST_CELLS:
            steps, more = np.unique(np.concatenate([steps, *more])), []
            rows = len(steps)
            if kept and rows * (1 + len(kept)) > MOST_CELLS:
                break
        kept[name] = series
    return kept


def _all_steps(columns: Mapping[str, Series]) -> np.ndarray:
    distinct = {id(series.steps): series.steps for series in columns.values()}
    return np.unique(np.concatenate([np.empty(0), *distinct.values()]))
