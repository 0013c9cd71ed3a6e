"""What the calibration runs teach the diagnosis: how often each cause shows each piece of evidence, how much scores
have to be tempered, and how many steps a fixed run needs. Writes gymnasium_solver/diagnose/calibration.json.

Only cases and seeds of the calibration split are read. The temperature is fitted on cases left out of the counts one
by one, so that it is not fitted to what was counted.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from faults.admission import admitted
from faults.cases import SEEDS, Case, all_cases
from faults.diagnosis import diagnose, view
from faults.experiments import advice_tasks
from faults.training import Task, read_records, train_all
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.evidence import Answer, answers
from gymnasium_solver.diagnose.inference import CALIBRATION, calibration, rank
from gymnasium_solver.diagnose.performance import Performance, judge
from gymnasium_solver.diagnose.readings import baselines, read
from gymnasium_solver.runs.reader import Run

TEMPERATURES = (0.8, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)  # no sharper: unseen faults are harder than these
WIDENINGS = tuple(1.05**step for step in range(40))
COVERAGE = 0.8
FEW = 9  # reruns of one cause below which those of all causes are used

Ratios = Mapping[str, Mapping[str, list[float]]]
Seen = tuple[Case, Mapping[str, Answer | None], Performance, str | None]


def calibrate(work: Path, jobs: int) -> None:
    """Counts and temperature first; what the diagnosis then advises is trained, and gives the impact."""
    runs = list(_failing_runs(work))
    fit = {t: _likelihood(runs, t) for t in TEMPERATURES}
    document = {
        "source": "python benchmarks/faults/run.py calibrate",
        "runs": len(runs),
        "cases": len({case.name for case, *_ in runs}),
        "temperature": max(fit, key=lambda t: fit[t]),
        **_counts(runs),
        "impact": _impact(work),
    }
    _write(document)
    train_all(_advised(work), work, jobs)
    document["impact"] = _impact(work)
    _write(document)


def _write(document: Mapping[str, Any]) -> None:
    CALIBRATION.write_text(_compact(document), encoding="utf-8")
    calibration.cache_clear()


def _advised(work: Path) -> list[Task]:
    """The first recommendation of each biting calibration case, on fresh seeds."""
    records, bite, tasks = read_records(work), admitted(), []
    for case in all_cases().values():
        if case.split == "calibration" and bite.get(case.name):
            paths = [work / records[case.name, "", seed]["path"] for seed in SEEDS["calibration"]]
            documents = [diagnose(path, "metrics" if case.hidden_config else "all") for path in paths]
            tasks += [task for task in advice_tasks(case, documents) if task is not None]
    return tasks


def _failing_runs(work: Path) -> Iterable[Seen]:
    cases = all_cases()
    for (name, label, seed), record in read_records(work).items():
        case = cases.get(name)
        if case is None or label or seed not in SEEDS["calibration"] or case.split == "test" or case.cause is None:
            continue
        if record["score"] >= 0.8:
            continue
        information = "metrics" if case.hidden_config else "all"
        with view(work / record["path"], information, 1.0) as path:
            readings = read(Run(path))
            performance = judge(readings)
            yield case, answers(readings, performance), performance, readings.algo


def _counts(runs: list[Seen]) -> dict[str, Any]:
    """Yes and all answers, each case counting as one run however many seeds it has."""
    seeds: dict[str, int] = defaultdict(int)
    for case, *_ in runs:
        seeds[case.name] += 1
    causes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    failing: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for case, found, _, _ in runs:
        assert case.cause is not None
        for name, answer in found.items():
            if answer is None:
                continue
            weight = 1 / seeds[case.name]
            for tally in (failing[name], causes[case.cause][name]):
                tally[0] += weight * bool(answer.holds)
                tally[1] += weight
    known = {
        cause: {name: _rounded(tally) for name, tally in tallies.items() if name in BY_ID[cause].evidence}
        for cause, tallies in sorted(causes.items())
        if cause in BY_ID
    }
    return {"failing": {name: _rounded(tally) for name, tally in sorted(failing.items())}, "causes": known}


def _rounded(tally: list[float]) -> list[float]:
    return [round(value, 2) for value in tally]


def _likelihood(runs: list[Seen], temperature: float) -> float:
    """Mean log confidence in the true cause, of cases that were not counted."""
    total = 0.0
    names = sorted({case.name for case, *_ in runs})
    for name in names:
        counts = {**_counts([run for run in runs if run[0].name != name]), "temperature": temperature}
        left_out = [run for run in runs if run[0].name == name]
        for case, found, performance, algorithm in left_out:
            ranked = rank(found, performance, algorithm, counts)
            confidence = sum(entry.confidence for entry in ranked if entry.cause.id in case.causes)
            total += np.log(max(confidence, 0.02)) / len(left_out)
    return total / len(names)


def _impact(work: Path) -> dict[str, Any]:
    """Steps to the threshold of runs with the advised change, in units of what the shipped configuration needs (where
    the same threshold is aimed at), and in units of the budget."""
    return {unit: _impact_in(unit, work) for unit in ("usual", "budget")}


def _impact_in(unit: str, work: Path) -> dict[str, Any]:
    """Intervals are widened until, each case left out in turn, they hold 80 % of what was measured."""
    cases = all_cases()
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))  # cause → case → ratios
    for (name, label, seed), record in read_records(work).items():
        case = cases.get(name)
        if case is None or case.split == "test" or not label.startswith("advice") or not record.get("cause"):
            continue
        config = case.config(seed, record["changes"])
        known = baselines().get(config.env_id, {})
        scale: float | None = case.config(seed).max_env_steps
        if unit == "usual":
            same = config.reward_threshold in (None, known.get("threshold"))
            scale = known.get("steps_to_threshold", {}).get(config.algo_id) if same else None
        if scale:
            ratios[record["cause"]][name].append(record["steps"] / scale if record["solved"] else np.inf)
    names = {name for by_case in ratios.values() for name in by_case}
    widen = next((w for w in WIDENINGS if _held(ratios, names, w) >= COVERAGE), WIDENINGS[-1])
    return {"widened": round(widen, 2), **_intervals(ratios, None, widen)}


def _intervals(ratios: Ratios, left_out: str | None, widen: float) -> dict[str, Any]:
    kept = {
        cause: [ratio for name, values in by_case.items() if name != left_out for ratio in values]
        for cause, by_case in sorted(ratios.items())
    }
    everything = [ratio for values in kept.values() for ratio in values]
    return {
        "all": _interval(everything, widen) if everything else None,
        "causes": {cause: _interval(values, widen) for cause, values in kept.items() if len(values) >= FEW},
    }


def _held(ratios: Ratios, names: set[str], widen: float) -> float:
    """Share of cases' runs within intervals made without the case."""
    held = []
    for name in names:
        made = _intervals(ratios, name, widen)
        for cause, by_case in ratios.items():
            low, _, high = (made["causes"].get(cause) or made["all"])["quantiles"]
            inside = [(low or 0.0) <= ratio <= (np.inf if high is None else high) for ratio in by_case.get(name, [])]
            held += [float(np.mean(inside))] if inside else []
    return float(np.mean(held)) if held else 1.0


def _interval(values: list[float], widen: float) -> dict[str, Any]:
    """The middle 80 % with the median; where a tenth or more never got there, all but the lowest 20 %."""
    low, mid, high = np.quantile(values, (0.1, 0.5, 0.9), method="inverted_cdf")
    if np.isinf(high):
        low = np.quantile(values, 0.2, method="inverted_cdf")
    shown = [round(float(x), 2) if np.isfinite(x) else None for x in (low / widen, mid, high * widen)]
    return {"runs": len(values), "quantiles": shown}


def _compact(document: Mapping[str, Any]) -> str:
    """One line per cause: small, and a change shows as such."""
    lines = []
    for key, value in document.items():
        if key in ("causes", "failing") and isinstance(value, Mapping):
            inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
