"""Long work: `gsolve VERB … --json` in a process that outlives the server, found again by its directory.

`runs/.jobs/<id>/` has `job.json` (what was asked, and which process does it), `stdout` (the verb's document, when it is
done) and `stderr` (its progress). No state is kept anywhere else.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver import processes
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError, writing
from gymnasium_solver.runs import layout

JOBS, RECORD = ".jobs", "job.json"
PROGRESS_LINES, LINE = 12, 300
STOP_SECONDS = 30.0


class Job:
    """Read anew whenever asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job_id = path.name

    @property
    def record(self) -> dict[str, Any]:
        return layout.read_json(self.path / RECORD)

    @property
    def is_running(self) -> bool:
        return processes.at_work(self.record) is not None

    def progress(self) -> list[str]:
        """What it said last."""
        lines = [line for line in self._read("stderr").splitlines() if line.strip()]
        return [line[:LINE] for line in lines[-PROGRESS_LINES:]]

    def result(self) -> dict[str, Any] | list[Any] | None:
        """The verb's document; None while there is none. Environments may have printed something before it."""
        text = self._read("stdout")
        for start in (0, text.rfind("\n{\n") + 1, text.rfind("\n[\n") + 1):
            with contextlib.suppress(ValueError):
                found = json.loads(text[start:])
                if isinstance(found, dict | list):
                    return found
        return None

    def status(self) -> str:
        if self.is_running:
            return "running"
        if self.result() is not None:
            return "completed"
        record = self.record
        if "host" in record and not processes.is_here(record):
            return f"unknown (on {record['host']})"
        return "stopped" if record.get("stopped") else "failed"

    def error(self) -> str | None:
        """The sentence it ended with, if it failed."""
        if self.status() != "failed":
            return None
        lines = self.progress()
        named = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return (named or lines or ["it ended without a word, perhaps killed"])[-1]

    def stop(self) -> bool:
        """As Ctrl-C would: what it is at is saved. Whether there was anything to stop."""
        if not self.is_running:
            return False
        record = self.record
        layout.write_json(self.path / RECORD, {**record, "stopped": True})
        try:
            processes.interrupt(record, f"job {self.job_id}", self.path, STOP_SECONDS)
        except SolverError:
            layout.write_json(self.path / RECORD, record)
            raise
        return True

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def start_job(runs_dir: Path, kind: str, module: str, arguments: Sequence[str]) -> Job:
    """`python -m module arguments` in a session of its own."""
    path = runs_dir / JOBS / layout.new_id(kind)
    words = processes.module(module, *arguments)
    with writing(path, "make the runs directory writable"):
        path.mkdir(parents=True)
        with (path / "stdout").open("wb") as out, (path / "stderr").open("wb") as progress:
            process = processes.leave(processes.start(words, stdout=out, stderr=progress))
        record = {
            "job_id": path.name,
            "kind": kind,
            "command": ["python", *words[1:]],
            **processes.record_of(process.pid),
            "started_at": layout.iso_utc(time.time()),
        }
        layout.write_json(path / RECORD, record)
    return Job(path)


def list_jobs(runs_dir: Path) -> list[Job]:
    """Newest first."""
    return [Job(path.parent) for path in sorted(runs_dir.glob(f"{JOBS}/*/{RECORD}"), reverse=True)]


def find_job(runs_dir: Path, job_id: str) -> Job:
    if not job_id.strip() or any(mark in job_id for mark in "/\\\0"):
        raise ConfigError(f"job_id {job_id!r} is not a job; call list_jobs")
    matching = [job for job in list_jobs(runs_dir) if job.job_id.startswith(job_id)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(job.job_id for job in matching[:5])
        raise NotFoundError(f"{job_id!r} is the beginning of {len(matching)} jobs: {names}")
    raise NotFoundError(f"there is no job {job_id!r}; call list_jobs (a training has a run_id: get_training_status)")
