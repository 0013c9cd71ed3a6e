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
  gsolve diagnose @last                what is wrong with the newest run, and what to change
  gsolve diagnose @last --probe        settle what is ambiguous by short experiments
  gsolve diagnose logs/sb3/            a run of another library (see gsolve import --help)
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
    """Say what is wrong with a run, why, and exactly what to change.

    Works on runs that are finished, failed or still going. Writes diagnosis.json and diagnosis.md into the run.
    """
    from gymnasium_solver.diagnose.text import to_markdown
    from gymnasium_solver.runs.diagnosis_files import write_diagnosis

    found = _find(run, runs_dir)
    document = _probed(found) if probe else _diagnosed(found)
    text = to_markdown(document)
    try:
        write_diagnosis(found, document, text)
    except SolverError as error:  # what was found is worth more than its copy on disk
        output.message(f"warning: {error}")
    if json:
        output.emit_json(document)
    else:
        output.emit(_coloured(text))


def _find(ref: str, runs_dir: Path | None) -> Run:
    """A run of ours; anything else at that path is imported first."""
    from gymnasium_solver.api.groups import Group, find
    from gymnasium_solver.api.lookup import telling_run
    from gymnasium_solver.errors import NotFoundError
    from gymnasium_solver.runs import layout
    from gymnasium_solver.runs.reader import Run

    try:
        found = find(ref, runs_dir)
    except NotFoundError:
        path = Path(ref).expanduser()
        if not ref.strip() or not _exists(path):
            raise
        if (path / layout.METRICS).is_file() and (path / layout.STATUS).is_file():  # ours, its config lost
            return Run(path)
        from gymnasium_solver.runs.foreign import import_run

        imported = import_run(path, runs_dir)
        output.message(f"imported {path} as {imported.run_id}")
        return imported
    if not isinstance(found, Group):
        return found
    chosen = telling_run(found)
    what = "of the configuration it chose" if found.is_experiment else "the seed that did worst"
    output.message(f"{found.group_id} is a group; this is {chosen.run_id}, {what}")
    return chosen


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no name that a file could have
        return False


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
