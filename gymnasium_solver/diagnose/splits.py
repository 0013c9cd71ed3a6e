"""The values that a setting had over configurations, and the ways to split them in two."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gymnasium_solver.diagnose.history import Value

LEAST_SIDE = 3  # configurations on either side of a split
MOST_BINS = 12  # of a setting that had many values
MOST_VALUES = 6  # of one that is a number or unset; with more, only whether it is set counts


@dataclass(frozen=True)
class Setting:
    names: tuple[str, ...]
    values: list[Value]  # of the configurations that have it
    rows: np.ndarray  # which these are
    splits: np.ndarray  # [split, configuration of `rows`], True on one side


def varying(settings: Sequence[Mapping[str, Value]]) -> Iterator[Setting]:
    """Settings with two values or more; those that always changed together as one."""
    together: dict[tuple[int, ...], list[str]] = {}
    columns: dict[str, list[Value]] = {}
    for name in dict.fromkeys(name for entry in settings for name in entry):
        present = np.array([_has(entry, name) for entry in settings])
        values = [_value(entry, name) for entry in settings]
        seen: dict[Value, int] = {}
        codes = tuple(seen.setdefault(value, len(seen)) if there else -1
                      for value, there in zip(values, present, strict=True))  # fmt: skip
        if len(seen) > 1:
            together.setdefault(codes, []).append(name)
            columns[name] = [value for value, there in zip(values, present, strict=True) if there]
    for codes, names in together.items():
        # Named after the algorithm where it is among them, or else after a number, which is split more finely.
        names.sort(key=lambda name: (name != "algo_id", not _is_numeric(columns[name])))
        values = columns[names[0]]
        yield Setting(tuple(names), values, np.flatnonzero(np.array(codes) >= 0), _splits(values))


def _has(entry: Mapping[str, Value], name: str) -> bool:
    head, _, rest = name.partition(".")
    return name in entry or (head in entry if rest == "schedule" else bool(rest))


def _value(entry: Mapping[str, Value], name: str) -> Value:
    """What a configuration does not say of a schedule or of a mapping's entry has a meaning too."""
    return entry.get(name, "constant" if name.endswith(".schedule") else None)


def _is_numeric(values: Sequence[Value]) -> bool:
    return all(isinstance(value, float) and math.isfinite(value) for value in values)


def _splits(values: Sequence[Value]) -> np.ndarray:
    """Of a number every stretch of values against the rest, of anything else every value."""
    if _is_numeric(values):
        numbers = np.array(values, dtype=float)
        edges = np.unique(numbers)
        if len(edges) > MOST_BINS:
            edges = np.unique(np.quantile(numbers, np.linspace(0, 1, MOST_BINS + 1)[:-1], method="lower"))
        bins = np.searchsorted(edges, numbers, side="right") - 1
        stretches = [(bins >= low) & (bins < high) for low, high in combinations(range(len(edges) + 1), 2)]
    else:
        labels = np.array(_labels(values))
        stretches = [labels == label for label in np.unique(labels)]
    splits = np.array(stretches)
    count = splits.sum(axis=1)
    return splits[(count >= LEAST_SIDE) & (len(values) - count >= LEAST_SIDE)]


def _labels(values: Sequence[Value]) -> list[str]:
    """Values as words; of many numbers and unset, only which of the two."""
    many = len(set(values)) > MOST_VALUES and None in values
    return ["unset" if value is None else "set" if many else shown(value) for value in values]


def shown(value: Value) -> str:
    return "unset" if value is None else f"{value:g}" if isinstance(value, float) else value


def words(values: Sequence[Value], side: np.ndarray) -> tuple[str, str]:
    """Both sides of a split."""
    if not _is_numeric(values):
        labels = np.array(_labels(values))
        inside, outside = (" or ".join(np.unique(labels[where])) for where in (side, ~side))
        return inside, outside
    numbers = np.array(values, dtype=float)
    ends = [(numbers[where].min(), numbers[where].max()) for where in (side, ~side)]
    return _stretch(*ends[0], *ends[1]), _stretch(*ends[1], *ends[0])


def _stretch(low: float, high: float, other_low: float, other_high: float) -> str:
    """A side of a split by its ends and those of the other side."""
    if low == high:
        return f"{low:g}"
    if high < other_low:
        return f"up to {high:g}"
    if low > other_high:
        return f"{low:g} or more"
    return f"{low:g} to {high:g}" if low > other_low else f"below {other_low:g} or above {other_high:g}"
