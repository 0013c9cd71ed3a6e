"""Causes into changes that can be run: validated as a config before they are shown, as YAML and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from gymnasium_solver.config.cards import default_algorithm
from gymnasium_solver.config.load import build_config, load_config, to_dict
from gymnasium_solver.diagnose.causes import EFFICIENCY
from gymnasium_solver.diagnose.engine import BUDGET, Diagnosis, severity
from gymnasium_solver.diagnose.evidence import BY_NAME, Answer
from gymnasium_solver.diagnose.inference import TIE, Ranked
from gymnasium_solver.diagnose.readings import TRAINING, Readings
from gymnasium_solver.errors import SolverError
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.recommend.changes import TUNED, Change, change_for, known_to_work, more_steps, plain, reset
from gymnasium_solver.recommend.impact import expected_impact, not_known

MOST = 3
UNEXPLAINED = "unexplained"
LEAST_CONFIDENCE = 0.1  # a change for a cause less likely than this is not worth a run
# What prevents convergence is critical; frames saved rank the rest, and a failing run has all of them to save.
PRIORITIES = {"critical": "critical", "high": "high", "medium": "medium", "low": "low", "info": "low"}
RISKS = {
    "policy_lr": "if the KL rises above 0.05, the rate is too high: halve it",
    **{clock.budget: "training takes longer" for clock in CLOCKS.values()},
    "normalize_obs": "the policy then needs its statistics; they are in the checkpoint",
    "normalize_reward": "losses are on a different scale from before",
    "frame_stack": "a larger network input",
    "bonus": "the bonus distracts once the task is learnt; let bonus_coef fall to 0",
    "max_episode_steps": "episodes are cut off there; choose as many steps as the task needs",
    "n_envs": "fewer updates for the same steps",
    "env_wrappers": "removes what the wrapper was meant to do",
    "ent_coef": "more exploration than needed slows the end of training",
    "layer_norm": "slightly slower updates",
}


def recommend(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Most urgent first, at most three. A change that is no valid config is not shown; of a run that needs none, only
    what would save time."""
    readings = diagnosis.readings
    solved = diagnosis.performance.verdict == "solved"
    ranked = [entry for entry in diagnosis.ranked if not solved or entry.cause.id in EFFICIENCY]
    made: list[dict[str, Any]] = []
    for index, entry in enumerate(ranked):
        if entry.confidence < LEAST_CONFIDENCE:
            break
        change = change_for(entry.cause.id, readings)
        together = [entry]
        if index == 0:
            for other in ranked[1:]:  # what cannot be told apart yet is answered together
                more = change_for(other.cause.id, readings)
                if other.confidence * TIE >= entry.confidence and more and not more.keys() & change.keys():
                    change |= more
                    together.append(other)
        if index == 0 and change and not _settings_known(readings):
            change = known_to_work(readings) | change
        change = _valid(change, readings)
        if (change or entry.cause.where) and not any(earlier["set"] == change for earlier in made):
            made.append(_recommendation(diagnosis, together, change))
    performance = diagnosis.performance
    nothing = not any(entry["set"] for entry in made)
    if readings.ended_early and (performance.improving or performance.verdict == "close"):
        nothing = False  # it only has to go on
    if nothing and performance.is_bad and (back := _valid(reset(readings), readings)):
        made.append(_reset(back, readings))
    if nothing and performance.verdict == "close" and not made and (more := _valid(more_steps(readings), readings)):
        made.append(_longer(more, diagnosis))
    return made[:MOST]


def _settings_known(readings: Readings) -> bool:
    return any(name in readings.config for name in TUNED)


def _valid(change: Change, readings: Readings) -> Change:
    """The change, or as much of it as makes a valid config together with the run's own."""
    base = dict(readings.config) if _is_whole(readings) else _skeleton(readings)
    if base is None:
        return change
    kept: Change = {}
    for trial in (change, *({name: value} for name, value in change.items())):
        if trial and not (trial.keys() & kept.keys()):
            try:
                build_config({**base, **kept, **trial}, readings.run_id)
            except SolverError:
                continue
            kept |= trial
    return kept


def _is_whole(readings: Readings) -> bool:
    try:
        build_config(dict(readings.config), readings.run_id)
    except SolverError:
        return False
    return bool(readings.config)


def _skeleton(readings: Readings) -> dict[str, Any] | None:
    """A config to try a change on where the run's own is not known."""
    if not readings.algo:
        return None
    return {"env_id": readings.env_id or "unknown", "algo_id": readings.algo}


def _recommendation(diagnosis: Diagnosis, together: Sequence[Ranked], change: Change) -> dict[str, Any]:
    first, readings = together[0], diagnosis.readings
    rationale = _rationale(together, change, readings, diagnosis.answers)
    return _entry(PRIORITIES[severity(diagnosis, first)], first.cause.id, change, rationale, readings)


def _entry(priority: str, cause: str, change: Change, rationale: str, readings: Readings) -> dict[str, Any]:
    budget = change.get(readings.clock.budget)
    return {
        "priority": priority,
        "cause": cause,
        "set": change,
        "yaml": as_yaml(change, readings),
        "cli": as_command(change, readings),
        "rationale": rationale,
        "expected_impact": expected_impact(cause, readings, budget) if change else _no_estimate(readings),
        "risk": _risk(change, readings) if cause != UNEXPLAINED else "undoes settings that may have been deliberate",
    }


def _risk(change: Change, readings: Readings) -> str:
    if not change:
        return "none: look before you change"
    risk = next((RISKS[name] for name in change if name in RISKS), "small: only this setting changes")
    steps = change.get(readings.clock.budget) or readings.planned
    if steps and readings.usual_steps and steps < readings.usual_steps:
        risk += f"; the budget of {steps:,.0f} steps is less than the {readings.usual_steps:,.0f} usually needed"
    return risk


def _reset(change: Change, readings: Readings) -> dict[str, Any]:
    rationale = (
        "no setting explains the failure by itself; these are the ones that differ from a configuration known to "
        "work. If it works with them, the fault is among them; if not, it is in the environment or the code."
    )
    return _entry("high", UNEXPLAINED, change, rationale, readings)


def _longer(change: Change, diagnosis: Diagnosis) -> dict[str, Any]:
    readings, curve = diagnosis.readings, diagnosis.readings.curves.get(TRAINING)
    seen = ["it was nearly at the threshold when its budget ran out, and no setting explains the gap"]
    if diagnosis.performance.improving or (curve is not None and curve.is_rising):
        seen.append("the return was still rising")
    if readings.usual_steps and readings.steps < readings.usual_steps:
        seen.append(f"the shipped config needs {readings.usual_steps:,.0f} steps; this run had {readings.steps:,.0f}")
    return _entry("medium", BUDGET, change, "; ".join(seen), readings)


def _no_estimate(readings: Readings) -> dict[str, Any]:
    return not_known(readings, "no setting to change: the fault is in the environment or the code")


def _rationale(
    together: Sequence[Ranked], change: Change, readings: Readings, answers: Mapping[str, Answer | None]
) -> str:
    reasons = []
    for entry in together:
        seen = [name for name in entry.speaks_for if (answer := answers.get(name)) is not None and answer.holds][:3]
        evidence = ", ".join(f"{BY_NAME[name].text}{_value(answers[name])}" for name in seen)
        reasons.append(f"{entry.cause.title}: {entry.cause.why}" + (f" (evidence: {evidence})" if evidence else ""))
    if together[0].cause.id == "environment-error" and readings.record.get("error"):
        reasons.append("the run's error, in its summary, says where")  # kept apart: it is not our word
    if change and not _settings_known(readings):
        reasons.append("the settings of this run are not known, so a whole configuration known to work is given")
    moves = [f"{name} from {_shown(readings.config.get(name))} to {_shown(value)}" for name, value in change.items()
             if name in readings.config]  # fmt: skip
    if moves:
        reasons.append("; ".join(moves))
    if not change and together[0].cause.where:
        reasons.append(f"look at {together[0].cause.where}")
    return ". ".join(reasons)


def _value(answer: Answer | None) -> str:
    return "" if answer is None or answer.value is None else f", {answer.value:.3g}"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value.get('start')} → {value.get('end')}"
    return "unset" if value is None else f"{value}"


def as_yaml(change: Change, readings: Readings) -> str:
    """The whole variant with the change, as config/environments/<env>.yaml takes it: a file there replaces the shipped
    one, so what the run had otherwise than the defaults stands in it too."""
    if not change:
        return ""
    fields = {**_beyond_defaults(readings), **change}
    lines = [f"env_id: {_flow(readings.env_id)}\n"] if readings.env_id else []
    lines.append(f"{readings.algo or default_algorithm()}:\n")
    for name, value in _short(fields).items():
        was = f"  # was {_shown(readings.config[name])}" if name in change and name in readings.config else ""
        lines.append(f"  {name}: {_flow(value)}{was}\n")
    return "".join(lines)


def _beyond_defaults(readings: Readings) -> Change:
    """The run's fields that differ from the schema's defaults, but for what was found when it began."""
    if readings.card is None or not _is_whole(readings):
        return {}
    found = {"env_id", "algo_id", "seed", "engine", "vectorization"}
    if readings.config.get("reward_threshold") == readings.baseline.get("threshold"):
        found.add("reward_threshold")
    defaults = {name: plain(entry.default) for name, entry in readings.card.config.model_fields.items()}
    return {name: value for name, value in readings.config.items() if name not in found and defaults[name] != value}


def _flow(value: Any) -> str:
    """YAML in one line."""
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()


def as_command(change: Change, readings: Readings) -> str:
    """The command that trains this run's configuration with the change."""
    if not readings.env_id or not readings.algo:
        return ""
    ref = f"{readings.env_id}:{readings.algo}"
    fields = {**_differing(ref, readings), **change}
    settings = [f"--set {shlex.quote(f'{name}={flag(value)}')}" for name, value in fields.items()]
    return " ".join(["gsolve train", shlex.quote(ref), *settings])


def _differing(ref: str, readings: Readings) -> Change:
    """What the run has otherwise than the variant of the same name."""
    if not readings.config:
        return {}
    try:
        usual = to_dict(load_config(ref))
    except (SolverError, ImportError):
        return {
            **_beyond_defaults(readings),
            **({"seed": readings.config["seed"]} if "seed" in readings.config else {}),
        }
    found = {"env_id", "algo_id", "engine", "vectorization"}  # the last two when the run began
    if readings.config.get("reward_threshold") == readings.baseline.get("threshold"):
        found.add("reward_threshold")
    return {
        name: value for name, value in readings.config.items() if name not in found and usual.get(name, value) != value
    }


def _short(change: Change) -> Change:
    """Schedules without what they have anyway."""
    usual = {"schedule": "linear", "warmup": 0.0, "from": 0.0, "to": 1.0}
    return {
        name: {key: part for key, part in value.items() if usual.get(key) != part}
        if isinstance(value, Mapping) and "start" in value
        else value
        for name, value in change.items()
    }


def flag(value: Any) -> str:
    """A value as --set takes it."""
    return _flow(_short({"value": value})["value"])
