"""A sweep as Optuna keeps it: what is searched for, where it is stored, and the trials that were told to it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium_solver.config.load import parse_overrides
from gymnasium_solver.errors import ConfigError, NotFoundError
from gymnasium_solver.processes import at_work, is_here
from gymnasium_solver.runs.reader import default_runs_dir
from gymnasium_solver.trust import admit, signature
from gymnasium_solver.verify.objective import Objective
from gymnasium_solver.verify.sweeping.space import Parameter, grid_points
from gymnasium_solver.verify.sweeping.storage import (
    make_directory,
    make_pruner,
    make_sampler,
    open_storage,
    reaching,
    require_known,
    require_optuna,
    without_password,
)
from gymnasium_solver.verify.trials import Trained

A_DAY = 86_400.0
SETTINGS, SIGNATURE = "settings", "signature"


@dataclass(frozen=True)
class Aim:
    objective: Objective
    threshold: float | None
    budget: int  # of a training, on its clock

    @property
    def is_minimised(self) -> bool:
        return self.objective != "return"

    def is_reached(self, trained: Trained) -> bool:
        return trained.steps_to_threshold is not None

    def measured(self, trained: Trained) -> float | None:
        """For statistics: infinite where the threshold was not reached, None where nothing is known."""
        if self.objective == "return":
            return trained.final_reward
        reached = trained.steps_to_threshold if self.objective == "steps" else trained.seconds_to_threshold
        return math.inf if reached is None else reached

    def of(self, trained: Trained) -> float | None:
        """For the search: a seed that missed the threshold is worse than any that reached it, by how far it missed."""
        if self.objective == "return" or self.is_reached(trained):
            return self.measured(trained)
        if trained.best_reward is None or self.threshold is None:
            return None
        gap = max(0.0, self.threshold - trained.best_reward)
        share = gap / (gap + abs(self.threshold) + 1)
        return (self.budget if self.objective == "steps" else A_DAY) * (1 + share)


@dataclass(frozen=True)
class Study:
    """An Optuna study with the settings that all its trials share."""

    name: str
    ref: str
    overrides: tuple[str, ...]
    objective: Objective
    threshold: float | None
    seeds: int
    space: tuple[Parameter, ...]
    storage: str
    directory: Path
    optuna: Any

    @classmethod
    def of(cls, optuna: Any, name: str, directory: Path, storage: str = "") -> Study:
        """What was begun by gsolve sweep."""
        known = optuna.user_attrs[SETTINGS]
        space = tuple(Parameter.from_dict(stored) for stored in known["space"])
        named = {key: known[key] for key in ("ref", "objective", "threshold", "seeds")}
        overrides = tuple(known["overrides"])
        return cls(
            name=name, **named, overrides=overrides, space=space, storage=storage, directory=directory, optuna=optuna
        )

    def admit_code(self, *, trust: bool = False) -> bool:
        """Whether the code that it names may be imported: it names none, it is the user's own, or he trusts it."""
        signed = self.optuna.user_attrs.get(SIGNATURE)
        return admit(self.name, *_code(self.ref, self.overrides), signed=signed, trust=trust)

    @property
    def trials(self) -> list[Any]:
        return list(self.optuna.get_trials(deepcopy=False))


def _code(ref: str, overrides: Sequence[str]) -> list[dict[str, Any]]:
    return [{"env_id": ref.rpartition(":")[0]}, dict(parse_overrides(overrides))]


def sweep_directory(name: str, runs_dir: Path | None) -> Path:
    if not name or Path(name).name != name:
        raise ConfigError(f"--name {name!r} is not a valid directory name; leave out slashes")
    return default_runs_dir(runs_dir) / name


def create_study(
    name: str, storage: str | None, runs_dir: Path | None, settings: Mapping[str, Any], sampler: str, pruner: str
) -> Study:
    """A new study, or the one of this name if it searches for the same."""
    optuna, directory = require_optuna(), sweep_directory(name, runs_dir)
    require_known(sampler, pruner)
    if (directory / "config.json").exists():
        raise ConfigError(f"--name {name}: there is a run with this name in {directory.parent}; choose another")
    with reaching(storage or str(directory)):
        study = optuna.create_study(
            study_name=name,
            storage=open_storage(optuna, storage, directory),
            load_if_exists=True,
            direction="maximize" if settings["objective"] == "return" else "minimize",
        )
        known = study.user_attrs.get(SETTINGS)
        if known is None:
            study.set_user_attr(SETTINGS, settings)
            study.set_user_attr(SIGNATURE, signature(name, *_code(settings["ref"], settings["overrides"])))
    asked = json.loads(json.dumps(settings))
    if known and (changed := [key for key, value in asked.items() if known.get(key) != value]):
        raise ConfigError(
            f"sweep {name} was started with different settings ({changed[0]}); use another --name, or continue it "
            f"with: gsolve sweep --resume {name}"
        )
    return _wrapped(study, name, storage, directory, sampler, pruner)


def resume_study(name: str, storage: str | None, runs_dir: Path | None, sampler: str, pruner: str) -> Study:
    require_known(sampler, pruner)
    optuna, directory = require_optuna(), sweep_directory(name, runs_dir)
    if storage is None and not (directory / "study.db").is_file():
        sweeps = sorted(path.parent.name for path in directory.parent.glob("*/study.db"))
        there = f"; there are {', '.join(sweeps[-5:])}" if sweeps else ""
        raise NotFoundError(
            f"no sweep {name!r} in {directory.parent}{there}; for one in a shared storage, add --storage URL"
        )
    with reaching(storage or str(directory)):
        try:
            study = optuna.load_study(study_name=name, storage=open_storage(optuna, storage, directory))
        except KeyError:
            raise NotFoundError(f"no sweep {name!r} in {without_password(storage or str(directory))}") from None
        if SETTINGS not in study.user_attrs:
            raise ConfigError(f"the study {name!r} was not created by gsolve sweep; choose another --name")
    return _wrapped(study, name, storage, directory, sampler, pruner)


def _wrapped(study: Any, name: str, storage: str | None, directory: Path, sampler: str, pruner: str) -> Study:
    make_directory(directory)
    made = Study.of(study, name, directory, "" if storage is None else without_password(storage))
    # Searched by many at once, they must not all draw the same; alone, the same command brings the same trials.
    seed = len(study.get_trials(deepcopy=False)) if storage is None else None
    study.sampler, study.pruner = make_sampler(sampler, seed), make_pruner(pruner, made.seeds)
    if sampler == "grid":
        for point in grid_points(made.space):
            study.enqueue_trial(point, skip_if_exists=True)
    _revive(study)
    return made


def _revive(study: Any) -> None:
    """Trials that a kill or Ctrl-C cut short (nothing else fails) are tried again, once; those of a process that still
    lives are its own."""
    from optuna.trial import TrialState

    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        by = trial.user_attrs.get("owner", {})
        if is_here(by) and at_work(by) is None:
            study.tell(trial.number, state=TrialState.FAIL)
    trials = study.get_trials(deepcopy=False)
    repeated = {trial.user_attrs.get("repeats") for trial in trials}
    for trial in trials:
        if trial.state is TrialState.FAIL and trial.params and trial.number not in repeated:
            study.enqueue_trial(trial.params, user_attrs={"repeats": trial.number})


def finished(trials: Sequence[Any]) -> int:
    """Trials that count towards the number asked for: all but those still waiting and those cut short."""
    return sum(trial.state.name not in ("WAITING", "FAIL") for trial in trials)
