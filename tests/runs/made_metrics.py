"""A metrics.csv that grows."""

from __future__ import annotations

from pathlib import Path

STEPS, VALUE = "train/cnt/env_steps", "value"


def write(path: Path, rows: int, start: int = 0) -> None:
    with path.open("a") as file:
        if not start:
            file.write(f"{STEPS},{VALUE},other\n")
        file.writelines(f"{10 * (row + 1)},{row % 7 or 'nan'},\n" for row in range(start, start + rows))
