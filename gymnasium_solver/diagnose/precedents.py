"""A run set against others of its task beside it: where it is on the side that fails, or beyond what was solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.history import PastRun, Value, configurations, settings_of
from gymnasium_solver.diagnose.separation import are_enough, separate
from gymnasium_solver.diagnose.splits import shown

LEAST_RUNS, LEAST_CONFIGURATIONS = 4, 2  # that solved it: fewer have no range to be outside of
MOST = 2  # settings that are named, of either kind


def set_against(config: Mapping[str, Any], beside: Sequence[PastRun]) -> dict[str, Any] | None:
    """None where too few runs solved it, or this one has nothing that they did not have.

    `separating` are settings that tell solved from failed runs beyond chance, with this run on the wrong side;
    `outside` are numbers beyond the range of the runs that solved it, which is a fact about them and proves nothing.
    """
    groups = configurations(beside)
    solved = [group.settings for group in groups if group.solved]
    runs = sum(group.solved for group in groups)
    if runs < LEAST_RUNS or len(solved) < LEAST_CONFIGURATIONS:
        return None
    settings, good = settings_of(config), np.array([group.share for group in groups])
    found = separate([group.settings for group in groups], good).found if are_enough(good) else []
    separating = [
        {
            "field": entry.names[0],
            "value": settings[entry.names[0]],
            "better": entry.better,
            "worse": entry.worse,
            "shares": entry.shares,
            "p_value": entry.p_value,
        }
        for entry in found
        if not entry.not_apart_from and entry.names[0] in settings and entry.is_worse(settings[entry.names[0]])
    ][:MOST]
    named = {entry["field"] for entry in separating}
    outside = [entry for entry in _outside(settings, solved) if entry["field"] not in named][:MOST]
    if not separating and not outside:
        return None
    return {
        "env_id": config.get("env_id"),
        "runs": sum(len(group.runs) for group in groups),
        "solved": runs,
        "configurations": len(groups),
        "separating": separating,
        "outside": outside,
    }


def _outside(settings: Mapping[str, Value], solved: Sequence[Mapping[str, Value]]) -> list[dict[str, Any]]:
    """Numbers beyond the range that runs which solved it spread over, the furthest first."""
    found = []
    for name, value in settings.items():
        theirs = [number for entry in solved if isinstance(number := entry.get(name), float)]
        if not isinstance(value, float) or name.startswith("eval_") or len(theirs) < len(solved):
            continue
        low, high = min(theirs), max(theirs)
        if low < high and not low <= value <= high:
            distance = max(low - value, value - high) / (high - low)
            found.append((distance, {"field": name, "low": low, "high": high, "value": value}))
    return [entry for _, entry in sorted(found, key=lambda pair: -pair[0])]


def in_words(history: Mapping[str, Any]) -> str:
    clauses = [f"{history['solved']} of {history['runs']} other runs of {history['env_id']} here were solved"]
    for entry in history["separating"]:
        share, other = entry["shares"]
        clauses.append(
            f"with {entry['field']} {entry['better']}, {share:.0%} were; with {entry['worse']}, {other:.0%} "
            f"(p {entry['p_value']:.2g}); this run has {shown(entry['value'])}"
        )
    for entry in history["outside"]:
        low, high, value = (shown(entry[key]) for key in ("low", "high", "value"))
        clauses.append(f"the solved ones had {entry['field']} {low} to {high}, this run has {value}")
    return "; ".join(clauses)
