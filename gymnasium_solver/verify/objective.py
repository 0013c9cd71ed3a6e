"""What a training is judged by: one score a seed, larger is better, whatever the objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.statistics import interquartile_mean, rank_test, welch
from gymnasium_solver.verify.trials import Trained

Objective = Literal["steps", "seconds", "return"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
UNITS = {"steps": "env steps to the threshold", "seconds": "seconds to the threshold", "return": "final return"}

# What is aimed at, then what tells apart those that never got there: minus the logarithm of the steps, and the return.
Score = tuple[float, float]
WORST: Score = (-math.inf, -math.inf)


def require_objective(name: str | None) -> Objective | None:
    if name is not None and name not in OBJECTIVES:
        raise ConfigError(f"objective: {name!r} is unknown; choose from {', '.join(OBJECTIVES)}")
    return name


def score(trained: Trained, objective: Objective) -> Score:
    reward = -math.inf if trained.final_reward is None else trained.final_reward
    if trained.status in ("failed", "diverged"):
        return WORST
    if objective == "return":
        return (reward, 0.0)
    reached = trained.steps_to_threshold if objective == "steps" else trained.seconds_to_threshold
    # Twice the steps is as much worse from 10k to 20k as from 100k to 200k; and the spread over seeds is of that kind.
    return (-math.log(max(reached, 1e-3)) if reached is not None else -math.inf, reward)


def value(one: Score, objective: Objective) -> float:
    """In the objective's unit; infinite for a threshold that was not reached."""
    return one[0] if objective == "return" else round(math.exp(-one[0]), 6) if one[0] > -math.inf else math.inf


def middle(scores: Sequence[Score], objective: Objective) -> float:
    """Interquartile mean in the objective's unit."""
    return interquartile_mean([value(one, objective) for one in scores])


def standing(scores: Sequence[Score]) -> tuple[float, float, float]:
    """To order sides by, best first when reversed: how many got there, how fast, and how far the others came."""
    first = np.array([one[0] for one in scores])
    second = np.array([one[1] for one in scores])
    reached = np.isfinite(first)
    how_fast = float(first[reached].mean()) if reached.any() else -math.inf
    how_far = float(np.mean(second)) if np.isfinite(second).all() else -math.inf
    return float(reached.mean()), how_fast, how_far


def as_numbers(*sides: Sequence[Score]) -> list[list[float]]:
    """As they are where all got there, else as ranks over all sides together: no number stands for never."""
    together = sorted({one for side in sides for one in side})
    if all(math.isfinite(one[0]) for one in together):
        return [[one[0] for one in side] for side in sides]
    place = {one: float(index) for index, one in enumerate(together)}
    return [[place[one] for one in side] for side in sides]


def difference(baseline: Sequence[Score], candidate: Sequence[Score]) -> float:
    """Two-sided p-value."""
    all_there = all(math.isfinite(one[0]) for one in (*baseline, *candidate))
    return (welch if all_there else rank_test)(*as_numbers(baseline, candidate))
