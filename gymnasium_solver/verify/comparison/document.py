"""`gsolve compare`: runs side by side, as one document of plain values.

Settings that differ and what that means, results over seeds with their statistics, losses, gradient norms and schedules
by phase of training, and a verdict that claims no more than the seeds allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from gymnasium_solver.config.cards import find_card
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.metrics.returns import possible_returns
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.verify.comparison import course
from gymnasium_solver.verify.comparison.assessments import assess, derived
from gymnasium_solver.verify.comparison.caveats import caveats
from gymnasium_solver.verify.comparison.measures import common_measures, run_results, side_curve
from gymnasium_solver.verify.comparison.results import Judged, judge, side_results
from gymnasium_solver.verify.comparison.runs import ComparedRun
from gymnasium_solver.verify.comparison.sides import Side, differing_fields, make_sides
from gymnasium_solver.verify.comparison.verdict import verdict

NOT_KNOWN, DOES_NOT_APPLY = "not known", "does not apply"


def compare_runs(runs: Iterable[Run], *, group_by: str | None = None, baseline: str | None = None) -> dict[str, Any]:
    """The document of a comparison. The first side is the baseline, unless `baseline` names another (by its name, a
    run or a group). NaN and infinity stay in it: infinite steps to the threshold were never enough."""
    distinct = list({run.path.resolve(): run for run in runs}.values())
    if len(distinct) < 2:
        named = f"only {distinct[0].run_id} was given" if distinct else "none was given"
        raise ConfigError(f"a comparison needs at least two runs, but {named}; gsolve runs lists them")
    read = [ComparedRun.read(run) for run in distinct]
    _require_one_kind(read)
    sides = make_sides(read, group_by, baseline)
    measures = common_measures(sides)
    rows = [[run_results(run, measures) for run in side.runs] for side in sides]
    results = [_results(side, side_rows) for side, side_rows in zip(sides, rows, strict=True)]
    judged = _judged(sides, rows)
    furthest = max(run.trained for run in read)
    gradients = {side.label: course.gradients(side) for side in sides}
    losses = {side.label: course.losses(side) for side in sides}
    return {
        "env_id": next((run.config["env_id"] for run in read if run.config.get("env_id")), None),
        "baseline": sides[0].label,
        "measures": {**asdict(measures), "clock": measures.clock.name, "reward": measures.reward},
        "verdict": verdict(sides, results, measures, judged["primary"]),
        "caveats": caveats(sides, measures, group_by),
        "sides": [
            {
                "label": side.label,
                "name": side.name,
                "variant": side.runs[0].variant,
                "algo_id": side.algo_id,
                "library": side.runs[0].library,
                "runs": side_rows,
                "results": found,
                "curve": side_curve(side, measures, furthest),
            }
            for side, side_rows, found in zip(sides, rows, results, strict=True)
        ],
        "tests": [one.document(sides[0].label, kind == "primary") for kind, found in judged.items() for one in found],
        "differences": _differences(sides),
        "derived": _derived(sides),
        "losses": losses,
        "gradients": gradients,
        "schedules": course.schedules(sides),
        "missing": _missing(
            sides,
            losses={name: {term for terms in found.values() for term in terms} for name, found in losses.items()},
            gradient_norms={name: set(found) for name, found in gradients.items()},
        ),
    }


def _require_one_kind(runs: Sequence[ComparedRun]) -> None:
    """Of one environment, as far as that is known, and counted by one clock."""
    by_env = {str(run.config["env_id"]): run.run_id for run in reversed(runs) if run.config.get("env_id")}
    if len(by_env) > 1:
        (second, other), (first, one) = list(by_env.items())[-2:]
        raise ConfigError(
            f"runs of different environments cannot be compared: {one} is of {first}, {other} of {second}; "
            "compare runs of one environment at a time"
        )
    by_clock = {run.clock: run.run_id for run in reversed(runs)}
    if len(by_clock) > 1:
        (a, one), (b, other) = reversed(by_clock.items())
        raise ConfigError(
            f"runs on different clocks cannot be compared: {one} counts {a.words}, {other} {b.words}; compare "
            f"runs with {a.budget} or runs with {b.budget} at a time"
        )


def _results(side: Side, rows: list[dict[str, Any]]) -> dict[str, Any]:
    budgets = (run.summary["budget"] for run in side.runs)
    budget = max((float(budget) for budget in budgets if budget), default=math.inf)
    return side_results(rows, possible_returns(side.config), budget)


def _judged(sides: Sequence[Side], rows: Sequence[list[dict[str, Any]]]) -> dict[str, list[Judged]]:
    """By the measure that decides, and by others: steps to the threshold where they are known of all runs and any
    reached it, else the reward."""
    names = [side.label for side in sides]
    by_measure = {name: judge(names, rows, name) for name in ("steps_to_threshold", "final_reward", "area")}
    steps = [row["steps_to_threshold"] for side in rows for row in side if not math.isnan(row["final_reward"])]
    is_known = not any(map(math.isnan, steps)) and any(map(math.isfinite, steps))
    first = "steps_to_threshold" if is_known else "final_reward"
    rest = [one for name, found in by_measure.items() if name != first for one in found]
    return {"primary": by_measure[first], "others": rest}


def _differences(sides: Sequence[Side]) -> list[dict[str, Any]]:
    baseline, *others = sides
    found = []
    for field in differing_fields(sides):
        values = {side.label: _value(side, field) for side in sides}
        assessments = {
            other.label: sentence
            for other in others
            if values[other.label] != values[baseline.label]
            and not {NOT_KNOWN, DOES_NOT_APPLY} & {values[other.label], values[baseline.label]}
            and (sentence := assess(field, baseline, other))
        }
        found.append({"field": field, "values": values, "assessment": assessments})
    return found


def _value(side: Side, field: str) -> str:
    """As it is written, or why there is none."""
    if (written := side.written(field)) is not None:
        return written
    card = find_card(side.algo_id)
    return NOT_KNOWN if card is None or field in card.config.model_fields else DOES_NOT_APPLY


def _derived(sides: Sequence[Side]) -> list[dict[str, Any]]:
    by_side = {side.label: derived(side) for side in sides}
    found = []
    for name in by_side[sides[0].label]:
        values = {label: quantities[name] for label, quantities in by_side.items()}
        if not all(math.isnan(value) for value in values.values()):
            found.append({"quantity": name, "values": values})
    return found


def _missing(sides: Sequence[Side], **recorded: dict[str, set[str]]) -> list[str]:
    """What some sides recorded and others did not, so that an empty place in a table is not taken for a zero."""
    return [
        f"{side.title}: no {kind.replace('_', ' ')} of {', '.join(lacking)}"
        for kind, by_side in recorded.items()
        for side in sides
        if (lacking := sorted(set().union(*by_side.values()) - by_side[side.label]))
    ]
