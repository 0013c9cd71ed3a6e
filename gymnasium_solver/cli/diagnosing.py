"""`gsolve diagnose`: what is wrong with a run, why, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir
from gymnasium_solver.errors import SolverError

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

EXAMPLES = """\b
Examples:
  gsolve diagnose @last          what is wrong, and what to change
  gsolve diagnose @last --probe  settle by experiment what is ambiguous
  gsolve diagnose logs/sb3/      a run of another library
"""

HEADINGS = ("## ", "Primary:")
SEVERITIES = {"critical": "31", "high": "33"}


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(diagnose)


def diagnose(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|GROUP|PATH",
            help="Run id, unique prefix, path, @last; a group (its worst seed); or a run of another library.",
        ),
    ],
    probe: Annotated[bool, typer.Option("--probe", help="Settle what is ambiguous by short experiments.")] = False,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, why, and what to change.

    Works on runs that are finished, failed or still going. Writes diagnosis.json and diagnosis.md into the run.
    """
    from gymnasium_solver.api import texts

    found = _find(run, runs_dir)
    document = _probed(found) if probe else _diagnosed(found)
    try:
        texts.write_diagnosis(found, document)
    except SolverError as error:  # what was found is worth more than its copy on disk
        output.message(f"warning: {error}")
    if json:
        output.emit_json(document)
    else:
        output.emit(_coloured(texts.diagnosis(document)))


def _find(ref: str, runs_dir: Path | None) -> Run:
    """A run of ours; anything else at that path is imported first."""
    from gymnasium_solver.api.lookup import any_run

    run, note = any_run(ref, runs_dir)
    if note:
        output.message(note)
    return run


def _diagnosed(run: Run) -> dict[str, Any]:
    from gymnasium_solver import api

    return api.diagnose(run)


def _probed(run: Run) -> dict[str, Any]:
    from gymnasium_solver import api

    return api.probe(run, say=output.message)


def _coloured(text: str) -> str:
    import sys

    if not output.wants_colour(sys.stdout):
        return text
    lines = []
    for line in text.splitlines():
        if line.startswith(HEADINGS):
            line = f"\x1b[1m{line}\x1b[0m"
        elif (word := line.strip().split(",")[0]) in SEVERITIES:
            line = line.replace(word, f"\x1b[{SEVERITIES[word]}m{word}\x1b[0m", 1)
        lines.append(line)
    return "\n".join(lines)
