"""`gsolve stop`: ask a training to finish its update, save and end."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunRef, RunsDir
from gymnasium_solver.errors import SolverError

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

POLL_SECONDS = 0.1
SILENCE_SECONDS = 60.0


def stop(
    run: RunRef,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait for it to end.")] = 60.0,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Stop a training after its current update.

    It is saved and can be resumed.
    """
    from gymnasium_solver.runs.reader import find_run

    found = find_run(run, runs_dir)
    was_running = found.status.get("status") == "running"
    final = _stop(found, timeout) if was_running else found.summary()
    if json:
        output.emit_json({**final, "was_running": was_running})
    elif was_running:
        output.emit(f"{found.run_id}: {final['status']} at {output.number(final.get('env_steps'))} steps")
    else:
        output.emit(f"{found.run_id} is not running: {final['status']}")


def _stop(run: Run, timeout: float) -> dict[str, Any]:
    from gymnasium_solver.runs.reader import Run

    pid = _verified_pid(run.run_id, run.status)
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise SolverError(f"process {pid} of run {run.run_id} belongs to another user; ask them to stop it") from None
    except ProcessLookupError:
        return Run(run.path).summary()
    output.message(f"asked process {pid} to stop; waiting for its checkpoint")
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        current = Run(run.path)
        if current.status.get("status") != "running":
            return current.summary()
        time.sleep(POLL_SECONDS)
    raise SolverError(
        f"run {run.run_id} (process {pid}) is still finishing its update after {timeout:g} s; wait for it with gsolve "
        f"status {run.run_id}, or end it with kill -9 {pid} (it resumes from its last checkpoint)"
    )


def _verified_pid(run_id: str, status: dict[str, Any]) -> int:
    """The pid in status.json, if it is still the process that wrote it and not a later one with the same number."""
    host, pid = status.get("host"), int(status.get("pid", 0))
    if host != socket.gethostname():
        raise SolverError(f"run {run_id} runs on {host}; stop it there")
    # The reader calls a run running only if its process is the one on record; where the system does not tell
    # processes of the same number apart, a recent heartbeat has to do.
    silence = time.time() - float(status.get("heartbeat", 0))
    if pid <= 1 or (status.get("process") is None and silence > SILENCE_SECONDS):
        raise SolverError(
            f"process {pid} may no longer be that of run {run_id} (silent for {silence:.0f} s); not stopped"
        )
    return pid
