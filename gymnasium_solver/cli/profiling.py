"""`gsolve profile`: where the time of a training goes, and what would be faster here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.api import texts
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, Set

EXAMPLES = """\b
Examples:
  gsolve profile CartPole-v1:ppo                 where the time goes
  gsolve profile CartPole-v1:ppo -s n_envs=64    with a field changed
  gsolve profile Pendulum-v1:sac --out profile/  with its files
"""


def profile(
    ref: Annotated[str, typer.Argument(metavar="ENV:VARIANT", help="Which configuration, e.g. CartPole-v1:ppo.")],
    set_: Set = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="N", help="Length of the profiled training; trials take up to ten times that."
        ),
    ] = 10.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write profile.md, profile.png and profile.json there.")
    ] = None,
    json: Json = False,
) -> None:
    """Say where the time of a training goes, and what limits it.

    Also which n_envs, engine and number of threads are fastest here.
    Trains for some seconds in a temporary directory; no run is left behind.
    """
    document = api.profile(ref, overrides=set_ or (), seconds=seconds, out=out, say=output.message)
    output.emit_json(document) if json else output.emit(texts.profile(document))
