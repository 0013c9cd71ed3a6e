"""Does this change help? The configuration with and without it, over the same fresh seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import build_config, to_dict, with_overrides
from gymnasium_solver.errors import ConfigError, SolverError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.statistics import FEWEST
from gymnasium_solver.verify.comparison.document import compare_runs
from gymnasium_solver.verify.experiments.laboratory import Laboratory
from gymnasium_solver.verify.experiments.optimize import FRESH_SEEDS
from gymnasium_solver.verify.experiments.options import Options
from gymnasium_solver.verify.experiments.race import BASELINE
from gymnasium_solver.verify.trials import Trained, Training, require_success

CHANGED = "change"


def with_change(before: Mapping[str, Any], change: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The whole configuration with the change; refused if it is no valid one, or none at all."""
    after = to_dict(build_config(with_overrides(before, change), source))
    if {**before, "seed": 0} == {**after, "seed": 0}:  # seeds are fresh on both sides
        raise ConfigError(f"nothing to test: {source} already has these values; gsolve diagnose suggests others")
    return after


def measure_change(
    before: Mapping[str, Any],
    change: Mapping[str, Any],
    source: str,
    options: Options,
) -> dict[str, Any]:
    """The experiment's document, with the comparison and its verdict."""
    seeds = options.seeds
    if seeds < FEWEST:
        raise ConfigError(f"seeds: {seeds} per side cannot show anything; use at least {FEWEST}, preferably 5")
    after = with_change(before, change, source)
    changed = {name: value for name, value in after.items() if before.get(name) != value and name != "seed"}
    asked = {"source": source, "config": dict(before), "set": changed, "seeds": seeds}
    with Laboratory.open("verify", asked, options) as laboratory:
        fresh = range(int(before["seed"]) + FRESH_SEEDS, int(before["seed"]) + FRESH_SEEDS + seeds)
        trainings = [
            Training(label, {**fields, "seed": seed})
            for seed in fresh
            for label, fields in ((BASELINE, before), (CHANGED, after))
        ]
        trained = [one for one in laboratory.measure(trainings) if one is not None]
        if not trained:
            raise SolverError("the budget ended before any training did; raise it, or lower max_env_steps")
        require_success(trained, source)
        document = _document(laboratory, asked, trained, len(trainings))
        laboratory.conclude(plain(document), {"report.md": f"# {document['verdict']}\n"})
    return document


def _document(laboratory: Laboratory, asked: Mapping[str, Any], trained: list[Trained], planned: int) -> dict[str, Any]:
    runs = [Run(Path(one.path)) for label in (BASELINE, CHANGED) for one in trained if one.label == label and one.path]
    comparison = compare_runs(runs)
    is_whole = len(trained) == planned
    verdict = comparison["verdict"]["text"]
    if not is_whole:  # what the clock cut short is no test: the faster side would have more seeds
        verdict = (
            f"No verdict: {len(trained)} of {planned} trainings ended within the budget; continue with "
            f"--resume {laboratory.path.name}"
        )
    return {
        "experiment": laboratory.path.name,
        "kind": "verify",
        "status": "completed" if is_whole else "no verdict",
        "source": asked["source"],
        "set": asked["set"],
        "trainings": {label: sum(one.label == label for one in trained) for label in (BASELINE, CHANGED)},
        "verdict": verdict,
        "comparison": comparison,
        "duration_s": laboratory.budget.used_seconds,
        "path": str(laboratory.path),
    }
