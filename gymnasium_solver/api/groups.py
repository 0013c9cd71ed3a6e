"""Runs that were trained together: a group is a directory beside them, with a record of the process that trains them
and their joint report. Seeds of one configuration are a group, and so are the trainings of an experiment."""

from __future__ import annotations

import calendar
import contextlib
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver import processes
from gymnasium_solver.errors import SolverError, writing
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.outcome import outcome
from gymnasium_solver.runs.reader import Run, as_path, default_runs_dir, find_run, list_runs
from gymnasium_solver.trust import admit, names_in, require, signature

RECORD = "group.json"
EXPERIMENT = layout.EXPERIMENT  # of optimize, solve and verify
STUDY = "study.db"  # of a sweep, as Optuna is told to call it
MARKS = (RECORD, EXPERIMENT, STUDY)
UNKNOWN = "unknown (on "  # and a host


def _code(training: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The config fields in what was asked for, which may name code."""
    from gymnasium_solver.config.load import parse_overrides

    env_id = str(training.get("ref") or "").rpartition(":")[0]
    return [{"env_id": env_id}, dict(parse_overrides(training.get("overrides") or ()))]


def new_group_id() -> str:
    return layout.new_id("seeds")


class Group:
    """Read anew whenever asked, as its runs are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.group_id = path.name

    def __repr__(self) -> str:
        return f"Group({self.group_id!r})"

    @classmethod
    def create(
        cls, runs_dir: Path | None, group_id: str, seeds: Sequence[int], training: Mapping[str, Any] | None = None
    ) -> Group:
        """Led by this process; `training` is what was asked for, so that it can go on once interrupted."""
        group = cls(default_runs_dir(runs_dir) / group_id)
        record = {
            "group": group_id,
            "seeds": list(seeds),
            "training": dict(training or {}),
            "started_at": layout.iso_utc(time.time()),
            "status": "running",
            **processes.record_of(),
            "signature": signature(group_id, *_code(training or {})),
        }
        with writing(group.path):
            group.path.mkdir(parents=True)
            layout.write_json(group.path / RECORD, record)
        return group

    def go_on(self) -> None:
        """Led by this process from now on."""
        with writing(self.path):
            layout.write_json(self.path / RECORD, {**self.record, "status": "running", **processes.record_of()})

    def finish(self, status: str) -> None:
        with writing(self.path):
            layout.write_json(self.path / RECORD, {**self.record, "status": status})

    def discard(self) -> None:
        """A group in which no run came about leaves nothing behind."""
        shutil.rmtree(self.path, ignore_errors=True)

    def admit_code(self) -> None:
        """Refused if it names code that this user's installation did not put there, unless he trusts it."""
        parts = _code(self.record.get("training") or {})
        if not admit(self.group_id, *parts, signed=self.record.get("signature")):
            for name in [name for part in parts for name in names_in(part)]:
                require(name, "training")

    @property
    def is_experiment(self) -> bool:
        return (self.path / EXPERIMENT).is_file() or (self.path / STUDY).is_file()

    @property
    def report_path(self) -> Path:
        return self.path / layout.REPORT

    @property
    def stamp(self) -> str:
        """When it was begun, in the form that ids begin with; of one with another name, when it last changed."""
        if re.match(r"\d{8}-\d{6}\b", self.group_id):
            return self.group_id
        with contextlib.suppress(OSError):
            return f"{time.strftime(layout.STAMP, time.gmtime(self.path.stat().st_mtime))}-{self.group_id}"
        return ""

    @property
    def started_at(self) -> str | None:
        """What its id says, in the form of a run's `started_at`."""
        try:
            return layout.iso_utc(calendar.timegm(time.strptime(self.group_id[:15], layout.STAMP)))
        except ValueError:
            return None

    @property
    def record(self) -> dict[str, Any]:
        found = layout.read_json(self.path / RECORD) or layout.read_json(self.path / EXPERIMENT)
        if not found and (self.path / STUDY).is_file():
            from gymnasium_solver.api.sweeps import sweep_record

            return sweep_record(self.path)
        return found

    def trials(self) -> list[dict[str, Any]]:
        """Of an experiment: a line for every training that is finished; of a sweep, one for every trial."""
        if (self.path / STUDY).is_file():
            from gymnasium_solver.api.sweeps import sweep_trials

            return sweep_trials(self.path)
        return layout.read_lines(self.path / layout.TRIALS)

    @property
    def seeds(self) -> list[int]:
        """Known from the start; those of an experiment only come to be."""
        return list(layout.read_json(self.path / RECORD).get("seeds", ()))

    @property
    def leader(self) -> int | None:
        """The process that starts its seeds, if it is still at work on this machine."""
        record = self.record
        return processes.at_work(record) if record.get("status") == "running" else None

    def runs(self) -> list[Run]:
        """Those that have begun, by seed; where a seed had to begin anew, the newer run counts."""
        found = [run for run in list_runs(self.path.parent) if run.status.get("group") == self.group_id]
        if self.seeds:
            found = list({run.config.get("seed"): run for run in reversed(found)}.values())
        return sorted(found, key=lambda run: int(run.config.get("seed") or 0))

    def standing(self, is_training: Callable[[], bool]) -> str:
        """Its status, where one that says it is running, but is not, has crashed. What runs on another machine cannot
        be seen, but for its trainings: `is_training` says whether one of them is under way."""
        record = self.record
        status = str(record.get("status") or "unknown")
        if status != "running" or self.leader is not None or is_training():
            return status
        is_seen = "host" not in record or processes.is_here(record)
        return "crashed" if is_seen else f"{UNKNOWN}{record['host']})"

    def status(self) -> dict[str, Any]:
        """`status` of seeds is what they came to together, in the words of a run; an experiment has its own."""
        record, runs = self.record, [run.summary() for run in self.runs()]
        is_training = any(run["status"] == "running" for run in runs)
        begun = {run["seed"] for run in runs}
        standing = "running" if is_training else self.standing(lambda: False)
        if not self.is_experiment and not standing.startswith(UNKNOWN):
            thresholds = [run["threshold"] for run in runs if run["threshold"] is not None]
            is_solved = bool(runs) and all(run["solved"] for run in runs)
            standing, _ = outcome({"status": standing}, is_solved, thresholds[0] if thresholds else None)
        return {
            **record,
            "group": self.group_id,
            "status": standing,
            "seeds": self.seeds or [run["seed"] for run in runs],
            "waiting": [seed for seed in self.seeds if seed not in begun],
            **joint(runs),
            "path": str(self.path),
            "runs": runs,
        }

    def write_report(self) -> Path:
        """One page about all runs there are, those of failed seeds too; an experiment has written its own, and a sweep
        that has not is not done."""
        from gymnasium_solver.runs.report import write_group_report

        path = self.report_path
        if self.is_experiment and path.is_file():
            return path
        if (self.path / STUDY).is_file():
            raise SolverError(
                f"the sweep {self.group_id} has no report yet; gsolve sweep --resume {self.group_id} continues it "
                "and writes one"
            )
        with writing(path):
            layout.replace_file(path, [write_group_report(self.runs()).encode()])
        return path


def find(ref: str, runs_dir: Path | None = None) -> Run | Group:
    """A run, or a group by its id, its path, or a beginning of its id that no run shares."""
    directory = default_runs_dir(runs_dir)
    for path in (directory / ref, as_path(ref)):
        if ref and _is_group(path):
            return Group(path.resolve())
    if ref and not ref.startswith("@") and not (directory / ref / layout.CONFIG).is_file():
        alike = [directory / name for name in _names_in(directory) if name.startswith(ref)]
        if len(groups := [path for path in alike if _is_group(path)]) == 1 and not any(
            (path / layout.CONFIG).is_file() for path in alike
        ):
            return Group(groups[0])
    return find_run(ref, runs_dir)


def _names_in(directory: Path) -> list[str]:
    """Names alone: reading thousands of status files takes a second."""
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:
        return []


def _is_group(path: Path) -> bool:
    return any((path / mark).is_file() for mark in MARKS)


def joint(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What runs have in common; failed ones count as not solved and have no reward."""
    import numpy as np

    from gymnasium_solver.runs.report import final_reward
    from gymnasium_solver.statistics import interquartile_mean

    failed = [summary for summary in summaries if summary.get("error")]
    known = (final_reward(dict(summary)) for summary in summaries if summary not in failed)
    rewards = np.array([reward for reward in known if reward is not None])
    return {
        "solved": sum(bool(summary.get("solved")) for summary in summaries),
        "count": len(summaries),
        "failed": len(failed),
        "mean": float(rewards.mean()) if rewards.size else None,
        "std": float(rewards.std(ddof=1)) if rewards.size > 1 else None,
        "iqm": interquartile_mean(rewards) if rewards.size else None,
    }
