"""Training in the background: a process in a session of its own that outlives the terminal."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from gymnasium_solver.api.request import Request
from gymnasium_solver.errors import SolverError, writing
from gymnasium_solver.processes import Process, start_logged
from gymnasium_solver.runs.reader import default_runs_dir

START_TIMEOUT = 120.0
OUTPUT = "output.log"


def start_training(request: Request, *, seeds: int = 1, jobs: int | None = None) -> str:
    """Start it, wait until its run directory exists, and return the run id (of many seeds: the group id)."""
    runs_dir = default_runs_dir(request.runs_dir)
    name = f".detached-{secrets.token_hex(4)}"
    announced, log = runs_dir / f"{name}.id", runs_dir / f"{name}.log"
    extra = ["--announce", str(announced)]
    extra += ["--seeds", str(seeds)] if seeds > 1 else []
    extra += ["--jobs", str(jobs)] if jobs else []
    process = _spawn(request.arguments(*extra), log)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if announced.exists() and (found := announced.read_text(encoding="utf-8")):
                # What the process prints belongs to the run or group; its open file moves along.
                log.replace(runs_dir / found / OUTPUT)
                return found
            if process.poll() is not None:
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                log.unlink()
                raise _failure(said, process.returncode)
            time.sleep(0.05)
    finally:
        with contextlib.suppress(OSError):
            announced.unlink()
    raise SolverError(f"the training in process {process.pid} has not started after {START_TIMEOUT:.0f} s; see {log}")


def _spawn(arguments: list[str], log: Path) -> Process:
    with writing(log.parent):
        log.parent.mkdir(parents=True, exist_ok=True)
        return start_logged(arguments, log)


def _failure(said: Sequence[str], code: int) -> SolverError:
    """What the background process said, with the exit code it ended with."""
    lines = [line for line in said if line.startswith("error: ")] or [line for line in said if line.strip()]
    failure = SolverError(lines[-1].removeprefix("error: ") if lines else f"it ended with exit code {code}, silently")
    failure.exit_code = code
    return failure
