"""Asking a training to finish its update, save and end; and waiting until it has."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from gymnasium_solver.api.groups import Group
from gymnasium_solver.errors import SolverError
from gymnasium_solver.runs.reader import SILENCE_SECONDS, Run

POLL_SECONDS = 0.1

Say = Callable[[str], None]


def stop_run(run: Run, timeout: float, say: Say) -> None:
    if not _is_running(run):
        return
    pid = _verified_pid(run.run_id, run.status)
    say(f"asked process {pid} to stop; waiting for its checkpoint")
    _ask(pid, f"run {run.run_id}")
    if not _comes_true(lambda: not _is_running(run), timeout):
        raise SolverError(
            f"run {run.run_id} (process {pid}) is still finishing its update after {timeout:g} s; wait for it with "
            f"gsolve status {run.run_id}, or end it with kill -9 {pid} (it resumes from its last checkpoint)"
        )


def stop_group(group: Group, timeout: float, say: Say) -> None:
    """Its leader stops the seeds that run and starts no others; seeds that have lost their leader are asked one by
    one."""
    deadline = time.monotonic() + timeout
    leader = group.leader
    if leader is not None:
        say(f"asked process {leader} to stop its seeds; waiting for their checkpoints")
        _ask(leader, f"group {group.group_id}")
        if not _comes_true(lambda: group.leader is None, timeout):
            raise SolverError(
                f"the seeds of {group.group_id} (process {leader}) are still finishing their updates after "
                f"{timeout:g} s; wait for them with gsolve status {group.group_id}"
            )
    for run in group.runs():
        stop_run(run, max(deadline - time.monotonic(), POLL_SECONDS), say)


def _is_running(run: Run) -> bool:
    return bool(run.status["status"] == "running")


def _ask(pid: int, whose: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise SolverError(f"process {pid} of {whose} belongs to another user; ask them to stop it") from None
    except ProcessLookupError:
        pass  # it has ended by itself meanwhile


def _comes_true(condition: Callable[[], bool], timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


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
