"""Numbers and settings as sentences hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium_solver.plain import number

NOT_REACHED = "not reached"


def steps(value: float | None) -> str:
    """Steps or seconds to the threshold; infinitely many are those of a run that did not reach it."""
    return NOT_REACHED if value is not None and math.isinf(value) else number(value)


def interval(bounds: Sequence[float] | None, write: Any = number) -> str:
    """`3 to 5`; a dash where it is not known, or infinite at both ends."""
    if bounds is None or math.isnan(bounds[0]) or math.isinf(bounds[0]):
        return "-"
    return f"{write(bounds[0])} to {write(bounds[1])}"


def p_value(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.2g}"


def setting(value: Any) -> str:
    """A config value in one short word; a schedule by its ends."""
    if isinstance(value, Mapping) and "start" in value:
        kind = value.get("schedule", "linear")
        return f"{value['start']:g}→{value.get('end') or 0:g}" + ("" if kind == "linear" else f" {kind}")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "unset"}[value]
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) or abs(value) < 10_000 else f"{value:,}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(setting, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {setting(item)}" for key, item in value.items()) + "}"
    return str(value)


def compared(what: str, ratio: float) -> str:
    """`learning rate 3 times larger`."""
    return f"{what} {max(ratio, 1 / ratio):.2g} times {'larger' if ratio > 1 else 'smaller'}"
