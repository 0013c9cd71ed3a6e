"""A mistake is a formula with a step or two done otherwise. A function that gives the numbers of such a formula, on
every sample, makes that mistake: it can be named."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Changes = dict[str, Callable[..., Any]]  # step of a formula → what is done instead


@dataclass(frozen=True)
class Mistake:
    name: str
    says: str
    remedy: str
    harmless: bool = False
    measured: str | None = None
    changes: Changes = field(default_factory=dict, repr=False)

    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "says", "remedy", "harmless", "measured")}


@functools.cache
def _words() -> dict[str, dict[str, Any]]:
    words: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return words


def mistake(name: str, **changes: Callable[..., Any]) -> Mistake:
    return Mistake(name, **_words()[name], changes=changes)


def changes_of(mistakes: Sequence[Mistake]) -> Changes:
    return {step: done for mistake in mistakes for step, done in mistake.changes.items()}


def explain(known: Sequence[Mistake], same: Callable[[Changes], bool]) -> tuple[Mistake, ...] | None:
    """The combination with the fewest real mistakes whose numbers are the function's: () if it is right, None if none
    fits. Up to three that change different steps, at most two of them wrong: enough of them explain anything."""

    def wrong(chosen: Sequence[Mistake]) -> int:
        return sum(not mistake.harmless for mistake in chosen)

    combinations = [
        chosen
        for count in range(4)
        for chosen in itertools.combinations(known, count)
        if len(changes_of(chosen)) == sum(len(mistake.changes) for mistake in chosen) and wrong(chosen) <= 2
    ]
    ordered = sorted(combinations, key=lambda chosen: (wrong(chosen), len(chosen)))
    return next((chosen for chosen in ordered if same(changes_of(chosen))), None)
