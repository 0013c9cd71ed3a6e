"""`gsolve logs`: run.log, at once or as it grows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

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

    With --json one document, or with --follow a JSON object a line.
    """
    from gymnasium_solver.runs.reader import find_run

    found = find_run(run, runs_dir)
    known = list(found.log_lines())
    shown = known if lines is None else known[len(known) - min(lines, len(known)) :]
    if json and not follow:
        output.emit_json([parse(line) for line in shown])
        return
    for line in shown:
        _emit(line, json)
    if follow:
        _follow(found, len(known), json)


def _follow(run: Run, seen: int, json: bool) -> None:
    from gymnasium_solver.runs.reader import Run

    while True:
        current = Run(run.path)  # a Run keeps what it has read
        # Asked before the lines are read, so that nothing written between the two is lost.
        running = current.status.get("status") == "running"
        lines = list(current.log_lines())
        for line in lines[seen:]:
            _emit(line, json)
        seen = max(seen, len(lines))
        if not running:
            return
        time.sleep(POLL_SECONDS)


def _emit(line: str, json: bool) -> None:
    output.emit_json(parse(line), lines=True) if json else output.emit(line)


def parse(line: str) -> dict[str, str]:
    """A line of run.log is `TIME LEVEL message`; anything else is a message alone."""
    parts = line.split(maxsplit=2)
    if len(parts) == 3 and parts[1].isupper():
        return dict(zip(("time", "level", "message"), parts, strict=True))
    return {"time": "", "level": "", "message": line}
