"""Runs, groups and paths, as the verbs are given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run


def load_run(run: Run | str, *, runs_dir: str | Path | None = None) -> Run:
    """The run with this id, unique prefix of one, or path; `@last` is the newest."""
    from gymnasium_solver.runs.reader import Run, find_run

    return run if isinstance(run, Run) else find_run(run, as_path(runs_dir))


def find_either(run: Run | Group | str, runs_dir: str | Path | None) -> Run | Group:
    from gymnasium_solver.api.groups import find

    return find(run, as_path(runs_dir)) if isinstance(run, str) else run


def as_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
