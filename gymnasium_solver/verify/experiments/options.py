"""What an experiment is given besides its subject: what it may cost, how it is judged, where it works, who hears of
it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from gymnasium_solver.verify.experiments.budget import Budget, parse_duration

if TYPE_CHECKING:
    from gymnasium_solver.verify.trials import Notice


@dataclass(frozen=True)
class Options:
    """Of `verify`, `optimize` and `solve`; each reads those that concern it."""

    budget: str | float | None = None  # time: 90s, 10m, 1h or seconds; None: no end
    max_runs: int | None = None  # trainings, instead of time or with it
    seeds: int = 5  # fresh ones a side of a test
    objective: str | None = None  # None: steps where there is a threshold
    target: float | None = None  # mean return that solves; None: the environment's threshold
    use_shipped: bool = True  # configurations shipped for the environment may be the beginning
    episodes: int = 100  # fresh ones of the evaluation that decides
    seed: int = 1  # of the first training; the others count up
    jobs: int | None = None  # trainings at once; None: one for each core
    resume: str | None = None  # an experiment that goes on
    runs_dir: Path | None = None
    say: Callable[[str], None] = lambda _: None  # what is done, line by line
    watch: Callable[[Notice], None] = lambda _: None  # what happens in the trainings under way

    def __post_init__(self) -> None:
        """What is wrong is said before anything is trained."""
        self.begin()

    def begin(self) -> Budget:
        """It runs from now on."""
        seconds = parse_duration(self.budget) if isinstance(self.budget, str) else self.budget
        return Budget(math.inf if seconds is None else seconds, math.inf if self.max_runs is None else self.max_runs)

    def arguments(self) -> list[str]:
        """As the command line takes them, in a process of its own."""
        words = [] if self.use_shipped else ["--from-scratch"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default and field.name != "use_shipped" and not callable(value):
                words += [f"--{field.name.replace('_', '-')}", str(value)]
        return words
