"""A training cut short: what it brings within a budget of steps, in a directory that is thrown away."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING
from gymnasium_solver.errors import DivergedError
from gymnasium_solver.metrics.clocks import ENV_STEPS

EVALUATIONS, EPISODES = 5, 10


@dataclass
class Curve:
    """What a training brought, row by row; NaN where nothing was measured."""

    steps: list[float] = field(default_factory=list)
    trained: list[float] = field(default_factory=list)
    evaluated: list[float] = field(default_factory=list)
    solved: bool = False

    def level(self, at: float) -> float | None:
        """The return after so many steps: of the last evaluations or of training episodes, whichever is better."""
        inside = np.array(self.steps) <= at
        trained, evaluated = (np.array(part)[inside] for part in (self.trained, self.evaluated))
        trained, evaluated = trained[np.isfinite(trained)], evaluated[np.isfinite(evaluated)]
        levels = [float(part[-count:].mean()) for part, count in ((trained, 1), (evaluated, 2)) if part.size]
        return max(levels, default=None)

    @property
    def end(self) -> float:
        return self.steps[-1] if self.steps else 0.0


class _Enough(Exception):
    """The training has shown what it was to show."""


@dataclass(frozen=True)
class Terms:
    """How long each training lasts, and where."""

    seeds: Sequence[int]
    budget: int  # environment steps
    seconds: float
    directory: Path
    until_solved: bool = True


def train_seeds(config: Config, change: Mapping[str, Any], terms: Terms) -> list[Curve]:
    rollout_of = {**to_dict(config), **change}
    epochs = max(1, terms.budget // (rollout_of["n_envs"] * rollout_of["n_steps"]))
    sparing = {
        "eval_freq_epochs": max(1, epochs // EVALUATIONS),
        "eval_episodes": min(config.eval_episodes, EPISODES),
        "checkpoint_freq_epochs": 1_000_000_000,
        "stop_when_solved": terms.until_solved,
    }
    fields = {**rollout_of, **sparing}
    return [_curve(build_config({**fields, "seed": seed}, "probe"), terms) for seed in terms.seeds]


def _curve(config: Config, terms: Terms) -> Curve:
    """The schedules keep the run's own length: what happens up to here is what happened in the run."""
    from gymnasium_solver.train.session import Event, train

    curve, deadline = Curve(), time.perf_counter() + terms.seconds
    path, threshold = terms.directory, config.reward_threshold

    def watch(event: Event) -> None:
        nonlocal path, threshold
        if event.kind == "started":
            path, threshold = Path(event.data["path"]), event.data["threshold"]
        if event.kind != "epoch":
            return
        row = event.data["metrics"]
        curve.steps.append(float(row[ENV_STEPS.column]))
        curve.trained.append(float(row.get(TRAINING, np.nan)))
        curve.evaluated.append(float(row.get(EVALUATION, np.nan)))
        curve.solved = terms.until_solved and threshold is not None and curve.evaluated[-1] >= threshold
        if curve.solved or curve.end >= terms.budget or time.perf_counter() > deadline:
            shutil.rmtree(path, ignore_errors=True)  # nobody reads it, and a report would take longer than the training
            raise _Enough

    try:
        run = train(config, runs_dir=terms.directory, on_event=watch, command=["gsolve", "diagnose", "--probe"])
    except (_Enough, DivergedError):
        return curve
    if run.status["status"] == "interrupted":
        raise KeyboardInterrupt
    return curve
