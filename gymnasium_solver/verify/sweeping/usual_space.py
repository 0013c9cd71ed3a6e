"""The space of a sweep that names none: the fields of each algorithm that are tuned first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.config.cards import Around, card_of
from gymnasium_solver.verify.sweeping.space import Parameter


def usual_space(base: Mapping[str, Any]) -> list[Parameter]:
    """The fields that are tuned first, around the base config; a schedule by its start."""
    space = []
    for name, usual in card_of(base["algo_id"]).search.items():
        head, _, key = name.partition(".")
        known: Any = base.get(head)
        if isinstance(known, Mapping):
            name, known = f"{head}.{key or 'start'}", known.get(key or "start")
        elif key:
            continue
        if not isinstance(known, int | float):  # unset, or left to the algorithm
            continue
        if isinstance(usual, Around):
            if known > 0:
                whole, low, high = isinstance(known, int), known / usual.factor, min(known * usual.factor, usual.most)
                low = max(1, round(low)) if whole else low
                space.append(Parameter(name, low=low, high=high, log=True, whole=whole))
        elif isinstance(usual, tuple):
            space.append(Parameter(name, low=usual[0], high=max(usual[1], known)))
        else:
            space.append(Parameter(name, choices=tuple(sorted({*usual, known}))))
    return space
