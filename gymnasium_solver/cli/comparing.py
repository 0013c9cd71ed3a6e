"""`gsolve compare`: runs side by side, over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.api.texts import comparison, write_comparison
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir

EXAMPLES = """\b
Examples:
  gsolve compare GROUP GROUP                         groups of seeds, or runs
  gsolve compare GROUP GROUP --out comparison/       with a page and pictures
  gsolve compare RUN RUN RUN RUN --group-by algo_id  sides by a config field
"""


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN", help="Run ids, unique prefixes, paths, @last, or ids of groups of seeds."),
    ],
    group_by: Annotated[
        str | None,
        typer.Option(
            "--group-by",
            metavar="FIELD",
            help="Sides by variant, group, library, run or a config field [runs equal apart from the seed].",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="SIDE", help="What to compare with: a side's name, run or group."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write comparison.md, .json and pictures there.")
    ] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Compare runs, or groups of seeds: settings and results.

    Results come with their statistics over seeds, and with losses, gradients and schedules.
    Runs that differ in the seed alone form a side; the first side is the baseline. A difference is claimed only where
    the seeds show it.
    """
    document = api.compare(*runs, group_by=group_by, baseline=baseline, runs_dir=runs_dir)
    if json:
        output.emit_json(document)
    else:
        _emit(document)
    if out is not None:
        output.message(f"wrote {write_comparison(document, out)}")


def _emit(document: dict[str, Any]) -> None:
    import sys

    heading, sections = comparison(document)
    bold = ("\x1b[1m", "\x1b[0m") if output.wants_colour(sys.stdout) else ("", "")
    output.emit(heading.join(bold))
    for section in sections:
        if section.title == "Seeds" and len(document["sides"]) > 1:  # the page of --out has them
            continue
        output.emit("\n" + section.title.join(bold))
        if section.rows:
            output.emit_table(section.columns, section.rows)
        for note in section.notes:
            output.emit_prose(note)
