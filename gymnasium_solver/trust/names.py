"""Which fields of a configuration name code, and what they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# All that decides which code runs, and what it is given: a run is on record with exactly these.
FIELDS = (
    *("env_id", "env", "env_kwargs", "env_wrappers", "network", "expert", "reward", "potential"),
    *("curriculum", "policies", "opponents", "league"),
)
ARGUMENTS = ("env_kwargs",)  # data, whatever it looks like

# They make any environment of old Gym, and import the module that its id names.
_OLD_GYM = ("GymV21Environment-v0", "GymV26Environment-v0")

_MODULE = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE = re.compile(rf"({_MODULE}):([^\s:]+)")


def split(reference: str) -> tuple[str, str] | None:
    """Module and name of `module:Name`; None where it is nothing of the kind."""
    found = _REFERENCE.fullmatch(reference)
    return (found[1], found[2]) if found else None


def written(env_id: str) -> str | None:
    """The reference that an environment id is; None for an id that Gymnasium has registered and that names no code."""
    if env_id in _OLD_GYM:
        return f"shimmy:{env_id}"
    return env_id if ":" in env_id else None


def names_in(fields: Mapping[str, Any]) -> list[str]:
    """Every `module:Name` in the fields that name code, once."""
    found = (text for name in FIELDS if name not in ARGUMENTS for text in _texts(fields.get(name)))
    found = (written(text) or "" for text in found)
    return list(dict.fromkeys(text for text in found if split(text)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
