"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.trust import allow_everything, allowed_by_variable, close

RunRef = Annotated[str, typer.Argument(metavar="RUN", help="Run id, unique prefix of one, path, or @last.")]
RunOrGroupRef = Annotated[
    str, typer.Argument(metavar="RUN", help="Run id, unique prefix of one, path, @last, or the id of a group of seeds.")
]
CheckpointRef = Annotated[
    str,
    typer.Argument(
        metavar="RUN[/CHECKPOINT]",
        help="Run, alone (its best checkpoint) or with /@best, /@last or /epoch=N.",
    ),
]
RunsDir = Annotated[
    Path | None,
    typer.Option("--runs-dir", metavar="DIR", help="Where runs are kept [default: $GSOLVE_RUNS_DIR, or ./runs]."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Trainings at once [default: one per core].")]


def _trust(wanted: bool) -> bool:
    if wanted:
        allow_everything()
    return wanted


Trust = Annotated[
    bool,
    typer.Option(
        "--trust", callback=_trust, help="Import code that a run made elsewhere names; read it first (docs/trust.md)."
    ),
]
AllowCode = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-code",
        metavar="MODULE",
        help="A module that runs and requests may name; without, none is imported. May be given several times.",
    ),
]


def closed_to(allow_code: Sequence[str] | None, read_only: bool) -> tuple[str, ...]:
    """The modules that a server may import, to which its whole process is held from now on."""
    if allow_code and read_only:
        raise ConfigError("--read-only imports no code at all; leave out --allow-code, or --read-only")
    modules = () if read_only else tuple(allow_code or allowed_by_variable())
    close(modules)
    return modules


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; print only the result.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="FIELD=VALUE", help="Change a config field; may be given several times."),
]


def mapping(pairs: Sequence[str], example: str) -> dict[str, str]:
    """Of --map, which may be given several times."""
    found = {}
    for pair in pairs:
        ours, separator, theirs = pair.partition("=")
        if not (separator and ours.strip() and theirs.strip()):
            raise ConfigError(f"--map {pair!r} is not OURS=THEIRS; for example --map {example}")
        found[ours.strip()] = theirs.strip()
    return found
