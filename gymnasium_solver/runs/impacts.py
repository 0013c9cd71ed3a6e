"""impacts.jsonl beside the runs: what changes were expected to bring and what tests measured, one line per test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.runs.layout import to_json

IMPACTS = "impacts.jsonl"


def append_impact(runs_dir: Path, record: Mapping[str, Any]) -> None:
    with (runs_dir / IMPACTS).open("a", encoding="utf-8") as file:
        file.write(to_json(record) + "\n")


def read_impacts(runs_dir: Path) -> list[dict[str, Any]]:
    """The last of each test, for a resumed experiment writes them again; a line that a kill cut short is none."""
    try:
        lines = (runs_dir / IMPACTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = {}
    for line in lines:
        try:
            record = json.loads(line)
            found[record["experiment"], record["change"]] = record
        except (ValueError, KeyError, TypeError):
            continue
    return list(found.values())
