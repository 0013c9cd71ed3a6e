"""Finding runs and telling how they are."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs.reader import Run, default_runs_dir, find_run, list_runs, split_checkpoint_ref
from gymnasium_solver.runs.writer import RunWriter

NewRun = Callable[..., RunWriter]


def test_the_runs_directory_is_explicit_or_from_the_environment_or_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSOLVE_RUNS_DIR", raising=False)
    assert default_runs_dir() == Path("runs")
    monkeypatch.setenv("GSOLVE_RUNS_DIR", "/elsewhere")
    assert default_runs_dir() == Path("/elsewhere")
    assert default_runs_dir(Path("given")) == Path("given")


def test_a_run_is_found_by_id_prefix_path_and_last(new_run: NewRun, runs_dir: Path) -> None:
    first, second = new_run(env_id="A-v0"), new_run(env_id="B-v0")
    for ref in (first.run_id, first.run_id[:-2], str(first.path), f"{first.path}/"):
        assert find_run(ref, runs_dir).run_id == first.run_id
    for ref in ("@last", f"{runs_dir}/@last"):
        assert find_run(ref, runs_dir).run_id == second.run_id


def test_last_is_found_without_its_link(new_run: NewRun, runs_dir: Path) -> None:
    new_run()
    newest = new_run()
    (runs_dir / "@last").unlink()
    assert find_run("@last", runs_dir).run_id == newest.run_id
    (runs_dir / "@last").symlink_to("deleted")
    assert find_run("@last", runs_dir).run_id == newest.run_id


def test_an_ambiguous_prefix_lists_the_candidates(new_run: NewRun, runs_dir: Path) -> None:
    ids = [new_run().run_id for _ in range(2)]
    with pytest.raises(NotFoundError, match="beginning of 2 runs") as caught:
        find_run(ids[0][:8], runs_dir)
    assert all(run_id in str(caught.value) for run_id in ids)


def test_a_run_that_does_not_exist_names_the_nearest(new_run: NewRun, runs_dir: Path) -> None:
    with pytest.raises(NotFoundError, match="has no runs; start one with: gsolve train"):
        find_run("@last", runs_dir)
    run_id = new_run().run_id
    with pytest.raises(NotFoundError, match=f"did you mean {run_id}"):
        find_run(run_id.replace("CartPole", "CratPole"), runs_dir)
    with pytest.raises(NotFoundError, match=f"did you mean {run_id}"):
        find_run("cartpole", runs_dir)
    with pytest.raises(NotFoundError, match=f"the newest are {run_id}"):
        find_run("?", runs_dir)
    with pytest.raises(NotFoundError):
        find_run("", runs_dir)


def test_the_list_is_newest_first_and_ignores_junk(new_run: NewRun, runs_dir: Path) -> None:
    ids = [new_run().run_id for _ in range(4)]
    (runs_dir / "file").write_text("")
    (runs_dir / "20990101-000000-half-written").mkdir()
    (runs_dir / "loop").symlink_to("loop")
    (runs_dir / ids[1] / "status.json").write_text("{ half")
    (runs_dir / ids[1] / "metrics.csv").unlink()
    found = [run.run_id for run in list_runs(runs_dir)]
    assert sorted(found) == sorted(ids)
    assert [run_id for run_id in found if run_id != ids[1]] == [ids[3], ids[2], ids[0]]
    assert all(run.summary()["run_id"] for run in list_runs(runs_dir))
    assert list_runs(runs_dir / "absent") == []


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("RUN", ("RUN", None)),
        ("@last", ("@last", None)),
        ("RUN/@best", ("RUN", "best")),
        ("@last/@last", ("@last", "last")),
        ("RUN/epoch=3", ("RUN", "epoch=3")),
        ("runs/RUN", ("runs/RUN", None)),
        ("runs/RUN/@best", ("runs/RUN", "best")),
        ("runs/RUN/checkpoints/best.safetensors", ("runs/RUN", "best")),
    ],
)
def test_a_checkpoint_reference_is_run_and_name(ref: str, expected: tuple[str, str | None]) -> None:
    assert split_checkpoint_ref(ref) == expected


def test_the_path_of_the_last_run_is_a_run(new_run: NewRun, runs_dir: Path) -> None:
    new_run()
    assert split_checkpoint_ref(f"{runs_dir}/@last") == (f"{runs_dir}/@last", None)


def _dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.integration
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "running"),
        ({"pid": "dead"}, "crashed"),
        ({"pid": "dead", "status": "completed"}, "completed"),
        ({"process": "another-boot/1"}, "crashed"),  # the process id was given to somebody else
        ({"host": "elsewhere", "heartbeat": 30.0}, "running"),
        ({"host": "elsewhere", "heartbeat": 90.0}, "crashed"),
        ({"pid": None, "host": None}, "running"),
        ({"pid": 2**80}, "running"),  # no process has this id: a damaged field, so the heartbeat decides
    ],
)
def test_a_run_whose_process_is_gone_has_crashed(new_run: NewRun, change: dict[str, Any], expected: str) -> None:
    path = new_run().path
    status = json.loads((path / "status.json").read_text()) | change
    if status["pid"] == "dead":
        status["pid"] = _dead_process()
    if "heartbeat" in change:
        status["heartbeat"] = time.time() - change["heartbeat"]
    (path / "status.json").write_text(json.dumps(status))
    assert Run(path).status["status"] == expected


@pytest.mark.integration
def test_a_killed_process_that_was_not_collected_has_crashed(new_run: NewRun) -> None:
    path = new_run().path
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and still is to be collected
    status = {"status": "running", "pid": process.pid, "host": socket.gethostname()}
    (path / "status.json").write_text(json.dumps(status))
    assert Run(path).status["status"] == "crashed"
    process.wait()


def test_a_lost_status_is_unknown(new_run: NewRun) -> None:
    path = new_run().path
    (path / "status.json").unlink()
    assert Run(path).status == {"status": "unknown"}


def test_the_summary_prefers_evaluations(new_run: NewRun) -> None:
    writer = new_run(rows=12)
    writer.status("completed", threshold=290.0)
    summary = Run(writer.path).summary()
    assert summary["best_reward"] == summary["last_reward"] == 300.0
    assert (summary["env_steps"], summary["epochs"]) == (12 * 256, 12)
    assert summary["solved"] is True
    assert (summary["env_id"], summary["algo_id"], summary["seed"]) == ("CartPole-v1", "ppo", 3)
    json.dumps(summary, allow_nan=False)


def test_the_summary_of_an_empty_run_is_plain_json(new_run: NewRun) -> None:
    summary = Run(new_run().path).summary()
    assert summary["best_reward"] is None
    assert summary["solved"] is False
    json.dumps(summary, allow_nan=False)


def test_a_running_run_is_read_anew(new_run: NewRun) -> None:
    writer = new_run(rows=1)
    run = Run(writer.path)
    assert len(run.metrics["train/cnt/epochs"]) == 1
    writer.metrics({"train/cnt/epochs": 2, "new": 1.0})
    assert len(run.metrics["train/cnt/epochs"]) == 2
    assert "new" in run.metrics


@pytest.mark.integration
def test_reading_imports_no_jax() -> None:
    code = "import sys; import gymnasium_solver.runs.reader, gymnasium_solver.runs.writer, gymnasium_solver.runs.report"
    check = "; assert not {'jax', 'matplotlib', 'torch'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code + check], check=True, env=os.environ)
