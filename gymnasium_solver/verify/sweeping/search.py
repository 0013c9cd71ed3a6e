"""The search of a sweep: this process asks Optuna, drives the workers and tells Optuna what they brought.

A trial is one config over the sweep's seeds, trained one after another: a config that looks bad on the first seed is
pruned before the others are spent on it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import ConfigError, SolverError
from gymnasium_solver.metrics.clocks import clock_of
from gymnasium_solver.plain import duration
from gymnasium_solver.processes import record_of
from gymnasium_solver.runs.reader import default_runs_dir
from gymnasium_solver.verify.objective import UNITS
from gymnasium_solver.verify.sweeping import report, studies
from gymnasium_solver.verify.sweeping.confirmation import confirm
from gymnasium_solver.verify.sweeping.space import applied, grid_points, repaired
from gymnasium_solver.verify.sweeping.storage import POINTS
from gymnasium_solver.verify.sweeping.studies import Aim, Study
from gymnasium_solver.verify.trials import Notice, Trained, Training, Workers

TRIALS = 30
SHOW_SECONDS = 0.5
HOPELESS = 3  # trials that could not be trained, before any that could


@dataclass(frozen=True)
class Plan:
    """What the command line asks for; `ref` is None to continue the sweep called `name`."""

    ref: str | None
    overrides: tuple[str, ...] = ()
    space: Path | None = None
    trials: int | None = None
    budget: float | None = None  # seconds of the search; checking the winner comes on top
    seeds: int = 3
    sampler: str = "tpe"
    pruner: str = "median"
    objective: str | None = None
    storage: str | None = None
    name: str | None = None
    jobs: int | None = None
    confirm_seeds: int = 5
    runs_dir: Path | None = None
    trust: bool = False  # code that a sweep which is continued names


@dataclass
class Going:
    """A trial at work."""

    trial: Any
    fields: dict[str, Any]
    training: Training
    results: list[Trained] = field(default_factory=list)
    best: dict[int, float] = field(default_factory=dict)  # reward of each seed, counted from 0
    reported: int = 0
    share: float = 0.0  # of the budget of all its seeds
    is_pruned: bool = False


@dataclass(frozen=True)
class State:
    """What there is to show while it works; `line` is news, the rest how things stand."""

    line: str = ""
    done: int = 0
    of: int | None = None
    best: str = ""
    going: tuple[str, ...] = ()


Watch = Callable[[State], None]


class Search:
    def __init__(self, plan: Plan, study: Study, base: Config, watch: Watch) -> None:
        self._plan, self._study, self._watch = plan, study, watch
        self._trials = plan.trials
        if plan.sampler == "grid":
            points = len(grid_points(study.space))
            self._trials = min(points, plan.trials or points)
        elif plan.trials is None and plan.budget is None:
            self._trials = TRIALS
        self._ends = math.inf if plan.budget is None else time.monotonic() + plan.budget
        self.aim = Aim(study.objective, study.threshold, base.budget)
        # Steps to the threshold are known once it is reached; a return is that of the whole budget.
        self._base = to_dict(base) | {"stop_when_solved": self.aim.is_minimised}
        self._going: dict[str, Going] = {}
        self._failures, self._shown = 0, 0.0

    def open(self) -> None:
        fields = ", ".join(parameter.name for parameter in self._study.space)
        known = studies.finished(self._study.trials)
        goal = f"{self._trials} trials" if self._trials is not None else f"trials for {duration(self._plan.budget)}"
        before = f", {known} of them done before" if known else ""
        aim = UNITS[self.aim.objective]
        self._say(f"sweep {self._study.name}: {self._study.ref}, {goal}{before}, over {fields}; aim: {aim}")

    def run(self) -> None:
        if not self._study.trials:
            self._try_base_first()
        directory = default_runs_dir(self._plan.runs_dir)
        with Workers(self._plan.jobs, runs_dir=directory, group=self._study.name) as workers:
            try:
                self._fill(workers)
                for notice in workers.notices():
                    self._hear(notice, workers)
                    self._fill(workers)
                    if time.monotonic() > self._ends:
                        for going in self._going.values():
                            workers.stop(going.training)
                    self._show()
            finally:
                for going in self._going.values():  # only where something cut this short
                    self._tell(going, "FAIL")

    def _try_base_first(self) -> None:
        """The config as it is has a place in the search, if the space has one for it."""
        known = {parameter.name: _at(self._base, parameter.name) for parameter in self._study.space}
        if self._plan.sampler != "grid" and all(p.contains(known[p.name]) for p in self._study.space):
            self._study.optuna.enqueue_trial({p.name: p.stored(known[p.name]) for p in self._study.space})

    def _fill(self, workers: Workers) -> None:
        while workers.free and time.monotonic() < self._ends:
            if self._trials is not None and studies.finished(self._study.trials) >= self._trials:
                return
            self._start(workers)

    def _start(self, workers: Workers) -> None:
        study = self._study
        trial = study.optuna.ask({parameter.name: parameter.distribution() for parameter in study.space})
        trial.set_user_attr("owner", record_of())
        values = {parameter.name: parameter.value(trial.params[parameter.name]) for parameter in study.space}
        fields = repaired(applied(self._base, study.space, values))
        changed = {name: value for name, value in fields.items() if value != self._base.get(name)}
        trial.set_user_attr("set", changed)
        label = f"trial {trial.number}"
        try:
            fields = to_dict(build_config(fields, label))
        except ConfigError as error:
            trial.set_user_attr("outcome", "invalid")
            trial.set_user_attr("error", str(error))
            study.optuna.tell(trial, state=_state("PRUNED"))
            self._say(f"{label}: cannot be used, {error}")
            return
        going = Going(trial, fields, Training(label, fields))
        self._going[label] = going
        workers.submit(going.training)

    def _hear(self, notice: Notice, workers: Workers) -> None:
        going = self._going[notice.training.label]
        share = min(notice.data.get("steps", 0) / going.fields[clock_of(going.fields).budget], 1.0)
        if notice.kind == "epoch":
            going.share = (len(going.results) + share) / self._study.seeds
        elif notice.kind == "evaluated" and not going.is_pruned:
            if self._report(going, math.ceil(share * POINTS), notice.data["reward"]) and going.trial.should_prune():
                going.is_pruned = True
                workers.stop(notice.training)
        elif notice.trained is not None:
            self._conclude_seed(going, notice.trained, workers)

    def _report(self, going: Going, point: int, reward: float) -> bool:
        """The best reward so far, over the seeds, at a point of the budget; whether that point is new."""
        seed = len(going.results)
        going.best[seed] = max(reward, going.best.get(seed, reward))
        score = statistics.fmean(going.best.values()) * (-1 if self.aim.is_minimised else 1)
        before, going.reported = going.reported, max(going.reported, seed * POINTS + point)
        for step in range(before + 1, going.reported + 1):
            going.trial.report(score, step)
        return going.reported > before

    def _conclude_seed(self, going: Going, trained: Trained, workers: Workers) -> None:
        if going.is_pruned:
            going.results.append(trained)
            self._conclude(going, "pruned")
        elif trained.status == "interrupted":  # out of time
            self._tell(self._going.pop(going.training.label), "FAIL")
        elif trained.status == "failed" or (value := self.aim.of(trained)) is None or not math.isfinite(value):
            going.results.append(trained)
            self._conclude(going, "failed", trained.error or "no episode finished")
            self._failures += 1
            if self._failures >= HOPELESS and not any(t.state.name == "COMPLETE" for t in self._study.trials):
                raise SolverError(f"sweep {self._study.name}: no trial could be trained: {trained.error}")
        else:
            if trained.best_reward is not None:  # a seed that is done early stands at every later point as it ended
                self._report(going, POINTS, trained.best_reward)
            going.results.append(trained)
            if len(going.results) == self._study.seeds:
                self._conclude(going, "complete")
                return
            seed = self._base["seed"] + len(going.results)
            going.training = Training(going.training.label, going.fields | {"seed": seed})
            workers.submit(going.training)

    def _conclude(self, going: Going, outcome: str, error: str = "") -> None:
        del self._going[going.training.label]
        trial, results = going.trial, going.results
        trial.set_user_attr("outcome", outcome)
        trial.set_user_attr("solved", sum(self.aim.is_reached(result) for result in results))
        trial.set_user_attr("seconds", sum(result.seconds for result in results))
        if error:
            trial.set_user_attr("error", error)
        values = [value for result in results if (value := self.aim.of(result)) is not None]
        self._tell(going, "COMPLETE" if outcome == "complete" else "PRUNED", values)
        self._say(report.trial_line(self._study, trial.number))

    def _tell(self, going: Going, state: str, values: Sequence[float] = ()) -> None:
        going.trial.set_user_attr("runs", [result.run_id for result in going.results if result.path])
        complete = state == "COMPLETE"
        self._study.optuna.tell(going.trial, statistics.fmean(values) if complete else None, _state(state))

    def check_winner(self) -> dict[str, Any] | None:
        best, count = report.best_trial(self._study), self._plan.confirm_seeds
        if best is None or not best.user_attrs["set"] or count == 0:
            return None
        with Workers(self._plan.jobs, runs_dir=self._plan.runs_dir, group=self._study.name) as workers:
            return confirm(self._study, self.aim, workers, self._base, best, count, self._say)

    def _say(self, line: str) -> None:
        self._watch(self._now(line))

    def _show(self) -> None:
        if time.monotonic() >= self._shown + SHOW_SECONDS:
            self._shown = time.monotonic()
            self._watch(self._now())

    def _now(self, line: str = "") -> State:
        going = tuple(
            f"{label} {trial.share:.0%}" + (f", reward {list(trial.best.values())[-1]:.4g}" if trial.best else "")
            for label, trial in self._going.items()
        )
        done = studies.finished(self._study.trials) - len(going)
        return State(line, done, self._trials, report.best_line(self._study), going)


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _at(fields: dict[str, Any], name: str) -> Any:
    """The value of a possibly dotted field."""
    head, _, rest = name.partition(".")
    inner = fields.get(head)
    return (_at(inner, rest) if isinstance(inner, dict) else None) if rest else inner
