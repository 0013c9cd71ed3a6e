"""What is worth trying instead of a configuration: the advice, its neighbours, and all of it together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gymnasium_solver.config.cards import find_card
from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.on_policy import nearest_divisor
from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.errors import SolverError
from gymnasium_solver.recommend.changes import reset
from gymnasium_solver.recommend.recommendations import UNEXPLAINED, flag, recommend

MOST = 7
EVALUATIONS = 20  # of a run whose config does not say how often
NEIGHBOUR = "neighbour"  # cause of what was not advised but lies beside it
# Fields that move by a factor, and how far a neighbour lies.
SCALED: Mapping[str, float] = {
    "policy_lr": 2.0,
    "ent_coef": 3.0,
    "n_steps": 2.0,
    "batch_size": 2.0,
    "n_epochs": 2.0,
    "clip_range": 1.5,
    "update_to_data": 2.0,
    "target_update_interval": 2.0,
    "max_grad_norm": 4.0,
    "bonus_coef": 4.0,
}
# What is tried beside a configuration in which nothing is wrong, in this order.
BESIDE_HEALTHY = ("policy_lr", "n_epochs", "n_steps", "update_to_data", "ent_coef", "batch_size")


@dataclass(frozen=True)
class Candidate:
    """A change of the configuration, and why."""

    label: str
    change: Mapping[str, Any]
    cause: str
    why: str
    expected_impact: Mapping[str, Any] = field(default_factory=dict)


def candidates(diagnosis: Diagnosis, fields: Mapping[str, Any], most: int = MOST) -> list[Candidate]:
    """The first are the likeliest; each makes a valid config, and no two the same."""
    made: dict[str, Candidate] = {}
    unchanged = _key(valid(fields, {}) or fields)
    for candidate in _ideas(diagnosis, fields):
        whole = valid(fields, candidate.change)
        if whole is not None and _key(whole) != unchanged:
            made.setdefault(_key(whole), candidate)
    return list(made.values())[:most]


def valid(fields: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any] | None:
    """The whole config with the change, evaluated after as many env steps as before: a finer ruler would look faster.
    A minibatch that no longer divides the rollout is taken along. None if it cannot be a config."""
    measured = {name: value for name, value in change.items() if not name.startswith("eval_")}
    whole = {**fields, **measured}
    whole["eval_freq_epochs"] = max(1, round(_steps_between_evaluations(fields) / (whole["n_envs"] * whole["n_steps"])))
    card = find_card(whole.get("algo_id"))
    if card is not None and card.splits_rollouts and whole.get("batch_size"):
        whole["batch_size"] = nearest_divisor(whole["n_envs"] * whole["n_steps"], whole["batch_size"])
    try:
        return to_dict(build_config(whole, "candidate"))
    except SolverError:
        return None


def _steps_between_evaluations(fields: Mapping[str, Any]) -> float:
    rollout = fields["n_envs"] * fields["n_steps"]
    return rollout * (fields["eval_freq_epochs"] or max(1, fields["max_env_steps"] // rollout // EVALUATIONS))


def _ideas(diagnosis: Diagnosis, fields: Mapping[str, Any]) -> Iterator[Candidate]:
    advice = [entry for entry in recommend(diagnosis) if entry["set"]]
    for entry in advice:
        yield Candidate(label(entry["set"]), entry["set"], entry["cause"], entry["rationale"], entry["expected_impact"])
    if diagnosis.performance.is_short and (back := reset(diagnosis.readings)):
        yield Candidate("settings known to work", back, UNEXPLAINED, "all settings back to those known to work")
    if advice:
        yield from _beside(fields, advice[0]["set"], tuple(advice[0]["set"]))
    if len(advice) > 1:
        together = {name: value for entry in reversed(advice) for name, value in entry["set"].items()}
        yield Candidate("all advice together", together, advice[0]["cause"], "the changes of all recommendations")
    if not diagnosis.performance.is_bad or not advice:  # beside what fails for a known reason there is nothing to find
        yield from _beside(fields, {}, BESIDE_HEALTHY)


def _beside(fields: Mapping[str, Any], change: Mapping[str, Any], names: Sequence[str]) -> Iterator[Candidate]:
    """The same with one number larger, and smaller."""
    for name in names:
        value, factor = change.get(name, fields.get(name)), SCALED.get(name)
        if factor is None or not value:
            continue
        for times in (factor, 1 / factor):
            moved = {**change, name: _scaled(value, times)}
            yield Candidate(label(moved), moved, NEIGHBOUR, f"{name} {times:.2g} times as large")


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, Mapping):
        return {**value, **{end: _scaled(value[end], factor) for end in ("start", "end") if value.get(end)}}
    if isinstance(value, int):
        return max(1, round(value * factor))
    if not isinstance(value, float):
        return value
    return round(value * factor, 1 - math.floor(math.log10(abs(value * factor)))) if value else value


def label(change: Mapping[str, Any]) -> str:
    """A change in a few words."""
    shown = [f"{name}={flag(value)}" for name, value in list(change.items())[:3]]
    return ", ".join(shown) + (f" and {len(change) - 3} more" if len(change) > 3 else "")


def _key(fields: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in fields.items() if name != "seed"}, sort_keys=True)
