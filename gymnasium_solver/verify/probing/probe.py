"""What a probe is: a cheap experiment that settles what a run's files leave open, and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gymnasium_solver.diagnose.evidence import Answer

Say = Callable[[str], None]

# Likelihood ratios: how much more likely an outcome is if the cause is there than if it is not.
PROVEN = 200.0  # seen directly
CONFIRMED = 10.0  # its change mends the run
HINTED = 3.0
UNLIKELY = 0.2  # its change mends nothing
REFUTED = 0.02  # seen not to be there


@dataclass(frozen=True)
class Trial:
    """A change to the run's configuration and what is learnt if it helps."""

    change: Mapping[str, Any]
    causes: tuple[str, ...]  # that this change answers; () for the settings known to work, all at once


@dataclass(frozen=True)
class Probe:
    name: str
    kind: Literal["environment", "training"]
    question: str  # what it decides
    causes: tuple[str, ...]  # that it can confirm or rule out
    seconds: float
    trials: tuple[Trial, ...] = ()
    seeds: tuple[int, ...] = ()
    budget: int = 0  # environment steps of each training

    @property
    def cost(self) -> str:
        if self.kind == "environment":
            return f"about {self.seconds:.0f} s, no training"
        runs = (len(self.trials) + 1) * len(self.seeds)
        return f"about {self.seconds:.0f} s: {runs} trainings of {self.budget:,} steps"


@dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str
    evidence: str  # the numbers
    odds: Mapping[str, float] = field(default_factory=dict)  # cause → factor of its odds
    answers: Mapping[str, Answer] = field(default_factory=dict)  # questions of the catalogue that were answered
