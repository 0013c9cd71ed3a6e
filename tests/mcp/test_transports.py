"""The server as a process: over stdio, over HTTP, killed and started again."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the [mcp] extra")

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from gymnasium_solver.runs.reader import Run
from tests.mcp.talking import Client, StdioServerParameters, ask, free_port, http_server, over_stdio, talk

pytestmark = pytest.mark.integration

LOUD = """
import os, sys
from pathlib import Path
from gymnasium_solver.mcp.server import make_server, serve_stdio
from gymnasium_solver.runs.reader import Run
quiet = Run.log_lines
def loud(run):
    print("an environment says hello")
    os.write(1, b"and so does its C code\\n")
    return quiet(run)
Run.log_lines = loud
serve_stdio(make_server(Path(sys.argv[1])))
"""


def test_over_stdio(runs_dir: Path, failed: Run, solved: Run) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_runs", {}),
        ("diagnose_run", {"run_id": failed.run_id}),
        ("get_run_info", {"run_id": "nothing"}),
    ]
    runs, diagnosis, unknown = talk(over_stdio(runs_dir), calls)
    assert runs.document["total"] == 2
    assert diagnosis.document["bottlenecks"]
    assert "call list_runs" in str(unknown.error)


def test_ctrl_c_ends_it_in_a_terminal(runs_dir: Path) -> None:
    """Its stdin stays open and silent, as a terminal's does."""
    parameters = over_stdio(runs_dir)
    command = [parameters.command, *parameters.args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        server.stdin.flush()
        assert server.stdout.readline()  # it is at work
        server.send_signal(signal.SIGINT)
        try:
            assert server.wait(timeout=10) == 130
        finally:
            server.kill()
        assert server.stderr is not None and not server.stderr.read()


def test_what_is_printed_does_not_disturb_the_protocol(runs_dir: Path, solved: Run) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-c", LOUD, str(runs_dir)])
    first, second = talk(server, [("get_run_logs", {"run_id": "@last"}), ("list_runs", {})])
    assert first.error is None and second.document["total"] == 1


def test_over_http_with_a_token_and_only_under_its_own_name(runs_dir: Path, solved: Run) -> None:
    with http_server(runs_dir, "--token", "open sesame", "--read-only") as (url, _):

        async def names(token: str) -> set[str]:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                answer = await client.call_tool("list_runs", {})
                assert not answer.is_error
                return {tool.name for tool in (await client.list_tools()).tools}

        tools = anyio.run(names, "open sesame")
        assert "diagnose_run" in tools and "start_training" not in tools
        with pytest.raises(BaseExceptionGroup):
            anyio.run(names, "guess")
        assert httpx2.post(url, json={}).status_code == 401
        allowed = {"Authorization": "Bearer open sesame", "Accept": "application/json, text/event-stream"}
        foreign = httpx2.post(url, json={}, headers=allowed | {"Host": "evil.example"})
        assert foreign.status_code == 421
        page = httpx2.post(url, json={}, headers=allowed | {"Origin": "http://evil.example"})
        assert page.status_code == 403


def test_other_addresses_need_a_token(runs_dir: Path) -> None:
    words = ["-m", "gymnasium_solver", "mcp", "--http", "--host", "0.0.0.0", "--port", str(free_port())]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "needs a token" in done.stderr and "serving" not in done.stderr


def test_a_port_that_is_taken(runs_dir: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["-m", "gymnasium_solver", "mcp", "--http", "--port", str(taken.getsockname()[1])]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "cannot listen" in done.stderr and "--port" in done.stderr


@pytest.mark.slow
def test_a_training_outlives_its_server_and_is_found_by_the_next(runs_dir: Path) -> None:
    with http_server(runs_dir) as (url, process):
        started = ask(
            url,
            "start_training",
            config_id="CartPole-v1:ppo",
            max_env_steps=50_000_000,
            overrides={"stop_when_solved": False},
        )
        run_id = started.document["run_id"]
        assert [text for _, _, text in started.progress][-1] == f"{run_id} has begun"
        process.kill()
        process.wait()
    with http_server(runs_dir) as (url, _):
        status = ask(url, "get_training_status", run_id=run_id, wait_seconds=2).document["trainings"][0]
        assert status["status"] == "running"
        everything = ask(url, "get_training_status").document["trainings"]
        assert [training["run_id"] for training in everything] == [run_id]
        stopped = ask(url, "stop_training", run_id=run_id).document
        assert stopped["was_running"] and stopped["status"] == "interrupted"
        assert not ask(url, "stop_training", run_id=run_id).document["was_running"]
        again = ask(url, "resume_training", run_id=run_id)
        assert again.document["run_id"] == run_id
        assert "still training" in str(ask(url, "resume_training", run_id=run_id).error)
        ask(url, "stop_training", run_id=run_id)


@pytest.mark.slow
def test_seeds_are_trained_as_a_group(runs_dir: Path) -> None:
    with http_server(runs_dir) as (url, _):
        started = ask(url, "start_training", config_id="CartPole-v1:ppo", max_env_steps=2_000, seeds=2).document
        assert started["is_group"]
        for _ in range(40):
            answer = ask(url, "get_training_status", run_id=started["run_id"], wait_seconds=1).document
            if answer["trainings"][0]["status"] != "running":
                break
        assert len(answer["trainings"][0]["seeds"]) == 2
        assert ask(url, "list_runs", group=started["run_id"]).document["total"] == 2
        assert ask(url, "compare_runs", run_ids=[started["run_id"]]).error is None


async def _answers(token: str, requests: list[tuple[str, str]], clock: list[float]) -> list[httpx2.Response]:
    """Of a guarded app that says yes to everyone it is asked by; a request is an address and its Authorization."""
    from starlette.responses import PlainTextResponse

    from gymnasium_solver.mcp.server import _Guarded

    app = _Guarded(PlainTextResponse("yes"), token, clock=lambda: clock[0])
    found = []
    for address, given in requests:
        transport = httpx2.ASGITransport(app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
            found.append(await client.get("/mcp", headers={"Authorization": given} if given else {}))
    return found


def test_the_scheme_is_written_in_any_case() -> None:
    given = ["Bearer secret", "bearer secret", "BEARER  secret", "Basic secret", "secret", "Bearer secre", ""]
    answers = anyio.run(_answers, "secret", [("a", one) for one in given], [0.0])
    assert [answer.status_code for answer in answers] == [200, 200, 200, 401, 401, 401, 401]


def test_who_guesses_has_to_wait() -> None:
    guesses = [("bad", f"Bearer {number}") for number in range(20)]
    answers = anyio.run(_answers, "secret", [*guesses, ("bad", "Bearer secret"), ("good", "Bearer secret")], [7.0])
    assert [answer.status_code for answer in answers] == [401] * 20 + [429, 200]
    assert answers[20].headers["retry-after"] == "60"
    without = anyio.run(_answers, "secret", [("a", "")] * 30 + [("a", "Bearer secret")], [0.0])
    assert [answer.status_code for answer in without] == [401] * 30 + [200], "asking without any is no guess"

    class Clock(list[float]):
        def __getitem__(self, _: Any) -> Any:
            self.append(30.0)
            return float(sum(list(self)))  # half a minute passes between any two looks at it

    later = anyio.run(_answers, "secret", [*guesses, ("bad", "Bearer secret")], Clock())
    assert later[-1].status_code == 200


def test_a_short_token_is_refused_where_others_can_try(runs_dir: Path) -> None:
    words = ["-m", "gymnasium_solver", "mcp", "--http", "--host", "0.0.0.0", "--port", str(free_port()), "--token", "x"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "16 or more" in done.stderr and "serving" not in done.stderr


@pytest.mark.parametrize("host, name", [("127.0.0.2", "127.0.0.2"), ("::1", "[::1]"), ("0.0.0.0", "0.0.0.0")])
def test_the_address_that_is_printed_is_served(host: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gymnasium_solver.mcp import server

    assert f"{name}:*" in server._security(host, ()).allowed_hosts
    said: list[str] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
    server.serve_http(server.make_server(), host, free_port(), token="t" * 16, say=said.append)
    assert f"http://{name}:" in said[0]
