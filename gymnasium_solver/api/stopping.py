"""Asking a training to finish its update, save and end; and waiting until it has."""

from __future__ import annotations

import time
from collections.abc import Callable

from gymnasium_solver.api.groups import Group
from gymnasium_solver.errors import SolverError
from gymnasium_solver.processes import POLL_SECONDS, ask_to_stop, comes_true
from gymnasium_solver.runs.reader import Run

Say = Callable[[str], None]


def stop_run(run: Run, timeout: float, say: Say) -> None:
    if not _is_running(run):
        return
    pid = ask_to_stop(run.status, f"run {run.run_id}", run.path)
    say(f"asked process {pid} to stop; waiting for its checkpoint")
    if not comes_true(lambda: not _is_running(run), timeout):
        raise SolverError(
            f"run {run.run_id} (process {pid}) is still finishing its update after {timeout:g} s; wait for it with "
            f"gsolve status {run.run_id}, or end it with kill -9 {pid} (it resumes from its last checkpoint)"
        )


def stop_group(group: Group, timeout: float, say: Say) -> None:
    """Its leader stops the seeds that run and starts no others; seeds that have lost their leader are asked one by
    one."""
    deadline = time.monotonic() + timeout
    if group.leader is not None:
        leader = ask_to_stop(group.record, f"group {group.group_id}", group.path)
        say(f"asked process {leader} to stop its seeds; waiting for their checkpoints")
        if not comes_true(lambda: group.leader is None, timeout):
            raise SolverError(
                f"the seeds of {group.group_id} (process {leader}) are still finishing their updates after "
                f"{timeout:g} s; wait for them with gsolve status {group.group_id}"
            )
    for run in group.runs():
        stop_run(run, max(deadline - time.monotonic(), POLL_SECONDS), say)


def _is_running(run: Run) -> bool:
    return bool(run.status["status"] == "running")
