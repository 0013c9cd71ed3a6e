"""The calls that a clock booked, as the phases of a training and as a tree."""

from __future__ import annotations

from typing import Any

from gymnasium_solver.verify.profiling.clock import Clock

PHASES = ("step", "act", "transfer", "update", "record", "evaluate", "write", "compile", "other")


def phase_of(path: tuple[str, ...]) -> str:
    """`path` begins with the run itself."""
    if path[-1] in ("compile", "write"):
        return path[-1]
    if "evaluate" in path:
        return "evaluate"
    return {"run": "other", "epoch": "record", "replay": "record", "bonus": "update"}.get(path[-1], path[-1])


def phase_seconds(clock: Clock) -> dict[str, float]:
    booked = dict.fromkeys(PHASES, 0.0)
    for path, seconds in clock.seconds.items():
        booked[phase_of(path)] += seconds
    return booked


def tree_of(clock: Clock) -> dict[str, Any]:
    """Name, seconds and children, nested as the calls were; an epoch's are told apart as collecting and
    learning."""
    root: dict[str, Any] = {"name": "training", "seconds": 0.0, "children": []}
    for path, seconds in clock.seconds.items():
        names = list(path[1:])
        if names and names[0] == "epoch":
            part = "learn" if len(names) > 1 and names[1] in ("update", "bonus") else "collect"
            names = [part, *(names[1:] or ["record"])]
        names = names or ["other"]
        node = root
        node["seconds"] += seconds
        for name in names:
            child = next((child for child in node["children"] if child["name"] == name), None)
            if child is None:
                child = {"name": name, "seconds": 0.0, "children": []}
                node["children"].append(child)
            child["seconds"] += seconds
            node = child
    return root
