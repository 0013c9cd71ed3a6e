"""status.json and config.json as far as they make sense: anyone may have written them, and one that is damaged must not
hide the runs beside it. A value of the wrong kind is left out; the first one is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gymnasium_solver.limits import parse_json, read_bytes

LARGEST = 2.0**63


class Record(NamedTuple):
    fields: dict[str, Any]
    problem: str | None  # with the file, in a sentence; None for one that is missing, or as it should be


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _is_finite(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST)


def _is_flag(value: Any) -> bool:
    return value is None or isinstance(value, bool)


Kinds = Mapping[str, tuple[Callable[[Any], bool], str]]
TEXT, NUMBER, FINITE, WHOLE, FLAG = (
    (_is_text, "text"),
    (_is_number, "a number"),
    (_is_finite, "a finite number"),
    (_is_whole, "a whole number"),
    (_is_flag, "true or false"),
)
STATUS: Kinds = {
    **dict.fromkeys(("status", "run_id", "started_at", "updated_at", "group", "parent"), TEXT),
    **dict.fromkeys(("error", "stopped_by", "host", "process"), TEXT),
    **dict.fromkeys(("heartbeat", "elapsed_s", "threshold", "env_steps", "updates", "epoch"), NUMBER),
    **dict.fromkeys(("max_env_steps", "max_updates"), FINITE),
    "pid": WHOLE,
    "solved": FLAG,
}
CONFIG: Kinds = {
    **dict.fromkeys(("env_id", "algo_id"), TEXT),
    **dict.fromkeys(("max_env_steps", "max_updates"), FINITE),
    "reward_threshold": NUMBER,
    "seed": WHOLE,
}


def read_record(path: Path, kinds: Kinds) -> Record:
    """Without the values that are not of the kind their name asks for."""
    try:
        found = parse_json(read_bytes(path))
    except FileNotFoundError:
        return Record({}, None)
    except OSError as error:
        return Record({}, f"{path.name} cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Record({}, f"{path.name} is damaged: {error}")
    if not isinstance(found, dict):
        return Record({}, f"{path.name} is damaged: it holds no object")
    wrong = [name for name, (is_right, _) in kinds.items() if name in found and not is_right(found[name])]
    fields = {name: value for name, value in found.items() if name not in wrong}
    return Record(fields, f"{path.name} is damaged: its {wrong[0]} is not {kinds[wrong[0]][1]}" if wrong else None)
