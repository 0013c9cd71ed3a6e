"""What an optimisation found: as a document, as a page, and as a variant to train with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gymnasium_solver.plain import duration, plain
from gymnasium_solver.recommend.recommendations import as_command, as_yaml
from gymnasium_solver.statistics import effect_size, interquartile_mean, seeds_needed
from gymnasium_solver.verify.experiments.race import BASELINE, Confirmation
from gymnasium_solver.verify.objective import UNITS, Objective, as_numbers, middle, value

if TYPE_CHECKING:
    from gymnasium_solver.verify.experiments.laboratory import Laboratory
    from gymnasium_solver.verify.experiments.optimize import Optimization


def as_document(experiment: Optimization, laboratory: Laboratory) -> dict[str, Any]:
    aim, diagnosis, winner = experiment.aim, experiment.diagnosis, experiment.winner
    change = _change(experiment, winner) if winner else {}
    return {
        "experiment": laboratory.path.name,
        "kind": "optimize",
        "status": "completed" if winner or not experiment.trouble else "no verdict",
        "source": aim.source,
        "env_id": aim.fields["env_id"],
        "algo_id": aim.fields["algo_id"],
        "config": dict(aim.fields),
        "seeds": aim.rules.looks[0],
        "objective": aim.objective,
        "threshold": diagnosis.readings.threshold,
        "diagnosis": {
            "run": diagnosis.readings.run_id,
            "verdict": diagnosis.performance.verdict,
            "causes": [{"cause": entry.cause.id, "confidence": entry.confidence} for entry in diagnosis.ranked],
        },
        "candidates": [_candidate(experiment, label) for label in experiment.tried],
        "baseline_in_race": _in_race(experiment, BASELINE),
        "tests": [_test(found, aim.objective) for found in experiment.confirmations],
        "winner": winner,
        "verdict": verdict(experiment),
        "set": change,
        "yaml": as_yaml(change, diagnosis.readings) if change else "",
        "cli": as_command(change, diagnosis.readings) if change else "",
        "impact": _impact(experiment) if winner else None,
        "trainings": len(laboratory.trained),
        "from_record": laboratory.from_record,
        "duration_s": laboratory.budget.used_seconds,
        "path": str(laboratory.path),
    }


def _change(experiment: Optimization, label: str) -> dict[str, Any]:
    """Without how often it is evaluated: that is moved along, so that all are measured alike."""
    before, after = experiment.fields[BASELINE], experiment.fields[label]
    return {name: new for name, new in after.items() if before.get(name) != new and name != "eval_freq_epochs"}


def _candidate(experiment: Optimization, label: str) -> dict[str, Any]:
    candidate = experiment.tried[label]
    return {
        "label": label,
        "set": _change(experiment, label),
        "cause": candidate.cause,
        "why": candidate.why,
        "expected_impact": dict(candidate.expected_impact),
        **_in_race(experiment, label),
    }


def _in_race(experiment: Optimization, label: str) -> dict[str, Any]:
    objective = experiment.aim.objective
    seeds = {seed: one for standings in experiment.races for seed, one in standings.scores.get(label, {}).items()}
    dropped = next((s.dropped[label] for s in experiment.races if label in s.dropped), None)
    return {
        "race": {str(seed): plain(value(one, objective)) for seed, one in seeds.items()},
        "dropped_after": None if dropped is None else dropped + 1,
    }


def _test(found: Confirmation, objective: Objective) -> dict[str, Any]:
    return {
        "candidate": found.label,
        "seeds": len(found.candidate),
        "baseline": [plain(value(one, objective)) for one in found.baseline],
        "candidate_values": [plain(value(one, objective)) for one in found.candidate],
        "baseline_returns": [plain(one[1] if objective != "return" else one[0]) for one in found.baseline],
        "candidate_returns": [plain(one[1] if objective != "return" else one[0]) for one in found.candidate],
        "probability_of_improvement": plain(found.probability),
        "interval": plain(found.probability_interval),
        "p_value": found.p_value,
        "alpha": found.alpha,
        "verdict": found.verdict,
        "cap": found.cap,
    }


def _impact(experiment: Optimization) -> dict[str, Any] | None:
    """What was expected of the change, and what it brought: env steps to the threshold."""
    found = next(one for one in experiment.confirmations if one.label == experiment.winner)
    candidate = experiment.tried[found.label]
    expected = candidate.expected_impact
    if experiment.aim.objective != "steps" or not expected:
        return None
    steps = interquartile_mean([value(one, "steps") for one in found.candidate])
    low, high = expected.get("low"), expected.get("high")
    return {
        "cause": candidate.cause,
        "expected": {name: expected.get(name) for name in ("low", "mid", "high")},
        "measured": plain(steps),
        "within": None if low is None else low <= steps and (high is None or steps <= high),
    }


def measured_impacts(experiment: Optimization, name: str) -> list[dict[str, Any]]:
    """What the tested changes brought, in the units that expectations are made in; one record a test of advice."""
    readings = experiment.diagnosis.readings
    if experiment.aim.objective != "steps":
        return []
    return [
        {
            "experiment": name,
            "change": found.label,
            "env_id": readings.env_id,
            "algo_id": readings.algo,
            "cause": experiment.tried[found.label].cause,
            "steps": [plain(value(one, "steps")) for one in found.candidate],
            "expected": dict(experiment.tried[found.label].expected_impact),
            "usual": readings.usual_steps,
            "budget": readings.planned,
        }
        for found in experiment.confirmations
        if experiment.tried[found.label].expected_impact and found.verdict != "too few seeds"
    ]


def verdict(experiment: Optimization) -> str:
    """In one sentence."""
    objective, tests = experiment.aim.objective, experiment.confirmations
    if (label := experiment.winner) is not None:
        return f"{label} is better: {_against(next(one for one in tests if one.label == label), objective)}"
    if experiment.trouble:
        return experiment.trouble[0].upper() + experiment.trouble[1:]
    if not tests:
        return "Nothing better was found: the unchanged configuration won the race"
    nearest = max(tests, key=lambda one: one.probability)
    if nearest.verdict == "worse":
        return f"Nothing better was found; {nearest.label} is worse: {_against(nearest, objective)}"
    needed = _needed(nearest) if nearest.probability > 0.5 else None
    more = f"; if the difference holds, about {needed} seeds per side would show it (power 0.8)" if needed else ""
    return f"Nothing is shown to be better; the closest, {nearest.label}: {_against(nearest, objective)}{more}"


def _against(found: Confirmation, objective: Objective) -> str:
    sides = (found.baseline, found.candidate)
    before, after = (_shown(middle(side, objective), objective, found.cap) for side in sides)
    low, high = found.probability_interval
    return (
        f"{after} against {before} (interquartile means of {len(found.candidate)} fresh seeds per side, probability of "
        f"improvement {found.probability:.2f}, {low:.2f} to {high:.2f}, p {found.p_value:.2g} at {found.alpha:.3g})"
    )


def _needed(found: Confirmation) -> int | None:
    baseline, candidate = as_numbers(found.baseline, found.candidate)
    effect = effect_size(baseline, candidate)
    return seeds_needed(effect, alpha=found.alpha)


def _shown(value: float, objective: Objective, cap: int | None) -> str:
    if objective == "return":
        return f"a return of {value:.4g}"
    if math.isinf(value):
        return f"threshold not reached in {cap:,} env steps" if cap else "threshold not reached"
    return f"threshold after {value:,.0f} {'env steps' if objective == 'steps' else 's'}"


def as_markdown(document: Mapping[str, Any]) -> str:
    unit = UNITS[document["objective"]]
    lines = [f"# {document['source']}: {document['verdict']}", ""]
    causes = ", ".join(f"{c['cause']} ({c['confidence']:.0%})" for c in document["diagnosis"]["causes"][:3])
    lines += [
        f"Diagnosis of `{document['diagnosis']['run']}`: {document['diagnosis']['verdict']}; {causes or 'no cause'}."
    ]
    lines += ["", "## Race", "", f"| configuration | addresses | {unit} per seed | |", "|---|---|---|---|"]
    lines.append(_race_row("unchanged", "", document["baseline_in_race"], document))
    lines += [_race_row(entry["label"], entry["cause"], entry, document) for entry in document["candidates"]]
    for test in document["tests"]:
        lines += ["", f"## Test on fresh seeds: {test['candidate']}", "", f"| seed | unchanged | {test['candidate']} |"]
        lines.append("|---:|---:|---:|")
        pairs = zip(test["baseline"], test["candidate_values"], strict=False)
        lines += [f"| {index + 1} | {_cell(a)} | {_cell(b)} |" for index, (a, b) in enumerate(pairs)]
        lines += ["", f"{test['verdict']}: p {test['p_value']:.2g}, tested at {test['alpha']:.3g}."]
    if document["yaml"]:
        lines += ["", "## The tuned variant", "", "```yaml", document["yaml"].rstrip(), "```", ""]
        lines += ["```sh", document["cli"], "```"]
    if document["impact"] and document["impact"]["within"] is not None:
        impact = document["impact"]
        low, high = impact["expected"]["low"], impact["expected"]["high"]
        lines += ["", f"Expected {_cell(low)} to {_cell(high)} env steps, measured {_cell(impact['measured'])}."]
    took = duration(document["duration_s"])
    lines += ["", f"{document['trainings']} trainings, {document['from_record']} of them reused, {took}."]
    return "\n".join(lines) + "\n"


def _race_row(label: str, cause: str, entry: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    values = ", ".join(_cell(one) for one in entry["race"].values())
    place = "won" if label == document["winner"] else ""
    if entry["dropped_after"] is not None:
        place = f"dropped after round {entry['dropped_after']}"
    return f"| {label} | {cause} | {values} | {place} |"


def tuned_yaml(document: Mapping[str, Any]) -> str:
    """The variant with its evidence, as config/environments/ takes it."""
    evidence = [document["verdict"], f"experiment {document['experiment']}, {document['trainings']} trainings"]
    return "".join(f"# {line}\n" for line in evidence) + document["yaml"]


def _cell(number: float | None) -> str:
    return "not reached" if number is None else f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
