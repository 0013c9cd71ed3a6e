"""The winner of a sweep on seeds that it was not chosen by: the best of many looks better than it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.plain import number
from gymnasium_solver.statistics import Comparison, compare
from gymnasium_solver.verify.comparison.wording import interval, p_value
from gymnasium_solver.verify.sweeping.studies import Aim, Study
from gymnasium_solver.verify.trials import Training, Workers

FRESH = 1000  # this far from the seeds of the trials
SHORT_UNITS = {"steps": "steps", "seconds": "s", "return": "return"}


def confirm(
    study: Study,
    aim: Aim,
    workers: Workers,
    base: Mapping[str, Any],
    trial: Any,
    count: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Train both over the fresh seeds, unless that is on record, and keep what they brought with the study."""
    known = study.optuna.user_attrs.get("confirmation")
    if known and known["trial"] == trial.number and known["seeds"] >= count:
        return dict(known)
    say(f"checking trial {trial.number} against {study.ref} on {count} fresh seeds each")
    first = base["seed"] + FRESH
    trainings = [
        Training(side, {**fields, "seed": seed})
        for seed in range(first, first + count)
        for side, fields in (("base", base), ("best", {**base, **trial.user_attrs["set"]}))
    ]
    measured: dict[str, list[float]] = {"base": [], "best": []}
    for trained in workers.results(trainings):
        value = aim.measured(trained) if trained.status != "failed" else None
        if value is not None:
            measured[trained.label].append(value)
        say(f"fresh seed {trained.seed}, {trained.label}: {amount(aim, value)}")
    confirmation = {"trial": trial.number, "seeds": count, "first_seed": first, **measured}
    study.optuna.set_user_attr("confirmation", confirmation)
    return confirmation


def judged(aim: Aim, known: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of it, and what they say."""
    result = compare(known["base"], known["best"], larger_is_better=not aim.is_minimised)
    return {
        **known,
        "verdict": result.verdict,
        "p_value": result.p_value,
        "iqm": list(result.iqm),
        "probability": result.probability,
        "probability_interval": list(result.probability_interval),
        "seeds_needed": result.seeds_needed,
        "sentence": _sentence(aim, result),
    }


def _sentence(aim: Aim, result: Comparison) -> str:
    chances = interval([100 * x for x in result.probability_interval])
    numbers = (
        f"{amount(aim, result.iqm[1])} against {amount(aim, result.iqm[0])} (interquartile means over "
        f"{result.seeds[1]} and {result.seeds[0]} fresh seeds), better in {result.probability:.0%} of the pairs "
        f"({chances} %), {p_value(result.p_value)}"
    )
    if result.is_significant:
        return f"The winner is {result.verdict} than the config the search started from: {numbers}."
    needed = f"; showing such a difference takes {result.seeds_needed} seeds per side" if result.seeds_needed else ""
    why = "too few seeds for a verdict" if result.verdict == "too few seeds" else "no difference is shown"
    return f"On fresh seeds {why}: {numbers}{needed}."


def amount(aim: Aim, value: float | None) -> str:
    if value is None:
        return "failed"
    return "threshold not reached" if math.isinf(value) else f"{number(value)} {SHORT_UNITS[aim.objective]}"
