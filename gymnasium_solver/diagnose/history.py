"""Earlier runs of an environment: how each ended, and which of them had the same settings."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.runs import layout
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import final_reward, steps_to_threshold

# How a run is carried out and judged, not what it learns with. Evaluations stay: they decide when it counts as solved.
NOT_SETTINGS = frozenset(
    ("env_id", "seed", "engine", "vectorization", "checkpoint_freq_epochs", "reward_threshold", "stop_when_solved")
)
LOOKED_AT = 300  # runs beside one that is diagnosed, newest first
ENDED = ("completed", "diverged")  # by itself: what it had not reached by then, it did not reach
LOST = ("race", "cap")  # stopped by an experiment because it was behind: leaving it out would leave the lucky seeds

Value = float | str | None  # of a setting that may be compared; None: unset


class PastRun:
    """How a run ended. Its metrics are read only where status.json does not tell, or when a result is asked for."""

    def __init__(self, run: Run, threshold: float | None) -> None:
        self.run, self.run_id, self.config = run, run.run_id, run.config
        self.threshold = threshold
        self._record = run.status

    @property
    def started(self) -> str:
        return str(self._record.get("started_at") or "")

    @property
    def seed(self) -> Any:
        return self.config.get("seed")

    @cached_property
    def solved(self) -> bool | None:
        """None where that is not known: without a threshold, or because it ended before it could tell."""
        if self.threshold is None:
            return True if self._record.get("solved") is True else None
        own = own_threshold(self._record, self.config)
        judged = self._record.get("solved") if own == self.threshold else None
        if judged is None:
            judged = any(reward >= self.threshold for reward in self._best_rewards)
        if judged:
            return True
        stopped_at_its_own = bool(self._record.get("solved")) and self.config.get("stop_when_solved", True)
        return None if stopped_at_its_own or not self.has_ended else False

    @property
    def has_ended(self) -> bool:
        return self._record["status"] in ENDED or self._record.get("stopped_by") in LOST

    @property
    def is_decided(self) -> bool:
        return self.solved is not None if self.threshold is not None else self.has_ended

    @cached_property
    def frames(self) -> float:
        """To the threshold, on the run's clock; infinite if it was not reached."""
        if not self.solved:
            return math.inf
        steps = steps_to_threshold(self.run, self.threshold)
        if steps is None:  # the final evaluation was the first to reach it
            steps = self._record.get(self.run.clock.name)
        return float(steps) if isinstance(steps, int | float) else math.nan

    @cached_property
    def seconds(self) -> float:
        """Of training to the threshold; infinite if it was not reached, nan if the run did not log its speed."""
        if not self.solved:
            return math.inf
        if (pace := self.run.clock.pace) is None:
            return self.frames / (self._summary["progress"] or math.nan) * (self._summary["duration_s"] or math.nan)
        steps, speeds = self.run.metrics.series(pace)
        known = (steps >= self.frames) & (speeds > 0)
        return float(self.frames / speeds[np.argmax(known)]) if known.any() else math.nan

    @cached_property
    def reward(self) -> float:
        """At the end; nan where no episode finished."""
        reward = final_reward(self._summary)
        return math.nan if reward is None else float(reward)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        return self.run.summary()

    @property
    def _best_rewards(self) -> list[float]:
        found = (self._summary["best_reward"], self._summary["test_reward"])
        return [reward for reward in found if reward is not None]


@dataclass(frozen=True)
class Configuration:
    """Runs with the same settings; seeds are its replicates, a seed that was run twice counts once."""

    config: Mapping[str, Any]
    runs: tuple[PastRun, ...]  # newest first

    @cached_property
    def settings(self) -> dict[str, Value]:
        return settings_of(self.config)

    @property
    def algo(self) -> str:
        return str(self.config.get("algo_id"))

    @property
    def started(self) -> str:
        return min(run.started for run in self.runs)

    @property
    def solved(self) -> int:
        return sum(run.solved is True for run in self.runs)

    @property
    def share(self) -> float:
        return self.solved / len(self.runs)


def runs_beside(run: Run) -> list[PastRun]:
    """Runs in the same directory with the same environment and algorithm that status.json says the outcome of."""
    task = tuple(run.config.get(name) for name in ("env_id", "algo_id"))
    try:
        entries = [entry for entry in os.scandir(run.path.parent) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    found = []
    for entry in sorted(entries, key=lambda entry: entry.name, reverse=True)[:LOOKED_AT]:
        other = Run(Path(entry.path))
        if other.run_id == run.run_id or tuple(other.config.get(field) for field in ("env_id", "algo_id")) != task:
            continue
        record = layout.read_json(other.path / layout.STATUS)
        if record.get("solved") is True or (record.get("solved") is False and record.get("status") in ENDED):
            found.append(PastRun(other, own_threshold(record, other.config)))
    return found


def own_threshold(record: Mapping[str, Any], config: Mapping[str, Any]) -> float | None:
    found = record.get("threshold", config.get("reward_threshold"))
    return float(found) if isinstance(found, int | float) else None


def common_threshold(runs: Iterable[Run]) -> float | None:
    """The one that most runs aimed at: all are judged by it."""
    found = Counter(own for run in runs if (own := own_threshold(run.status, run.config)) is not None)
    return found.most_common(1)[0][0] if found else None


def configurations(runs: Sequence[PastRun]) -> list[Configuration]:
    """Decided runs by their settings; `runs` are newest first."""
    groups: dict[str, dict[Any, PastRun]] = {}
    for run in runs:
        if run.is_decided:
            settings = {name: value for name, value in run.config.items() if name not in NOT_SETTINGS}
            group = groups.setdefault(json.dumps(settings, sort_keys=True, default=str), {})
            group.setdefault(run.run_id if run.seed is None else run.seed, run)
    return [Configuration(next(iter(group.values())).config, tuple(group.values())) for group in groups.values()]


def settings_of(config: Mapping[str, Any]) -> dict[str, Value]:
    """Fields as values that may be compared: a schedule is its largest value and its kind, a mapping its entries."""
    found: dict[str, Value] = {}
    for name, value in config.items():
        if name not in NOT_SETTINGS:
            found.update(_flat(name, value))
    return found


def _flat(name: str, value: Any) -> dict[str, Value]:
    if isinstance(value, Mapping) and "start" in value:
        ends = [end for end in (value["start"], value.get("end")) if isinstance(end, int | float)]
        return {name: float(max(ends, default=math.nan)), f"{name}.schedule": str(value.get("schedule", "linear"))}
    if isinstance(value, Mapping):
        return {key: flat for part, inner in value.items() for key, flat in _flat(f"{name}.{part}", inner).items()}
    if value is None or isinstance(value, str):
        return {name: value}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {name: float(value)}
    return {name: json.dumps(value, default=str)}
