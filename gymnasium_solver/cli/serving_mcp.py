"""`gsolve mcp`: the MCP server for coding assistants."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import AllowCode, RunsDir, closed_to

EXAMPLES = """\b
Examples:
  gsolve mcp                     over stdin and stdout, for assistants
  gsolve mcp --read-only         without tools that start or stop anything
  gsolve mcp --http --port 8765  at http://127.0.0.1:8765/mcp
  GSOLVE_TOKEN=… gsolve mcp --http --host 0.0.0.0   for others too

\b
Connect Claude Code:
  claude mcp add gymnasium-solver -- gsolve mcp
"""


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="GSOLVE_TOKEN", help="What clients send as Authorization: Bearer TOKEN."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name clients may know this server by."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Leave out tools that start, stop or import anything.")
    ] = False,
    allow_code: AllowCode = None,
    runs_dir: RunsDir = None,
) -> None:
    """Serve everything to a coding assistant (MCP).

    Trainings and jobs started by an assistant outlive the server.
    """
    try:
        from gymnasium_solver.mcp.server import make_server, serve_http, serve_stdio
    except ImportError as error:
        from gymnasium_solver.errors import MissingExtraError

        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "uvicorn", "starlette", "anyio"):
            raise
        raise MissingExtraError("gsolve mcp", "mcp") from error
    server = make_server(runs_dir, read_only=read_only, allow_code=closed_to(allow_code, read_only))
    if not http:
        serve_stdio(server)
        return
    serve_http(server, host, port, token=token, allowed_hosts=allow_host or (), say=output.message)
