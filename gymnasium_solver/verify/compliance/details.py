"""The published list of PPO's implementation details: what they are is in details.yaml, how they stand is found elsewhere."""

from __future__ import annotations

import functools
from pathlib import Path

import yaml

from gymnasium_solver.verify.compliance.report import Finding, Presence


@functools.cache
def published() -> list[tuple[str, dict[str, str]]]:
    """Group and words of each, in the list's order."""
    groups = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return [(group, entry) for group, entries in groups.items() for entry in entries]


def finding(number: int, status: Presence, evidence: str) -> Finding:
    """How the detail of this number (from 1) stands."""
    group, words = published()[number - 1]
    matters, _, why = words["matters"].partition("; ")
    return Finding(number, group, words["detail"], words["what"], status, evidence, matters, why)
