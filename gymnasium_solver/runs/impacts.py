"""impacts.jsonl beside the runs: what changes were expected to bring and what tests measured, one line per test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.runs.layout import read_lines, to_json

IMPACTS = "impacts.jsonl"


def append_impact(runs_dir: Path, record: Mapping[str, Any]) -> None:
    with (runs_dir / IMPACTS).open("a", encoding="utf-8") as file:
        file.write(to_json(record) + "\n")


def read_impacts(runs_dir: Path) -> list[dict[str, Any]]:
    """The last of each test, for a resumed experiment writes them again."""
    records = read_lines(runs_dir / IMPACTS)
    whole = (record for record in records if {"experiment", "change"} <= record.keys())
    return list({(record["experiment"], record["change"]): record for record in whole}.values())
