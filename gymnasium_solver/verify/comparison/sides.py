"""Runs put into sides: those that differ in the seed alone belong together, or those that share a field."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.plain import listed
from gymnasium_solver.verify.comparison.runs import ComparedRun
from gymnasium_solver.verify.comparison.wording import setting

# Not what a side is: the seed, how worker processes were chosen (by a stopwatch), and how often it was saved.
IGNORED = ("seed", "vectorization", "checkpoint_freq_epochs")
KEYS: dict[str, Callable[[ComparedRun], Any]] = {
    "variant": lambda run: run.variant,
    "group": lambda run: run.summary["group"] or run.run_id,
    "library": lambda run: run.library or "gymnasium-solver",
    "run": lambda run: run.run_id,
}
NAMED_FIELDS = 3  # a name has no room for more


@dataclass(frozen=True, eq=False)
class Side:
    label: str  # a letter, for the head of a column
    name: str
    runs: list[ComparedRun]
    repeated: list[ComparedRun]  # same settings, same seed: no new replicates

    @property
    def title(self) -> str:
        return f"{self.label} ({self.name})"

    @property
    def config(self) -> dict[str, Any]:
        return self.runs[0].config

    @property
    def algo_id(self) -> str | None:
        return self.config.get("algo_id")

    def values(self, field: str) -> list[Any]:
        """The different values of a config field among its runs."""
        return list({_written(run.config.get(field)): run.config.get(field) for run in self.runs}.values())

    def written(self, field: str) -> str | None:
        """As it is written, all of its values where runs differ; None where no run tells."""
        told = any(field in run.config for run in self.runs)
        return " or ".join(setting(value) for value in self.values(field)) if told else None

    def mixed_fields(self) -> list[str]:
        return [name for name in all_fields([self]) if len(self.values(name)) > 1]


def make_sides(runs: Sequence[ComparedRun], group_by: str | None, baseline: str | None) -> list[Side]:
    """In the order in which they were given, the baseline first."""
    groups: dict[str, list[ComparedRun]] = {}
    for run in runs:
        groups.setdefault(_key(run, runs, group_by), []).append(run)
    members = list(groups.values())
    names = [setting(_value(group[0], group_by)) for group in members] if group_by else _names(members)
    if group_by and group_by not in KEYS:
        names = [f"{group_by}={name}" for name in names]
    sides = [Side("", name, *_without_repetition(group)) for name, group in zip(names, members, strict=True)]
    if baseline is not None:
        chosen = _find(sides, baseline)
        sides = [chosen, *(side for side in sides if side is not chosen)]
    return [replace(side, label=_letter(place)) for place, side in enumerate(sides)]


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"side {place + 1}"


def all_fields(sides: Sequence[Side]) -> list[str]:
    """Config fields of any run of the sides that say what was trained, each once."""
    names = dict.fromkeys(name for side in sides for run in side.runs for name in run.config)
    return [name for name in names if name not in IGNORED]


def differing_fields(sides: Sequence[Side]) -> list[str]:
    return [
        name
        for name in all_fields(sides)
        if len({tuple(sorted(_written(value) for value in side.values(name))) for side in sides}) > 1
    ]


def _key(run: ComparedRun, runs: Sequence[ComparedRun], group_by: str | None) -> str:
    if group_by is None:
        settings = {name: value for name, value in run.config.items() if name not in IGNORED}
        return _written([run.library, settings])
    if group_by not in KEYS and not any(group_by in other.config for other in runs):
        known = [*KEYS, *dict.fromkeys(name for other in runs for name in other.config)]
        near = difflib.get_close_matches(group_by, known, 1, 0.5)
        hint = f"did you mean {near[0]!r}" if near else f"use {listed(list(KEYS))}, or a config field such as policy_lr"
        raise ConfigError(f"--group-by {group_by!r} is not a config field of these runs; {hint}")
    return _written(_value(run, group_by))


def _value(run: ComparedRun, field: str) -> Any:
    return KEYS[field](run) if field in KEYS else run.config.get(field)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _names(groups: Sequence[list[ComparedRun]]) -> list[str]:
    """The variant where that tells sides apart; otherwise also what differs among sides of the same variant."""
    names = []
    for group in groups:
        variant = group[0].variant
        alike = [Side("", "", other, []) for other in groups if other[0].variant == variant]
        fields = differing_fields(alike)
        words = [f"{name}={setting(group[0].config.get(name))}" for name in fields]
        name = listed(words, NAMED_FIELDS) if words else variant
        if words and len(alike) < len(groups):
            name = f"{variant} {name}"
        names.append(name)
    return names


def _without_repetition(runs: list[ComparedRun]) -> tuple[list[ComparedRun], list[ComparedRun]]:
    """A seed counts once for the same settings; of those that repeat it the run that got furthest is kept."""
    best: dict[str, ComparedRun] = {}
    for run in runs:
        same = run.run_id if run.seed is None else _written([run.library, run.config | {"vectorization": None}])
        if same not in best or run.trained > best[same].trained:
            best[same] = run
    kept = list(best.values())
    return kept, [run for run in runs if run not in kept]


def _find(sides: Sequence[Side], name: str) -> Side:
    for matches in (
        lambda side: side.name == name,
        lambda side: any(name in (run.run_id, run.summary["group"]) for run in side.runs),
        lambda side: name in side.name or any(run.run_id.startswith(name) for run in side.runs),
    ):
        found = [side for side in sides if matches(side)]
        if len(found) == 1:
            return found[0]
    raise ConfigError(f"--baseline {name!r} is not one of the sides; they are {listed([side.name for side in sides])}")
