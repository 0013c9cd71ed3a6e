"""A mistake is the reference computed with one step done otherwise. A function that puts out the same numbers as
such a computation, on every batch, makes that mistake: it can be named."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_TOGETHER = 3
SIGN_MEASURED = (
    "in the fault benchmark PPO with this sign learns nothing: CartPole -0.03, Acrobot 0.02, Pendulum -0.06 of 1.00"
)


@dataclass(frozen=True)
class Mistake:
    """`changes`: steps of the reference that are done otherwise."""

    name: str
    changes: Mapping[str, str]
    says: str
    remedy: str
    harmless: bool = False  # another convention, right if the rest of the program follows it
    measured: str = field(default="", compare=False)

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "says": self.says,
            "remedy": self.remedy,
            "harmless": self.harmless,
            "measured": self.measured or None,
        }


def combinations(catalogue: Sequence[Mistake]) -> Iterator[tuple[Mistake, ...]]:
    """None, single ones, then several that touch different steps; the fewest real mistakes first."""
    found = [
        chosen
        for count in range(MOST_TOGETHER + 1)
        for chosen in itertools.combinations(catalogue, count)
        if len({step for mistake in chosen for step in mistake.changes}) == sum(len(m.changes) for m in chosen)
        and sum(not mistake.harmless for mistake in chosen) <= 2
    ]
    # Not more than two that are wrong: with enough of them anything could be explained.
    return iter(sorted(found, key=lambda chosen: (sum(not m.harmless for m in chosen), len(chosen))))


def explain(catalogue: Sequence[Mistake], same: Callable[[dict[str, str]], bool]) -> tuple[Mistake, ...] | None:
    """The first combination whose numbers are those of the function: () if it is right, None if nothing fits."""
    for chosen in combinations(catalogue):
        if same({step: done for mistake in chosen for step, done in mistake.changes.items()}):
            return chosen
    return None
