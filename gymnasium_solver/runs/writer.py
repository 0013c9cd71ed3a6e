"""The one place that writes into a run directory. Killed at any moment, it leaves a run that reads and resumes."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.errors import SolverError, writing
from gymnasium_solver.processes import is_at_work_elsewhere, record_of
from gymnasium_solver.runs import checkpoints, layout
from gymnasium_solver.runs.environment import environment_record
from gymnasium_solver.runs.metrics_writer import MetricsFile, trim
from gymnasium_solver.trust import signature

HEARTBEAT_SECONDS = 1.0
LASTING = ("run_id", "started_at", "group", "parent")  # of a status, over all resumes


class RunWriter:
    def __init__(self, path: Path, lasting: Mapping[str, Any], elapsed_s: float = 0.0) -> None:
        self.path = path
        self.run_id = path.name
        self._lasting = dict(lasting)
        self._fields: dict[str, Any] = {}
        self._opened = time.monotonic() - elapsed_s
        self._beaten = -HEARTBEAT_SECONDS
        self._process = record_of()
        with self._storing(path / layout.METRICS):
            self._metrics = MetricsFile(path / layout.METRICS)
        self.status("running")

    @classmethod
    def create(
        cls,
        runs_dir: Path,
        config: dict[str, Any],
        *,
        command: list[str],
        group: str | None = None,
        parent: str | None = None,
        spaces: Mapping[str, Any] | None = None,
    ) -> RunWriter:
        """A new run; `parent` is the run it was initialised from, `spaces` what the policy sees and does."""
        now = time.time()
        with writing(runs_dir):
            path = _new_directory(Path(runs_dir), config, now)
        lasting = {"run_id": path.name, "started_at": layout.iso_utc(now), "group": group, "parent": parent}
        writer = cls(path, lasting)
        with writer._storing(path):
            (path / layout.CHECKPOINTS).mkdir()
            record = environment_record(command) | {"spaces": spaces}
            if (signed := signature(path.name, config)) is not None:
                record["signature"] = signed
            layout.write_json(path / layout.ENVIRONMENT, record)
            layout.write_json(path / layout.CONFIG, config)  # last: a directory without it is no run yet
            layout.sync_directory(path)
            layout.sync_directory(path.parent)
        _point_to(path)
        return writer

    @classmethod
    def reopen(cls, path: Path, epoch: int, config: dict[str, Any] | None = None) -> RunWriter:
        """Continue a run after `epoch`: later rows and torn ones go, the others stay byte for byte. A config given here
        replaces the run's."""
        path = Path(path).resolve()
        before = layout.read_json(path / layout.STATUS)
        if is_at_work_elsewhere(before):
            raise SolverError(
                f"run {path.name} is still being trained by process {before['pid']}; stop it first: "
                f"gsolve stop {path.name}"
            )
        with _storing(path.name, path / layout.METRICS):
            layout.remove_temporaries(path)
            layout.remove_temporaries(path / layout.CHECKPOINTS)
            trim(path / layout.METRICS, epoch)
            if config is not None and config != layout.read_json(path / layout.CONFIG):
                layout.write_json(path / layout.CONFIG, config)
        lasting = {key: before.get(key) for key in LASTING} | {"run_id": path.name}
        lasting["started_at"] = lasting["started_at"] or layout.iso_utc(path.stat().st_mtime)
        lasting["resumes"] = int(before.get("resumes") or 0) + 1
        return cls(path, lasting, elapsed_s=float(before.get("elapsed_s") or 0.0))

    def log(self, level: str, message: str) -> None:
        """One entry of run.log; further lines of the message are indented. Never the cause of a failure itself."""
        text = message.rstrip().replace("\n", "\n    ")
        with contextlib.suppress(OSError), (self.path / layout.LOG).open("ab", buffering=0) as file:
            file.write(f"{layout.iso_utc(time.time())} {level.upper()} {text}\n".encode(errors="replace"))

    def metrics(self, row: Mapping[str, float]) -> None:
        """Append one row; None is a value that was not measured."""
        with self._storing(self._metrics.path):
            self._metrics.append(row)

    def status(self, status: str, **fields: Any) -> None:
        """Fields stay in the record until they are given anew."""
        if status not in layout.STATUSES:
            raise ValueError(f"status must be one of {', '.join(layout.STATUSES)}, not {status!r}")
        self._fields.update(fields)
        self._beaten = time.monotonic()
        now = time.time()
        record = {
            "status": status,
            **self._lasting,
            **self._process,
            "updated_at": layout.iso_utc(now),
            "heartbeat": now,
            "elapsed_s": round(self._beaten - self._opened, 3),
            **self._fields,
        }
        with self._storing(self.path / layout.STATUS):
            layout.write_json(self.path / layout.STATUS, record)

    def heartbeat(self, **fields: Any) -> None:
        """A sign of life, written at most once a second."""
        self._fields.update(fields)
        if time.monotonic() - self._beaten >= HEARTBEAT_SECONDS:
            self.status("running")

    def checkpoint(self, names: Sequence[str], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Path:
        """Save under all the names, e.g. ["epoch=12", "last", "best"]; the metrics up to here reach the disk too."""
        with self._storing(self.path / layout.CHECKPOINTS):
            self._metrics.sync()
            return checkpoints.save(self.path / layout.CHECKPOINTS, names, arrays, meta)

    def close(self) -> None:
        self._metrics.close()

    def _storing(self, path: Path) -> contextlib.AbstractContextManager[None]:
        return _storing(self.run_id, path)


@contextlib.contextmanager
def _storing(run_id: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space" if full else "make it writable"
        resume = f"gsolve train --resume {run_id}"
        raise SolverError(f"cannot write {path}: {error.strerror or error}; {remedy}, then: {resume}") from error


def _new_directory(runs_dir: Path, config: Mapping[str, Any], now: float) -> Path:
    runs_dir = runs_dir.resolve()
    runs_dir.mkdir(parents=True, exist_ok=True)
    env_id, algo_id, seed = str(config.get("env_id", "env")), str(config.get("algo_id", "algo")), config.get("seed", 0)
    while True:
        path = runs_dir / layout.new_run_id(env_id, algo_id, int(seed), now)
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return path


def _point_to(path: Path) -> None:
    """`@last` is a convenience: a file system without symbolic links does without it."""
    link = path.parent / layout.LAST_RUN
    temporary = path.parent / f".{layout.LAST_RUN}.{path.name}.tmp"
    with contextlib.suppress(OSError):
        temporary.symlink_to(path.name, target_is_directory=True)
        temporary.replace(link)
