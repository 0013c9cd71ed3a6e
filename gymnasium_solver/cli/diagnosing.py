"""`gsolve diagnose`: what is wrong with a run, why, and what to change."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.api import texts
from gymnasium_solver.api.lookup import any_run
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir, Trust
from gymnasium_solver.errors import SolverError

EXAMPLES = """\b
Examples:
  gsolve diagnose @last          what is wrong, and what to change
  gsolve diagnose @last --full   with all of the evidence
  gsolve diagnose @last --probe  settle by experiment what is ambiguous
  gsolve diagnose logs/sb3/      a run of another library
"""


def diagnose(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|GROUP|PATH",
            help="Run id, unique prefix, path, @last; a group (its worst seed); or a run of another library.",
        ),
    ],
    probe: Annotated[bool, typer.Option("--probe", help="Settle what is ambiguous with short experiments.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All of it: curves, evidence, every cause and change.")] = False,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, why, and what to change.

    Works on finished, failed and running runs. On a terminal the verdict, the primary cause and the command
    come first, and the rest with --full; a file or a pipe gets all of it, as Markdown. Writes diagnosis.json and
    diagnosis.md into the run.
    """
    found, note = any_run(run, runs_dir)  # anything that is no run of ours is imported first
    if note:
        output.message(note)
    document = api.probe(found, say=output.message) if probe else api.diagnose(found)
    try:
        texts.write_diagnosis(found, document)
    except SolverError as error:  # what was found is worth more than its copy on disk
        output.message(f"warning: {error}")
    if json:
        output.emit_json(document)
    elif output.is_terminal(sys.stdout):
        from gymnasium_solver.cli.diagnosis_view import emit_diagnosis

        emit_diagnosis(document, full)
    else:
        output.emit(texts.diagnosis(document))
