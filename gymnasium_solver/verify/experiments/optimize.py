"""From a configuration to a better one, proven: diagnose, race the advice and its neighbours, test the winner.

The baseline takes part in the race. A configuration that fails is diagnosed again after each race, from where the best
candidate got to, until one gets to the threshold. The winner meets the baseline on fresh seeds (race.py has the
statistics); only what is significantly better there takes its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.diagnose.engine import Diagnosis, diagnose
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.errors import ConfigError, SolverError
from gymnasium_solver.metrics.clocks import clock_of
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.impacts import append_impact
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.verify.experiments.candidates import Candidate, candidates, valid
from gymnasium_solver.verify.experiments.laboratory import Laboratory
from gymnasium_solver.verify.experiments.optimize_report import as_document, as_markdown, measured_impacts, tuned_yaml
from gymnasium_solver.verify.experiments.options import Options
from gymnasium_solver.verify.experiments.race import BASELINE, Confirmation, Entry, Rules, Standings, confirm, race
from gymnasium_solver.verify.objective import Objective, Score, require_objective, score
from gymnasium_solver.verify.trials import Training, require_success

GENERATIONS = 3  # times a configuration that fails is diagnosed anew
SLACK = 3.0  # times the winner's steps in the race, after which both sides of the test have had enough
RACE_SEEDS, FRESH_SEEDS = 1000, 2000  # added to the config's seed: what was chosen by is not what is tested on


@dataclass(frozen=True)
class Aim:
    """What is to be improved, and how that is measured."""

    fields: Mapping[str, Any]  # the baseline's whole config
    source: str  # RUN or ENV:VARIANT
    objective: Objective
    rules: Rules

    @property
    def seed(self) -> int:
        return int(self.fields["seed"])


@dataclass
class Optimization:
    """All that was tried and found."""

    aim: Aim
    diagnosis: Diagnosis
    tried: dict[str, Candidate] = field(default_factory=dict)
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)  # whole configs by label
    races: list[Standings] = field(default_factory=list)
    confirmations: list[Confirmation] = field(default_factory=list)
    trouble: str = ""  # why there is no verdict

    @property
    def winner(self) -> str | None:
        return next((found.label for found in self.confirmations if found.verdict == "better"), None)


def optimize(
    fields: Mapping[str, Any],
    source: str,
    options: Options,
    run: Run | None = None,
) -> dict[str, Any]:
    """The experiment's document; its directory has the same, a report, and the tuned variant if there is one."""
    needed, seeds, objective = Rules().seeds_needed, options.seeds, require_objective(options.objective)
    if 2 * seeds < needed:
        raise ConfigError(
            f"seeds: {seeds} per side cannot show anything; {needed} are needed for even a complete separation to be "
            "significant"
        )
    if run is not None and run.status["status"] == "running":
        options.say(f"{run.run_id} is still running: the diagnosis covers what there is so far")
    # Once at the threshold, a score by steps is known; a score by return is not.
    fields = to_dict(build_config({**fields, "stop_when_solved": objective != "return"}, source))
    rules = Rules(looks=(seeds, 2 * seeds))
    what = {"source": source, "config": fields, "seeds": seeds, "objective": objective}
    what["run"] = run.run_id if run is not None else None
    if objective in ("steps", "seconds") and _threshold_of(fields) is None:
        raise ConfigError(
            f"objective: {objective} counts to a threshold, and none is known for {fields['env_id']}; use return, or "
            "set reward_threshold"
        )
    with Laboratory.open("optimize", what, options) as laboratory:
        diagnosed = run or _first_run(fields, source, laboratory)
        diagnosis = diagnose(read(diagnosed))
        chosen = objective or ("steps" if diagnosis.readings.threshold is not None else "return")
        experiment = Optimization(Aim(fields, source, chosen, rules), diagnosis)
        _Conduct(experiment, laboratory).go()
        document = as_document(experiment, laboratory)
        for record in measured_impacts(experiment, laboratory.path.name):
            append_impact(laboratory.path.parent, record)
        files = {"report.md": as_markdown(document)}
        if experiment.winner is not None:
            files["tuned.yaml"] = tuned_yaml(document)
        laboratory.conclude(document, files)
    return document


def _first_run(fields: Mapping[str, Any], source: str, laboratory: Laboratory) -> Run:
    laboratory.say(f"{source} unchanged, to be diagnosed")
    (trained,) = laboratory.measure([Training(BASELINE, fields)])
    if trained is None:
        raise SolverError(
            f"the budget ended before {source} was trained once; a verdict takes {Rules().seeds_needed} seeds per side"
            f", so at least {2 * Rules().seeds_needed + 2} such trainings"
        )
    if trained.status == "failed":
        raise SolverError(f"{source} cannot be trained: {trained.error}")
    return Run(Path(trained.path))


class _Conduct:
    """An optimisation while it runs."""

    def __init__(self, experiment: Optimization, laboratory: Laboratory) -> None:
        self.experiment, self.laboratory, self.say = experiment, laboratory, laboratory.say
        self.paths: dict[Entry, str] = {}
        experiment.fields[BASELINE] = valid(experiment.aim.fields, {}) or dict(experiment.aim.fields)

    def go(self) -> None:
        experiment = self.experiment
        ranking = self._search()
        contenders = [label for label in ranking if label != BASELINE]
        if not contenders:
            experiment.trouble = "there is nothing to try: no change of settings is recommended"
            if experiment.tried:
                experiment.trouble = self._too_few(0)
            return
        if ranking[0] == BASELINE and all(race.is_complete for race in experiment.races):
            self.say("the unchanged configuration won the race: nothing to test")
            return
        contenders = contenders[: experiment.aim.rules.attempts]
        for label in contenders:
            found = self._confirm(label, contenders)
            cut_short = found.verdict == "too few seeds"
            if cut_short and experiment.confirmations:  # the budget ended, but there is a verdict on the first
                return
            experiment.confirmations.append(found)
            if cut_short:
                experiment.trouble = self._too_few(min(len(found.baseline), len(found.candidate)))
            if cut_short or found.verdict == "better":
                return

    def _search(self) -> list[str]:
        """Race after race; the labels of all, best first."""
        experiment, diagnosis, parent = self.experiment, self.experiment.diagnosis, BASELINE
        best: list[str] = []
        for generation in range(GENERATIONS):
            ideas = self._ideas(diagnosis, parent)
            if not ideas:
                break
            entrants = [*(best[:1] or [BASELINE]), *ideas]
            seeds = [experiment.aim.seed + RACE_SEEDS + 10 * generation + i for i in range(3 if generation == 0 else 2)]
            self.say(f"race {generation + 1}: {len(entrants)} configurations, the worse half is dropped each round")
            standings = race(entrants, partial(self._measure, is_race=experiment.aim.objective == "steps"), seeds)
            require_success(self.laboratory.trained, experiment.aim.source)
            experiment.races.append(standings)
            ranking = standings.ranking()
            best = [*ranking, *(label for label in best if label not in ranking)]
            if not ranking or not standings.is_complete or self._has_arrived(standings, ranking[0]):
                break
            parent = ranking[0]
            run = self._run_of(parent, standings)
            if run is None:
                break
            diagnosis = diagnose(read(run))
        return best

    def _ideas(self, diagnosis: Diagnosis, parent: str) -> list[str]:
        labels = []
        for candidate in candidates(diagnosis, self.experiment.fields[parent]):
            whole = valid(self.experiment.fields[parent], candidate.change)
            if whole is None or whole in self.experiment.fields.values():
                continue
            label = candidate.label if parent == BASELINE else f"{parent}; {candidate.label}"
            self.experiment.tried[label] = candidate
            self.experiment.fields[label] = whole
            labels.append(label)
        return labels

    def _has_arrived(self, standings: Standings, label: str) -> bool:
        """Whether the first of the race needs no further change: at the threshold with every seed."""
        if self.experiment.aim.objective == "return":
            return True
        return all(math.isfinite(one[0]) for one in standings.of(label))

    def _run_of(self, label: str, standings: Standings) -> Run | None:
        """The worst of its runs has the most to tell."""
        seeds = sorted(standings.scores[label], key=lambda seed: standings.scores[label][seed])
        path = next((self.paths[label, seed] for seed in seeds if self.paths.get((label, seed))), None)
        return Run(Path(path)) if path else None

    def _confirm(self, label: str, contenders: Sequence[str]) -> Confirmation:
        aim, cap = self.experiment.aim, self._cap(contenders)
        seeds = [aim.seed + FRESH_SEEDS + i for i in range(aim.rules.looks[-1])]
        self.say(f"test on fresh seeds: {label} against the unchanged configuration")
        found = confirm(label, partial(self._measure, cap=cap), seeds, aim.rules)
        self.say(f"  {found.verdict} (p {found.p_value:.3g}, {len(found.candidate)} seeds per side)")
        fields = self.experiment.fields[BASELINE]
        longest = int(fields[clock_of(fields).budget])
        return replace(found, cap=longest if cap is None else min(cap, longest))

    def _cap(self, contenders: Sequence[str]) -> int | None:
        """From the race alone, so that it is settled before the tests begin; the same for all sides of them."""
        if self.experiment.aim.objective != "steps":
            return None
        races = self.experiment.races
        scores = [one for label in contenders for standings in races for one in standings.of(label)]
        slowest = max((math.exp(-one[0]) for one in scores), default=math.inf)
        return int(SLACK * slowest) if math.isfinite(slowest) else None

    def _too_few(self, have: int) -> str:
        rules = self.experiment.aim.rules
        more = f"continue with --resume {self.laboratory.path.name} and a larger --budget or --max-runs"
        if rules.looks[-1] < rules.seeds_needed:
            more = f"use --seeds {rules.seeds_needed}"
        needed = max(rules.looks[0], rules.seeds_needed)
        return f"no verdict: {have} fresh seeds per side, but {needed} are needed; {more}"

    def _measure(
        self, entries: Sequence[Entry], *, cap: int | None = None, is_race: bool = False
    ) -> Mapping[Entry, Score | None]:
        trainings = [
            Training(label, {**self.experiment.fields[label], "seed": seed}, cap=cap) for label, seed in entries
        ]
        results = self.laboratory.measure(trainings, is_race=is_race)
        scores: dict[Entry, Score | None] = dict.fromkeys(entries)
        for entry, trained in zip(entries, results, strict=True):
            if trained is not None:
                self.paths[entry] = trained.path
                scores[entry] = score(trained, self.experiment.aim.objective)
        return scores


def _threshold_of(fields: Mapping[str, Any]) -> float | None:
    """As the trainings will have it."""
    from gymnasium_solver.envs import describe

    return describe(build_config(fields, "optimize")).reward_threshold


def config_of(run: Run) -> dict[str, Any]:
    """The whole config of a run, as it can be trained again."""
    fields = json.loads(json.dumps(run.config))
    if not fields or layout.read_json(run.path / layout.SOURCE):
        raise ConfigError(f"{run.run_id} has no configuration that can be trained again; name one as ENV:VARIANT")
    return to_dict(build_config(fields, run.run_id))
