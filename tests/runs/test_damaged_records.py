"""One directory whose files make no sense takes no others away: it is listed, with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.cli.main import main
from gymnasium_solver.runs.index.index import Index
from gymnasium_solver.runs.reader import Run, list_runs
from gymnasium_solver.runs.writer import RunWriter

NewRun = Callable[..., RunWriter]
ODD = (-1, 10**400, float("nan"), "", "\ud800", [], {"a": 1}, ["running"], True)
NAMES = (
    *("status", "started_at", "updated_at", "heartbeat", "elapsed_s", "threshold", "pid", "process", "host"),
    *("group", "parent", "error", "solved", "stopped_by", "max_env_steps"),
)
DAMAGED = {
    "cut off": b'{"status": "run',
    "no object": b"[]",
    "nested": b'{"a":' * 5000,
    "no text": b"\xff\x00\x01",
    "long number": b'{"pid": ' + b"9" * 5000 + b"}",
    "huge": b'{"a": "' + b"x" * (9 << 20) + b'"}',
}


@pytest.fixture(autouse=True)
def sound(new_run: NewRun) -> RunWriter:
    """A run beside those that are damaged."""
    return new_run(rows=3, seed=1)


def listed(runs_dir: Path) -> list[dict[str, Any]]:
    """Once it is certain that the terminal, and the index, which the servers ask, have them all."""
    assert main(["runs", "--runs-dir", str(runs_dir)]) == 0
    assert main(["runs", "--json", "--runs-dir", str(runs_dir)]) == 0
    with Index.open(runs_dir) as index:
        index.refresh()
        total, rows = index.find()
    summaries = [run.summary() for run in list_runs(runs_dir)]
    assert total == len(summaries)
    assert {row["run_id"]: row["reason"] for row in rows} == {one["run_id"]: one["reason"] for one in summaries}
    return summaries


@pytest.mark.parametrize("name", ["status.json", "config.json"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_listed_with_its_reason(damage: str, name: str, new_run: NewRun, runs_dir: Path) -> None:
    broken = new_run(rows=3, seed=2).path
    (broken / name).write_bytes(DAMAGED[damage])
    summaries = {one["run_id"]: one for one in listed(runs_dir)}
    assert len(summaries) == 2
    assert summaries[broken.name]["status"] == "failed"
    assert summaries[broken.name]["reason"].startswith(f"{name} is damaged: ")
    (beside,) = (one for run_id, one in summaries.items() if run_id != broken.name)
    assert beside["status"] == "running"


def test_odd_values_of_a_status(new_run: NewRun, runs_dir: Path) -> None:
    writer = new_run(rows=1, seed=2)
    status = json.loads((writer.path / "status.json").read_bytes())
    for name in NAMES:
        for number, value in enumerate(ODD):
            path = runs_dir / f"odd-{name}-{number}"
            path.mkdir()
            (path / "config.json").write_bytes((writer.path / "config.json").read_bytes())
            (path / "status.json").write_text(json.dumps(status | {name: value}))
    assert len(listed(runs_dir)) == 2 + len(NAMES) * len(ODD)
    assert Run(runs_dir / "odd-started_at-5").problem == "status.json is damaged: its started_at is not text"
    assert Run(writer.path).problem is None


def test_a_pipe_in_place_of_a_file_is_not_waited_for(new_run: NewRun, runs_dir: Path) -> None:
    import os

    broken = new_run(rows=1, seed=2).path
    (broken / "status.json").unlink()
    os.mkfifo(broken / "status.json")
    assert Run(broken).problem == "status.json cannot be read: it is no regular file"
    assert len(listed(runs_dir)) == 2
