"""What an environment keeps outside of its state: on itself, on its class, in its module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

_CONTAINERS = (list, set, bytearray)

Held = dict[str, tuple[Any, Any]]  # by how it is written in code: the value, and what is in it


def held(environment: Any) -> Held:
    """As far as a change would show: what names are bound to, and what is in containers and arrays."""
    environment = getattr(environment, "wrapped", environment)
    made_by = type(environment)
    module = sys.modules.get(made_by.__module__)
    places: dict[str, Mapping[str, Any]] = {
        "self.": getattr(environment, "__dict__", {}),
        f"{made_by.__name__}.": vars(made_by),
        "the module's ": {} if module is None else vars(module),
    }
    return {place + key: (value, _content(value)) for place, names in places.items() for key, value in names.items()}


def changed(before: Held, after: Held) -> str | None:
    """The first name that is new, gone, bound to something else, or with something else in it."""
    for name in (*before, *after):
        if name not in before or name not in after:
            return name
        (value, content), (new_value, new_content) = before[name], after[name]
        if value is not new_value or content != new_content:
            return name
    return None


def _content(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, id(item)) for key, item in value.items()]
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return [id(item) for item in value] if isinstance(value, _CONTAINERS) else None
