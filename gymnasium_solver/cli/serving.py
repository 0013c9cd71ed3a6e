"""`gsolve serve`: the REST API and the page, in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnasium_solver.api.lookup import runs_directory
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import AllowCode, RunsDir, closed_to

EXAMPLES = """\b
Examples:
  gsolve serve --open                                     here alone
  gsolve serve --host 0.0.0.0 --token $TOKEN --read-only  for others
"""


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="Address to listen on; any but this machine's own needs a token.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes any that is free.")] = 8080,
    runs_dir: RunsDir = None,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="GSOLVE_TOKEN", help="Token clients must send; without one, any local user."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nobody can start or stop a training.")] = False,
    allow_code: AllowCode = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve the page and the REST API until interrupted.

    The page is at /, the description of the API at /api/openapi.json. Trainings started there outlive the server.
    """
    from gymnasium_solver.web import server
    from gymnasium_solver.web.settings import Settings

    modules = closed_to(allow_code, read_only)
    chosen = Settings(runs_directory(runs_dir), host, port, token or None, read_only, allow_code=modules)
    server.serve(chosen, say=output.message, open_page=open_)
