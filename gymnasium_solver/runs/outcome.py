"""What a run came to: one word that terminal, JSON, page and MCP share, and one number for scripts.

status.json says how the process ended (`running completed failed diverged interrupted`); people ask what it came to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.errors import EXIT_DIVERGED, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_TARGET_MISSED

# `done` is for a run that has spent its budget and had no threshold to reach.
OUTCOMES = ("solved", "missed", "done", "failed", "interrupted", "running")
EXIT_CODES = {"missed": EXIT_TARGET_MISSED, "interrupted": EXIT_INTERRUPTED, "failed": EXIT_FAILURE}
_BY_EXPERIMENT = ("race", "cap", "budget")  # it had seen enough of the run; nothing was found to be wrong with it
_FAILURES = {
    "failed": "it failed without a message",
    "diverged": "diverged",
    "crashed": "crashed: its process is gone",
    "unknown": "its status.json is missing or damaged",
}


def outcome(record: Mapping[str, Any], solved: bool, threshold: float | None) -> tuple[str, str | None]:
    """The word for a run with this status.json, and why, where the word alone does not say it."""
    state, stopped_by = str(record.get("status")), record.get("stopped_by")
    if state == "running":
        return "running", None
    if stopped_by and stopped_by not in _BY_EXPERIMENT:  # by --stop-on: it would not have reached its threshold
        return "missed", f"stopped because of {stopped_by}"
    if state == "completed":
        return "solved" if solved else "done" if threshold is None else "missed", None
    if state == "interrupted":
        return "interrupted", f"stopped by an experiment ({stopped_by})" if stopped_by else None
    error, why = record.get("error"), _FAILURES.get(state, _FAILURES["unknown"])
    if not error:
        return "failed", why
    return "failed", f"diverged: {error}" if state == "diverged" else str(error)


def exit_code(record: Mapping[str, Any], word: str) -> int:
    """0 only for a run that did all that was asked of it."""
    if word == "failed" and record.get("status") == "diverged":
        return EXIT_DIVERGED
    return EXIT_CODES.get(word, EXIT_FAILURE if word == "running" else EXIT_OK)
