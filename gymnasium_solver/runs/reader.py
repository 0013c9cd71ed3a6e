"""Finding and reading runs: finished, running, killed, or damaged."""

from __future__ import annotations

import difflib
import math
import os
import re
import time
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.errors import CheckpointError, NotFoundError
from gymnasium_solver.limits import read_end
from gymnasium_solver.metrics.clocks import Clock, clock_of
from gymnasium_solver.processes import SILENCE_SECONDS, at_work, is_here
from gymnasium_solver.runs import checkpoints, layout
from gymnasium_solver.runs.checkpoints import Place, new_array
from gymnasium_solver.runs.metrics_reader import Metrics, file_version
from gymnasium_solver.runs.outcome import exit_code, outcome
from gymnasium_solver.runs.records import CONFIG, STATUS, Record, read_record
from gymnasium_solver.trust import admit

SHOWN = 5
_POLICY = "gymnasium_solver.train.policy:environment_policy"  # training lies to the right: named, not imported


class Run:
    """One run directory. Nothing is read until it is asked for; a running run is read anew."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve() if path.is_symlink() else path
        self.run_id = self.path.resolve().name
        self._metrics: Metrics | None = None
        self._metrics_version: Any = None

    def __repr__(self) -> str:
        return f"Run({self.run_id!r})"

    @cached_property
    def config(self) -> dict[str, Any]:
        return self._config.fields

    @cached_property
    def _config(self) -> Record:
        return read_record(self.path / layout.CONFIG, CONFIG)

    @property
    def _status(self) -> Record:
        return read_record(self.path / layout.STATUS, STATUS)

    @cached_property
    def clock(self) -> Clock:
        return clock_of(self.config or self._status.fields)

    @cached_property
    def environment(self) -> dict[str, Any]:
        return layout.read_json(self.path / layout.ENVIRONMENT)

    @property
    def status(self) -> dict[str, Any]:
        """status.json, where a run that says it is running but is not has the status `crashed`."""
        record = dict(self._status.fields)
        record["status"] = record.get("status") or "unknown"
        if record["status"] == "running" and not _is_running(record):
            record["status"] = "crashed"
        return record

    @property
    def problem(self) -> str | None:
        """What keeps its config.json or status.json from being read, or a part of them; None where nothing does."""
        return "; ".join(filter(None, (self._config.problem, self._status.problem))) or None

    @property
    def metrics(self) -> Metrics:
        version = file_version(self.path / layout.METRICS)
        if self._metrics is None or version != self._metrics_version:
            self._metrics, self._metrics_version = Metrics(self.path / layout.METRICS, self.clock), version
        return self._metrics

    @property
    def report_path(self) -> Path:
        return self.path / layout.REPORT

    @property
    def exit_code(self) -> int:
        """0 only for a run that did all that was asked of it."""
        return exit_code(self.status, self.summary()["status"])

    def log_lines(self) -> list[str]:
        try:
            return read_end(self.path / layout.LOG).decode(errors="replace").splitlines()
        except OSError:
            return []

    def checkpoints(self) -> list[str]:
        """Names: last, best, then the newest epoch first."""
        return checkpoints.available(self.path / layout.CHECKPOINTS)

    def require_checkpoint(self, name: str) -> str:
        """The name without `@`, of one that is there."""
        name = name.removeprefix("@")
        names = self.checkpoints()
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "it has none yet"
            raise NotFoundError(f"run {self.run_id} has no checkpoint {name!r}; {there}")
        return name

    def policy(self, checkpoint: str = "best", *, trust: bool = False) -> Any:
        """The trained policy: `policy(obs)` takes an observation of the environment, or a batch of them, and returns
        the action, or actions, to take. Its environment is built for it, so code that the configuration names is
        imported: of a run that was made elsewhere only with `trust`."""
        self.admit_code(trust=trust)
        module, _, function = _POLICY.partition(":")
        return getattr(import_module(module), function)(self, self.require_checkpoint(checkpoint))

    def admit_code(self, *, trust: bool = False) -> None:
        """Code that the configuration names may be imported if this user's installation made the run, or with `trust`;
        otherwise whoever imports it is refused."""
        admit(self.run_id, self.config, signed=self.environment.get("signature"), trust=trust)

    def describe_checkpoint(self, name: str) -> dict[str, Any]:
        """`name`, `ref` as verbs take it, `bytes`, and the numbers of `progress` (epoch, env_steps, best_eval …)."""
        record = layout.read_json(self.path / layout.CHECKPOINTS / f"{name}.json")
        file, progress = (part if isinstance(part := record.get(key), dict) else {} for key in ("file", "progress"))
        numbers = {key: value for key, value in progress.items() if not isinstance(value, dict | list)}
        return {
            "name": name,
            "ref": checkpoint_ref(self.run_id, name),
            "bytes": file.get("bytes"),
            "progress": numbers,
        }

    def read_checkpoint(self, name: str, place: Place = new_array) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata; `place` says where an array is read to, or leaves it out."""
        name = self.require_checkpoint(name)
        directory = self.path / layout.CHECKPOINTS
        try:
            return checkpoints.load(directory / f"{name}{checkpoints.SUFFIX}", place)
        except CheckpointError as error:
            other = checkpoints.first_intact(directory, (x for x in self.checkpoints() if x != name))
            remedy = (
                f"use {checkpoint_ref(self.run_id, other)}, which is intact" if other else "the run has no intact one"
            )
            raise CheckpointError(f"checkpoint {error}; {remedy}") from error

    def summary(self) -> dict[str, Any]:
        """The run in a few numbers, None where one is not known. `status` is what it came to (see outcome.py), `reason`
        says why where that is not plain. Rewards are means of evaluations; where there are none (`evaluated`), of
        training episodes."""
        status, config, metrics, clock = self.status, self.config, self.metrics, self.clock
        evaluated = "val/roll/ep_rew_mean" in metrics
        reward = "val/roll/ep_rew_mean" if evaluated else "train/roll/ep_rew_mean"
        counts = ("env_steps", "epochs", "episodes")
        metrics.load([reward, "test/roll/ep_rew_mean", clock.column, *(f"train/cnt/{name}" for name in counts)])
        _, rewards = metrics.series(reward)
        best = _finite(rewards.max()) if rewards.size else None
        threshold = status.get("threshold", config.get("reward_threshold"))
        solved = status.get("solved")
        if solved is None:
            solved = best is not None and threshold is not None and best >= threshold
        word, reason = outcome(status, bool(solved), threshold)
        if (problem := self.problem) is not None:
            word, reason = "failed", problem
        return {
            "run_id": self.run_id,
            "env_id": config.get("env_id"),
            "algo_id": config.get("algo_id"),
            "status": word,
            "reason": reason,
            "seed": config.get("seed"),
            **{name: _whole(metrics.last(f"train/cnt/{name}")) for name in counts},
            "max_env_steps": config.get("max_env_steps"),
            "clock": clock.name,
            "progress": _whole(metrics.last(clock.column)),
            "budget": clock.budget_of(config, status),
            "evaluated": evaluated,
            "best_reward": best,
            "last_reward": _finite(rewards[-1]) if rewards.size else None,
            "test_reward": _finite(metrics.last("test/roll/ep_rew_mean")),
            "threshold": threshold,
            "solved": bool(solved),
            "duration_s": status.get("elapsed_s"),
            "started_at": status.get("started_at"),
            "updated_at": status.get("updated_at"),
            "group": status.get("group"),
            "parent": status.get("parent"),
            "error": status.get("error"),
            "stopped_by": status.get("stopped_by"),
            "path": str(self.path),
        }


def as_path(text: str) -> Path:
    """With `~` as the shell has it; that of nobody stands for itself."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def default_runs_dir(explicit: Path | None = None) -> Path:
    return Path(explicit or os.environ.get("GSOLVE_RUNS_DIR") or "runs")


def list_runs(runs_dir: Path | None = None) -> list[Run]:
    """Newest first. A directory without config.json is no run, or not yet one."""
    return sorted(_runs_in(default_runs_dir(runs_dir)), key=_age, reverse=True)


def find_run(ref: str, runs_dir: Path | None = None) -> Run:
    """By id, unique prefix, path, or `@last`."""
    directory = default_runs_dir(runs_dir)
    ref = str(ref).rstrip("/")
    exact = directory / ref
    if ref and _is_run(exact):
        return Run(exact)
    if ref and _is_run(path := as_path(ref)):
        return Run(path)
    runs = list_runs(directory)
    if ref == layout.LAST_RUN and runs:
        return runs[0]
    ids = [run.run_id for run in runs]
    matching = [run for run in runs if ref and run.run_id.startswith(ref)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise NotFoundError(f"{ref!r} is the beginning of {len(matching)} runs in {directory}: {_shown(matching)}")
    if not ids:
        raise NotFoundError(
            f"there is no run {ref!r}: {directory} has no runs; start one with: gsolve train CartPole-v1:ppo"
        )
    containing = [name for name in ids if ref and ref.lower() in name.lower()]
    near = (containing or difflib.get_close_matches(ref, ids, SHOWN, cutoff=0.5))[:SHOWN]
    hint = f"did you mean {', '.join(near)}" if near else f"the newest are {', '.join(ids[:SHOWN])}"
    raise NotFoundError(f"there is no run {ref!r} in {directory}; {hint}")


def split_checkpoint_ref(ref: str) -> tuple[str, str | None]:
    """`RUN/@best` → (RUN, best); `RUN/epoch=3` → (RUN, epoch=3); `RUN` and a path to a run → (RUN, None)."""
    ref = ref.rstrip("/")
    run, _, name = ref.rpartition("/")
    if not run or Path(ref).is_dir():  # `runs/@last` is a run, not the checkpoint `last` of a run called `runs`
        return ref, None
    if name.endswith(checkpoints.SUFFIX):  # the file itself
        return run.removesuffix(f"/{layout.CHECKPOINTS}"), name.removesuffix(checkpoints.SUFFIX)
    if name.startswith("@") or re.fullmatch(r"best|last|epoch=\d+", name):
        return run, name.removeprefix("@")
    return ref, None


def checkpoint_ref(run_id: str, name: str) -> str:
    return f"{run_id}/{name}" if name.startswith("epoch=") else f"{run_id}/@{name}"


def _runs_in(directory: Path) -> Iterator[Run]:
    try:
        entries = list(directory.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink() and _is_run(entry):
            yield Run(entry)


def _is_run(path: Path) -> bool:
    try:
        return (path / layout.CONFIG).is_file()
    except (OSError, ValueError):
        return False


def _age(run: Run) -> tuple[str, str]:
    """When it started; ids alone do not order runs of the same second."""
    started = run._status.fields.get("started_at")
    if started is None:
        try:
            started = datetime.strptime(run.run_id[:15], "%Y%m%d-%H%M%S").isoformat()
        except ValueError:
            started = ""
    return started, run.run_id


def _is_running(status: dict[str, Any]) -> bool:
    pid, heartbeat = status.get("pid"), status.get("heartbeat")
    if is_here(status) and isinstance(pid, int):
        return at_work(status) is not None
    return isinstance(heartbeat, int | float) and time.time() - heartbeat <= SILENCE_SECONDS


def _shown(runs: list[Run]) -> str:
    more = f" and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
    return ", ".join(run.run_id for run in runs[:SHOWN]) + more


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None
