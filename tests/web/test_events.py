"""Live updates, over a real connection."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx

from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.web.settings import Limits, Settings
from tests.made_runs import HEALTHY, write_run
from tests.web.conftest import real_server

pytestmark = pytest.mark.integration


@contextmanager
def listening(address: str, **params: Any) -> Iterator[Iterator[tuple[str, Any]]]:
    """Events as (kind, data); heartbeats are left out after the first, which says that the stream is open."""
    with httpx.Client(timeout=10) as client, client.stream("GET", f"{address}/api/events", params=params) as response:
        assert response.status_code == 200
        events = _parsed(response.iter_lines())
        assert next(events)[0] == "heartbeat"
        yield (event for event in events if event[0] != "heartbeat")


def _parsed(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


@contextmanager
def ready(state: Any) -> Iterator[None]:
    """Once the server has looked at the directory for the first time; what it finds then is no news."""
    assert comes_true(lambda: state.events.has_looked)
    yield


def comes_true(condition: Any, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def test_a_write_is_told(runs_dir: Path, run: Run) -> None:
    writer = RunWriter.create(runs_dir, run.config, command=["test"])
    writer.metrics({"train/cnt/env_steps": 1000, "val/roll/ep_rew_mean": 1.0})
    with real_server(Settings(runs_dir)) as (address, state), ready(state), listening(address) as events:
        for steps in (2000, 3000):
            writer.metrics({"train/cnt/env_steps": steps, "val/roll/ep_rew_mean": 1.0})
            kind, data = next(events)
            assert kind == "run"
            assert data["summary"]["env_steps"] == steps
            kind, data = next(events)
            assert (kind, data["run_id"], data["to"]) == ("rows", writer.run_id, steps)
        assert data["from"] == 2000
        writer.status("completed")
        assert next(event for kind, event in events if kind == "run")["summary"]["status"] == "missed"
    writer.close()


def test_new_and_deleted_runs_are_told(runs_dir: Path, run: Run) -> None:
    with real_server(Settings(runs_dir)) as (address, state), ready(state), listening(address) as events:
        added = write_run(runs_dir, HEALTHY, seed=7)
        assert next(events)[1]["summary"]["run_id"] == added.run_id
        shutil.rmtree(run.path)
        assert next(data for kind, data in events if kind == "deleted") == {"run_id": run.run_id}


def test_one_run_only(runs_dir: Path, run: Run) -> None:
    with (
        real_server(Settings(runs_dir)) as (address, state),
        ready(state),
        listening(address, run_id=run.run_id) as events,
    ):
        write_run(runs_dir, HEALTHY, seed=7)
        with (run.path / "metrics.csv").open("a") as file:
            file.write((run.path / "metrics.csv").read_text().splitlines()[-1] + "\n")
        assert next(events)[1]["summary"]["run_id"] == run.run_id


def test_clients_that_go_away_leave_nothing_behind(runs_dir: Path) -> None:
    with real_server(Settings(runs_dir)) as (address, state), ready(state):
        before = threading.active_count()
        with listening(address), listening(address), listening(address):
            assert comes_true(lambda: state.events.listening == 3)
            watching = [thread for thread in threading.enumerate() if thread.name == "watch-runs" and thread.is_alive()]
            assert len(watching) == 1  # however many listen
        write_run(runs_dir, HEALTHY, seed=7)
        assert comes_true(lambda: state.events.listening == 0)
        assert threading.active_count() <= before + 3


def test_streams_are_bounded(runs_dir: Path) -> None:
    settings = Settings(runs_dir, limits=Limits(streams=1))
    with real_server(settings) as (address, state), ready(state), listening(address):
        response = httpx.get(f"{address}/api/events")
        assert response.status_code == 429
        assert response.headers["retry-after"]


def test_the_server_ends_while_clients_listen(runs_dir: Path) -> None:
    with httpx.Client(timeout=10) as client, real_server(Settings(runs_dir)) as (address, _):
        client.stream("GET", f"{address}/api/events").__enter__()  # real_server fails if the server does not end


def test_looking_that_fails_once_goes_on(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with real_server(Settings(runs_dir)) as (address, state), ready(state):
        refresh, failures = state.store.index.refresh, iter([OSError("the disk is away")])

        def failing_once() -> Any:
            for failure in failures:
                raise failure
            return refresh()

        monkeypatch.setattr(state.store.index, "refresh", failing_once)
        with listening(address) as events:
            added = write_run(runs_dir, HEALTHY, seed=7)
            assert next(events)[1]["summary"]["run_id"] == added.run_id
