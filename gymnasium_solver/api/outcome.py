"""What a run's summary comes to: one word for people, one number for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.errors import EXIT_DIVERGED, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_TARGET_MISSED

_BY_EXPERIMENT = ("race", "cap", "budget")  # it had seen enough of the run; nothing was found to be wrong with it
_NOT_COMPLETED = {"interrupted": EXIT_INTERRUPTED, "diverged": EXIT_DIVERGED}


def verdict(summary: Mapping[str, Any]) -> str:
    """A finished run's status, with what matters most about it: whether it reached its threshold."""
    status = str(summary.get("status") or "unknown")
    if _stopped_by_a_finding(summary):
        return "stopped"
    if summary.get("solved"):
        return "solved" if status == "completed" else status
    return "missed" if status == "completed" and summary.get("threshold") is not None else status


def exit_code(summary: Mapping[str, Any]) -> int:
    """0 only for a run that did all that was asked of it."""
    if _stopped_by_a_finding(summary):  # by --stop-on: it would not have reached its threshold
        return EXIT_TARGET_MISSED
    if summary["status"] != "completed":
        return _NOT_COMPLETED.get(summary["status"], EXIT_FAILURE)
    missed = summary.get("threshold") is not None and not summary.get("solved")
    return EXIT_TARGET_MISSED if missed else EXIT_OK


def _stopped_by_a_finding(summary: Mapping[str, Any]) -> bool:
    return bool(summary.get("stopped_by")) and summary["stopped_by"] not in _BY_EXPERIMENT
