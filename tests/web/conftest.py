"""Servers on a directory of made-up runs: in this process, and on a real port."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gymnasium_solver.runs.reader import Run
from gymnasium_solver.web.settings import Settings
from tests.made_runs import FAILING, HEALTHY, write_run

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs, one of them healthy."""
    runs_dir = tmp_path_factory.mktemp("made") / "runs"
    write_run(runs_dir, HEALTHY, solved=True, seed=1)
    write_run(runs_dir, FAILING, seed=2)
    write_run(runs_dir, FAILING, ref="CartPole-v1:a2c", status="failed", seed=3)
    return runs_dir


@pytest.fixture
def runs_dir(made_runs: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    shutil.copytree(made_runs, tmp_path / "runs", symlinks=True)
    return tmp_path / "runs"


@pytest.fixture
def run(runs_dir: Path) -> Run:
    return Run(next(runs_dir.glob("*-ppo-s2-*")))


Connect = Callable[..., "TestClient"]


@pytest.fixture
def connect(runs_dir: Path) -> Iterator[Connect]:
    """A client of a server with these settings."""
    from starlette.testclient import TestClient

    from gymnasium_solver.web.app import create_app

    with ExitStack() as stack:

        def connect(address: str = "127.0.0.1", base_url: str = "http://127.0.0.1:8080", **fields: Any) -> TestClient:
            app = create_app(Settings(**{"runs_dir": runs_dir, **fields}))
            client = TestClient(app, base_url, raise_server_exceptions=False, client=(address, 50_000))
            return stack.enter_context(client)

        yield connect


@pytest.fixture
def client(connect: Connect) -> TestClient:
    return connect()


def get(client: TestClient, path: str, expected: int = 200, **params: Any) -> Any:
    """What /api answers, which is JSON as everyone reads it."""
    response = client.get(f"/api{path}", params=params)
    assert response.status_code == expected, response.text
    json.loads(response.text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    return response.json()


@contextmanager
def real_server(settings: Settings) -> Iterator[tuple[str, Any]]:
    """On a free port, in a thread: its address, and the application's state."""
    import uvicorn

    from gymnasium_solver.api.listening import listen
    from gymnasium_solver.web.app import create_app

    listening = listen(settings.host, 0)
    port = listening.getsockname()[1]
    app = create_app(replace(settings, port=port))
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}", app.app.state
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        assert not thread.is_alive(), "the server did not end"
