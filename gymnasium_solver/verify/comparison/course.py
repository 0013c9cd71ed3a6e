"""How training went on each side: terms of the loss, gradient norms and scheduled values, by phase of training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import find_card
from gymnasium_solver.verify.comparison.runs import ComparedRun
from gymnasium_solver.verify.comparison.sides import Side

PHASES = {"early": (0.0, 1 / 3), "middle": (1 / 3, 2 / 3), "late": (2 / 3, 1.0)}  # shares of the steps a run trained
QUANTILES = (0.1, 0.5, 0.9)
GRADIENT = "train/metrics/grad_norm/"
PARTS = ("actor_head", "critic_head", "trunk", "all")
CLIPPED = "train/metrics/grad_clip_fraction"
SCHEDULED = "train/hp/"
SCHEDULE_POINTS = 40


def losses(side: Side) -> dict[str, dict[str, dict[str, float]]]:
    """Phase → term → its size times its weight, and its share of all terms; medians over the seeds.

    Sizes, since a policy loss may have either sign.
    """
    phases = {}
    for phase, (start, stop) in PHASES.items():
        terms = {
            term: _median([_term(run, term, start, stop) for run in side.runs])
            for term in ("policy", "value", "entropy")
        }
        recorded = {term: value for term, value in terms.items() if not math.isnan(value)}
        whole = sum(recorded.values())
        if recorded:
            phases[phase] = {
                term: {"size": value, "share": value / whole if whole else math.nan} for term, value in recorded.items()
            }
    return phases


def _term(run: ComparedRun, term: str, start: float, stop: float) -> float:
    weight = _weight(run, term, start, stop)
    values = np.abs(run.part(f"train/loss/{term}", start, stop))
    return float(np.median(values)) * weight if values.size and weight is not None else math.nan


def _weight(run: ComparedRun, term: str, start: float, stop: float) -> float | None:
    """The coefficient in force; None where the term is not one of this algorithm's loss, or its weight not known."""
    card = find_card(run.config.get("algo_id"))
    if term == "policy":
        return 1.0
    if card is not None and card.family != "on_policy":
        return 1.0 if term == "value" else None  # critics have an optimiser of their own; entropy is in the policy loss
    if term == "value" and run.config.get("baseline") == "none":
        return None
    name = {"value": "vf_coef", "entropy": "ent_coef"}[term]
    in_force = run.median(f"{SCHEDULED}{name}", start, stop)
    if in_force is not None:
        return in_force
    value = run.config.get(name)
    return float(value) if isinstance(value, int | float) else None


def gradients(side: Side) -> dict[str, dict[str, dict[str, Any]]]:
    """Part of the network → phase → quantiles (10, 50, 90 %) of its gradient norm; medians over the seeds."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for part in PARTS:
        for phase, (start, stop) in PHASES.items():
            rows = [values for run in side.runs if (values := run.part(f"{GRADIENT}{part}", start, stop)).size]
            if rows:
                quantiles = np.median([np.quantile(values, QUANTILES) for values in rows], axis=0)
                found.setdefault(part, {})[phase] = dict(
                    zip(("low", "median", "high"), map(float, quantiles), strict=True)
                )
    for phase, (start, stop) in PHASES.items():
        share = _median([_mean(run.part(CLIPPED, start, stop)) for run in side.runs])
        if not math.isnan(share) and "all" in found and phase in found["all"]:
            found["all"][phase]["clipped"] = share
    return found


def schedules(sides: Sequence[Side]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Field → side → its values over the clock, for fields that move, or differ between sides."""
    names = dict.fromkeys(
        name for side in sides for run in side.runs for name in run.columns if name.startswith(SCHEDULED)
    )
    found = {}
    for name in names:
        drawn = {side.label: course for side in sides if (course := _course(side, name))["steps"]}
        values = [value for course in drawn.values() for value in course["values"]]
        if values and max(values) - min(values) > 1e-9 * max(map(abs, values)):
            found[name.removeprefix(SCHEDULED)] = drawn
    return found


def _course(side: Side, name: str) -> dict[str, list[float]]:
    """Of the seed that trained longest: schedules follow the clock, so the others are the beginning of it."""
    steps, values = max((run.curve(name) for run in side.runs), key=lambda curve: curve[0][-1] if curve[0].size else -1)
    chosen = np.unique(np.linspace(0, steps.size - 1, min(SCHEDULE_POINTS, steps.size)).astype(int))
    return {"steps": steps[chosen].tolist(), "values": values[chosen].tolist()}


def _median(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else math.nan


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else math.nan
