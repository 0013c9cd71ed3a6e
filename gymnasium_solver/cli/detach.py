"""Training in the background: a process in a session of its own that outlives the terminal."""

from __future__ import annotations

import secrets
import subprocess
import time
from typing import TYPE_CHECKING

from gymnasium_solver.errors import SolverError

if TYPE_CHECKING:
    from gymnasium_solver.cli.training import Request

START_TIMEOUT = 120.0


def start(request: Request, *, seeds: int = 1, jobs: int | None = None) -> str:
    """Start it, wait until its run directory exists, and return the run id (of many seeds: the group id)."""
    from gymnasium_solver.runs.reader import default_runs_dir

    runs_dir = default_runs_dir(request.runs_dir)
    runs_dir.mkdir(parents=True, exist_ok=True)
    name = f".detached-{secrets.token_hex(4)}"
    announced, log = runs_dir / f"{name}.id", runs_dir / f"{name}.log"
    extra = ["--announce", str(announced)]
    if seeds > 1:
        extra += ["--seeds", str(seeds)] + (["--jobs", str(jobs)] if jobs else [])
    with log.open("wb") as sink:
        process = subprocess.Popen(
            request.arguments(*extra),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if announced.exists() and (run_id := announced.read_text(encoding="utf-8")):
                # What the process prints belongs to the run, where there is one; its open file moves along.
                log.replace(runs_dir / f"{run_id}.log" if seeds > 1 else runs_dir / run_id / "output.log")
                return run_id
            if process.poll() is not None:
                lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                log.unlink()
                raise _failure(lines[-1] if lines else "no message", process.returncode)
            time.sleep(0.05)
    finally:
        announced.unlink(missing_ok=True)
    raise SolverError(f"the training in process {process.pid} has not started after {START_TIMEOUT:.0f} s; see {log}")


def _failure(line: str, code: int) -> SolverError:
    """What the background process said, with the exit code it ended with."""
    failure = SolverError(line.removeprefix("error: "))
    failure.exit_code = code
    return failure
