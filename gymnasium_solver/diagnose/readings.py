"""All that a diagnosis looks at, read once from a run: curves, configuration, spaces, log, checkpoint, what is known of
the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import Card, Look, all_cards, find_card
from gymnasium_solver.config.cards.card import Range
from gymnasium_solver.config.load import build_config, shipped_fields, to_dict
from gymnasium_solver.config.schedules import largest
from gymnasium_solver.diagnose.history import PastRun, runs_beside
from gymnasium_solver.diagnose.series import Series
from gymnasium_solver.errors import SolverError
from gymnasium_solver.metrics.clocks import ENV_STEPS, Clock, clock_of
from gymnasium_solver.runs.impacts import read_impacts
from gymnasium_solver.runs.noise_scale_file import read_noise_scale
from gymnasium_solver.runs.reader import Run

BASELINES = Path(__file__).parent / "baselines.json"
EVALUATION, TRAINING = "val/roll/ep_rew_mean", "train/roll/ep_rew_mean"
LEAST_POINTS = 6  # of a learning curve
CUT_SHORT = ("interrupted", "failed", "crashed")
AS_IT_IS: Mapping[str, Any] = {"frame_skip": 1, "env_wrappers": []}  # what leaves an environment's rewards alone
_REWARDS = ("random_return", "reward_range")  # of a baseline
UNDEFINED_AT_TIMES = ("train/metrics/explained_variance",)  # where returns do not vary
LOG_ENTRY = re.compile(r"\S+ (WARNING|ERROR|CRITICAL) (.*)")


@dataclass
class Readings:
    """`config` is empty where it is unknown or hidden; then what follows from it is unknown too."""

    run_id: str
    status: str
    config: Mapping[str, Any]
    curves: Mapping[str, Series]
    spaces: Mapping[str, Any] = field(default_factory=dict)
    non_finite: Mapping[str, float] = field(default_factory=dict)  # metric → step of its first NaN or infinity
    log: list[tuple[str, str]] = field(default_factory=list)  # (level, message)
    audit: list[Mapping[str, Any]] | None = None  # findings in the last checkpoint; None: it was not looked at
    record: Mapping[str, Any] = field(default_factory=dict)  # status.json
    missing: list[str] = field(default_factory=list)
    noise_scale: Mapping[str, Any] = field(default_factory=dict)  # of its gradients, where that was measured
    impacts: Sequence[Mapping[str, Any]] = ()  # what experiments beside this run measured changes to bring
    beside: Sequence[PastRun] = ()  # other runs of the same task whose outcome is known, newest first

    @property
    def env_id(self) -> str | None:
        return _text(self.config.get("env_id")) or _text(self.record.get("env_id"))

    @property
    def algo(self) -> str | None:
        named = _text(self.config.get("algo_id")) or _text(self.record.get("algo_id"))
        return named or self._guessed_algorithm

    @cached_property
    def _guessed_algorithm(self) -> str | None:
        """By the metrics that only some algorithms have."""
        for card in all_cards():
            if any(self.curves.keys() >= set(metrics) for metrics in card.signature):
                return card.algo_id
        return None

    @cached_property
    def clock(self) -> Clock:
        return clock_of(self.config or self.record)

    @property
    def card(self) -> Card | None:
        return find_card(self.algo)

    def has(self, trait: str) -> bool:
        """Whether the run's algorithm is of this family, or has this config field; not, where it is unknown."""
        return self.card is not None and trait in self.card.traits

    @property
    def steps(self) -> float:
        """On the run's clock, as all steps here."""
        steps = self.curves.get(self.clock.column)
        return steps.high if steps else 0.0

    @property
    def planned(self) -> float | None:
        return self.clock.budget_of(self.config, self.record)

    @property
    def planned_env_steps(self) -> float | None:
        """What settings in env steps are a share of."""
        return self.planned if self.clock is ENV_STEPS else None

    @property
    def ended_early(self) -> bool:
        """Whether something from outside ended it within its budget; what a finding or an experiment stopped, it
        stopped with reason."""
        if self.status not in CUT_SHORT or self.record.get("stopped_by"):
            return False
        return self.planned is not None and self.steps < self.planned

    @property
    def threshold(self) -> float | None:
        found = self.record.get("threshold", self.config.get("reward_threshold"))
        return float(found) if isinstance(found, int | float) else self.baseline.get("threshold")

    @cached_property
    def baseline(self) -> Mapping[str, Any]:
        """What is known of the environment: return of random actions, steps that shipped configs needed.

        Rewards only where they were measured with the frame skip and the wrappers of this run.
        """
        entry = baselines().get(self.env_id or "", {})
        settings = {name: self.config.get(name) or plain for name, plain in AS_IT_IS.items()}
        known = {name: value for name, value in entry.items() if name != "rewards_with"}
        if settings == AS_IT_IS:
            return known
        others = (other for other in entry.get("rewards_with", ()) if settings.items() <= other.items())
        return {name: known[name] for name in known if name not in _REWARDS} | next(others, {})

    @property
    def usual_steps(self) -> float | None:
        """Env steps to the threshold of the shipped configuration; None where another threshold is aimed at."""
        if self.clock is not ENV_STEPS or self.threshold != self.baseline.get("threshold"):
            return None
        return self.baseline.get("steps_to_threshold", {}).get(self.algo or "")

    @cached_property
    def reference(self) -> Mapping[str, Any]:
        """A configuration known to work: what has solved this task, or else the defaults; never the user's own file,
        which may be where the fault is."""
        if self.card is None:
            return {}
        fields = self.precedent
        if not fields:
            continuous = (self.spaces.get("action") or {}).get("kind") == "box" or self.card.actions == ("box",)
            limit = self.spaces.get("max_episode_steps")
            fields = self.card.defaults(Look(bool(self.spaces.get("is_image")), continuous, limit))
        return to_dict(build_config({"env_id": "unknown", **fields, "algo_id": self.card.algo_id}, self.run_id))

    def usual(self, setting: str) -> Range:
        """The range in which a setting of this algorithm usually is; None: no bound."""
        return self.card.usual.get(setting, (None, None)) if self.card is not None else (None, None)

    @cached_property
    def precedent(self) -> Mapping[str, Any]:
        """What has solved this task: the shipped configuration, else that of an earlier run; empty if nothing has."""
        shipped = shipped_fields(self.env_id or "", self.algo or "")
        return shipped or (self.solved_before[1] if self.solved_before is not None else {})

    @cached_property
    def solved_before(self) -> tuple[str, Mapping[str, Any]] | None:
        """Id and configuration of the newest run beside this one that solved the same task."""
        return next(((past.run_id, past.config) for past in self.beside if past.solved), None)

    @cached_property
    def changed_since_solved(self) -> frozenset[str]:
        """Fields that differ from those of the earlier run that solved the same task."""
        if self.solved_before is None:
            return frozenset()
        before = self.solved_before[1]
        return frozenset(name for name in before.keys() & self.config.keys() if before[name] != self.config[name])

    def series(self, name: str) -> Series | None:
        return self.curves.get(name)

    def late(self, name: str) -> float | None:
        found = self.curves.get(name)
        return found.late if found else None

    def early(self, name: str) -> float | None:
        found = self.curves.get(name)
        return found.early if found else None

    @cached_property
    def returns(self) -> Series | None:
        """Evaluations if there are a few, else training episodes."""
        evaluated = self.curves.get(EVALUATION)
        return (
            evaluated if evaluated and len(evaluated.values) >= LEAST_POINTS else self.curves.get(TRAINING) or evaluated
        )

    def number(self, name: str) -> float | None:
        """A field as one number: the largest value of a schedule."""
        return largest(self.config.get(name))

    @property
    def minibatch(self) -> float | None:
        size, rollout = self.number("batch_size"), self.rollout
        if size is None:
            return None
        return size * rollout if size <= 1 and rollout else size

    @property
    def noise_ratio(self) -> float | None:
        """The noise scale of the policy's gradient in minibatches of this run, where it was measured."""
        ratio = self.noise_scale.get("ratio") if self.noise_scale.get("part") == "policy" else None
        return float(ratio) if isinstance(ratio, int | float) and ratio > 0 else None

    @property
    def rollout(self) -> float | None:
        n_envs, n_steps = self.number("n_envs"), self.number("n_steps")
        return n_envs * n_steps if n_envs and n_steps else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


@cache
def baselines() -> Mapping[str, Mapping[str, Any]]:
    try:
        return json.loads(BASELINES.read_text(encoding="utf-8"))["environments"]
    except (OSError, ValueError, KeyError):
        return {}


def read(run: Run) -> Readings:
    """Everything of a run that can be read; what cannot is named in `missing`, never raised."""
    missing: list[str] = []
    metrics, x = run.metrics, run.clock.column
    columns = metrics.overview([EVALUATION])
    if metrics.names and x not in metrics.names:
        missing.append(f"metrics.csv has no column {x}: rows are numbered instead")
    curves, non_finite = {}, {}
    for name, (steps, values, recorded) in columns.items():
        if (found := Series.of(steps, values)) is not None:
            curves[name] = found
        broken = recorded & ~np.isfinite(values)
        if broken.any() and name not in UNDEFINED_AT_TIMES:
            non_finite[name] = float(steps[np.argmax(broken)])
    if columns and x not in curves:
        steps = next(iter(columns.values())).steps
        if (counted := Series.of(steps, steps)) is not None:
            curves[x] = counted
    if not curves:
        missing.append("metrics.csv is missing or has no rows: the course of training cannot be judged")
    if metrics.is_large:
        missing.append("metrics.csv is large: all evaluations were read, but only evenly spread parts of the rest")
    if metrics.skipped_lines:
        missing.append(f"{metrics.skipped_lines} damaged lines of metrics.csv were left out")
    if not run.config:
        missing.append("config.json is missing or unreadable: settings are not judged")
    record = run.status
    return Readings(
        run_id=run.run_id,
        status=record["status"],
        config=run.config,
        curves=curves,
        spaces=run.environment.get("spaces") or {},
        non_finite=non_finite,
        log=[(match[1], match[2]) for line in run.log_lines() if (match := LOG_ENTRY.match(line))],
        audit=_audit(run, missing),
        impacts=read_impacts(run.path.parent),
        beside=runs_beside(run),
        record=record,
        missing=missing,
        noise_scale=read_noise_scale(run),
    )


def _audit(run: Run, missing: list[str]) -> list[Mapping[str, Any]] | None:
    """Findings in the last checkpoint."""
    from gymnasium_solver.diagnose.checkpoints.inspection import inspect_run

    names = run.checkpoints()
    if not names:
        missing.append("no checkpoint of gymnasium-solver: parameters and optimiser state were not inspected")
        return None
    try:
        return [dict(finding) for finding in inspect_run(run, names[0]).audit.to_dict()["findings"]]
    except SolverError as error:
        missing.append(str(error))
        return None
