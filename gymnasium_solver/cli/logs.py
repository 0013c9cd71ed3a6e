"""`gsolve logs`: run.log, at once or as it grows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from gymnasium_solver.api.lookup import load_run
from gymnasium_solver.api.reading import log_entries
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunRef, RunsDir

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

POLL_SECONDS = 0.5


def logs(
    run: RunRef,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the run ends.")] = False,
    lines: Annotated[int | None, typer.Option("--lines", "-n", min=0, help="Only the last lines.")] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Print the log of a run.

    With --json one document, or with --follow one JSON object per line.
    """
    found = load_run(run, runs_dir=runs_dir)
    known = found.log_lines()
    shown = known if lines is None else known[len(known) - min(lines, len(known)) :]
    if json and not follow:
        output.emit_json(log_entries(shown))
        return
    _emit(shown, json)
    if follow:
        _follow(found, len(known), json)


def _follow(run: Run, seen: int, json: bool) -> None:
    while True:
        # Asked before the lines are read, so that nothing written between the two is lost.
        running = run.status["status"] == "running"
        lines = run.log_lines()
        _emit(lines[seen:], json)
        seen = max(seen, len(lines))
        if not running:
            return
        time.sleep(POLL_SECONDS)


def _emit(lines: list[str], json: bool) -> None:
    if json:
        for entry in log_entries(lines):
            output.emit_json(entry, lines=True)
    else:
        for line in lines:
            output.emit(line)
