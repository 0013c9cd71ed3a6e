"""`gsolve validate`: a PPO implementation against reference values and the published list of details."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.api.texts import validation
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, mapping
from gymnasium_solver.errors import EXIT_FAILURE

EXAMPLES = """\b
Examples:
  gsolve validate ppo                           our own
  gsolve validate ppo my_agent:ppo_loss         a loss of yours
  gsolve validate ppo agent/gae.py:compute_gae  a GAE function in a file
  gsolve validate ppo my_agent:f --map clip_range=width
\b
Exit codes:
  0 compliant    1 not compliant    2 the function cannot be called
"""

COLOURS = {"pass": "32", "present": "32", "fail": "31", "different": "33", "absent": "33"}


def validate(
    algorithm: Annotated[str, typer.Argument(metavar="ALGORITHM", help="What to validate against: ppo.")],
    function: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="A loss or GAE function: module:function or path/to/file.py:function; without it, our own PPO.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="loss|gae", help="What the function is, if its parameters do not show it."),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OURS=THEIRS", help="What a parameter means; may be given several times."),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option("--framework", metavar="numpy|jax|torch", help="Arrays to call it with [default: detected]."),
    ] = None,
    maximize: Annotated[
        bool, typer.Option("--maximize", help="The function returns the objective, to be maximised, not the loss.")
    ] = False,
    json: Json = False,
) -> None:
    """Check our PPO, or your loss or GAE, against references.

    Values and gradients are compared with those worked out independently.
    Says which known mistake a wrong function makes. The function is imported and called.
    """
    document = api.validate(
        algorithm,
        function,
        kind=kind,
        mapping=mapping(map_ or (), "advantages=signal"),
        framework=framework,
        maximize=maximize,
    )
    if json:
        output.emit_json(document)
    else:
        output.emit(_coloured(validation(document)))
    if not document["compliant"]:
        raise typer.Exit(EXIT_FAILURE)


def _coloured(text: str) -> str:
    import sys

    if not output.wants_colour(sys.stdout):
        return text
    lines = []
    for line in text.splitlines():
        word = line.partition(" ")[0]
        if line.startswith("#"):
            line = f"\x1b[1m{line}\x1b[0m"
        elif word in COLOURS:
            line = f"\x1b[{COLOURS[word]}m{word}\x1b[0m{line[len(word) :]}"
        lines.append(line)
    return "\n".join(lines)
