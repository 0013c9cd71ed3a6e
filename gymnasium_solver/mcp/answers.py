"""Answers of a size that an assistant can read: numbers in few digits, long lists thinned, and a note of what is
missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, Field

from gymnasium_solver.runs.layout import plain

DIGITS = 6
CHARACTERS = 24_000  # about 8,000 tokens
LENGTHS = (60, 30, 16, 8, 4, 2)


class Answer(BaseModel):
    """What every tool's answer has."""

    truncated: list[str] = Field(
        default_factory=list, description="What was left out to keep this short, and how to get it; empty if nothing."
    )


def short(document: Any, more: str) -> tuple[Any, list[str]]:
    """The document with lists as long as fit, and what was cut; `more` says where the whole is."""
    document = plain(document)
    for length in LENGTHS:
        cut: list[str] = []
        kept = _thinned(document, length, "", cut)
        if len(json.dumps(kept)) <= CHARACTERS:
            break
    return kept, [*_grouped(cut), more] if cut else []


def _thinned(value: Any, length: int, where: str, cut: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _thinned(item, length, f"{where}.{key}" if where else key, cut) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > length:
        cut.append(f"{where}: {length} of {len(value)}")
        is_curve = all(item is None or isinstance(item, int | float) for item in value)
        value = [value[index] for index in evenly(len(value), length)] if is_curve else value[:length]
    return [_thinned(item, length, f"{where}[{index}]", cut) for index, item in enumerate(value)]


def _grouped(cut: Sequence[str]) -> list[str]:
    return list(cut) if len(cut) <= 8 else [*cut[:8], f"and {len(cut) - 8} more lists"]


def evenly(total: int, count: int) -> list[int]:
    """At most `count` positions spread over 0..total-1, the first and the last among them."""
    if total <= count:
        return list(range(total))
    if count < 2:
        return [total - 1]
    return [round(place * (total - 1) / (count - 1)) for place in range(count)]


def rounded(value: Any) -> Any:
    """As JSON, floats in six digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
