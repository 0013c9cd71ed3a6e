"""A client of the SDK that asks one question, and the servers it asks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("mcp", reason="needs the [mcp] extra")

import anyio
from mcp import Client, MCPError, StdioServerParameters

from gymnasium_solver.mcp.server import make_server

__all__ = [
    "Answer",
    "Client",
    "StdioServerParameters",
    "ask",
    "free_port",
    "http_server",
    "make_server",
    "over_stdio",
    "read",
    "talk",
]


class Answer(NamedTuple):
    document: dict[str, Any]
    text: str
    error: str | None  # what a failed call said
    progress: list[tuple[float, float | None, str | None]]


def ask(server: Any, tool: str, **arguments: Any) -> Answer:
    """Call a tool of a server object, a URL, or the parameters of a process."""
    return talk(server, [(tool, arguments)])[0]


def talk(server: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """Several calls in one connection."""

    async def go() -> list[Answer]:
        answers = []
        async with Client(server) as client:
            for tool, arguments in calls:
                progress: list[tuple[float, float | None, str | None]] = []

                async def note(done: float, total: float | None, text: str | None, into: list[Any] = progress) -> None:
                    into.append((done, total, text))

                result = await client.call_tool(tool, arguments, progress_callback=note)
                text = result.content[0].text
                answers.append(
                    Answer(result.structured_content or {}, text, text if result.is_error else None, progress)
                )
        return answers

    return anyio.run(go)


def listed(server: Any) -> dict[str, Any]:
    """The tools that it offers, by name."""

    async def go() -> dict[str, Any]:
        async with Client(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return anyio.run(go)


def read(server: Any, uri: str) -> tuple[str, str | None]:
    """The text of a resource, or what the server said instead."""

    async def go() -> tuple[str, str | None]:
        async with Client(server) as client:
            try:
                return (await client.read_resource(uri)).contents[0].text, None
            except MCPError as error:
                return "", str(error)

    return anyio.run(go)


def over_stdio(runs_dir: Path, *options: str) -> StdioServerParameters:
    words = ["-m", "gymnasium_solver", "mcp", "--runs-dir", str(runs_dir), *options]
    return StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ), cwd=runs_dir.parent)


@contextmanager
def http_server(runs_dir: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, and the process."""
    port = free_port()
    words = ["gymnasium_solver", "mcp", "--http", "--port", str(port), "--runs-dir", str(runs_dir), *options]
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=runs_dir.parent,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "serving MCP" in process.stderr.readline()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
