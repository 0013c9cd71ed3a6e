"""Columns of numbers, as tables of other programs hold them, and their nested settings as flat ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

MAX_DEPTH = 12
MAX_NAME = 200
WANDB_COLUMNS = ("_step", "_runtime", "_timestamp")


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


def only_the_first(count: int, what: str, path: Path) -> str:
    return f"{path.name}: only its first {count} {what} were read"


def as_number(value: Any) -> float | None:
    """Numbers, and text that is one; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def flat(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Leaves of nested objects, their names joined by slashes."""
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for key, item in value.items():
            name = (f"{prefix}/{key}" if prefix else str(key))[:MAX_NAME]
            if isinstance(item, dict):
                yield from flat(item, name, depth + 1)
            else:
                yield name, item
