"""Experiments are found again by their directory, and go on."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.api.made_sweep import make_sweep
from tests.mcp.talking import ask, make_server

pytestmark = pytest.mark.integration


def write(runs_dir: Path, name: str, **record: Any) -> str:
    path = runs_dir / name
    path.mkdir()
    (path / "experiment.json").write_text(json.dumps({"experiment": name, **record}))
    return name


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of jobs, none of which is started."""
    words: list[list[str]] = []
    monkeypatch.setattr("gymnasium_solver.mcp.tools.experiments.start_job", lambda *given: words.append(given[3]))
    return words


def test_experiments_are_listed_with_how_they_stand(runs_dir: Path, tmp_path: Path) -> None:
    here = {"host": socket.gethostname(), "status": "running"}
    write(runs_dir, "1-verify", kind="verify", asked={"source": "CartPole-v1:ppo"}, status="interrupted")
    write(runs_dir, "2-solve", kind="solve", asked={"env_id": "CartPole-v1"}, verdict="v" * 1000, status="solved")
    write(runs_dir, "3-optimize", kind="optimize", **here, pid=os.getpid())
    write(runs_dir, "4-optimize", kind="optimize", **here, pid=os.getpid(), process="another/1")
    write(runs_dir, "5-optimize", kind="optimize", status="running", pid=1, host="elsewhere")
    write(tmp_path, "outside", kind="solve")
    (runs_dir / "link").symlink_to(tmp_path / "outside", target_is_directory=True)
    (runs_dir / "6-damaged").mkdir()
    (runs_dir / "6-damaged" / "experiment.json").write_text("{")
    answer = ask(make_server(runs_dir), "list_experiments").document
    rows = {row["id"]: row for row in answer["experiments"]}
    assert list(rows) == ["6-damaged", "5-optimize", "4-optimize", "3-optimize", "2-solve", "1-verify"]
    assert [row["status"] for row in answer["experiments"][1:]] == [
        *("unknown (on elsewhere)", "crashed", "running", "solved", "interrupted"),
    ]
    assert rows["1-verify"]["source"] == "CartPole-v1:ppo" and rows["2-solve"]["source"] == "CartPole-v1"
    assert rows["1-verify"]["continue_with"] == "apply_and_verify(resume='1-verify')"
    assert rows["4-optimize"]["continue_with"] == "optimize_config(resume='4-optimize')"
    assert rows["3-optimize"]["continue_with"] is None and rows["2-solve"]["continue_with"] is None
    assert rows["2-solve"]["verdict"] == "see quoted: experiments[4].verdict"
    assert len(answer["quoted"]["experiments[4].verdict"]) == 500
    few = ask(make_server(runs_dir), "list_experiments", limit=1).document
    assert len(few["experiments"]) == 1 and "1 of 6 experiments: raise limit" in few["truncated"][0]


@pytest.mark.parametrize(
    "tool, kind", [("apply_and_verify", "verify"), ("optimize_config", "optimize"), ("solve_environment", "solve")]
)
def test_an_experiment_goes_on_by_its_name(runs_dir: Path, started: list[list[str]], tool: str, kind: str) -> None:
    name = write(runs_dir, f"20260101-{kind}-1a2b", kind=kind, status="interrupted")
    server = make_server(runs_dir)
    ask(server, tool, resume="20260101", budget="1m")
    assert started == [
        [kind, "--budget", "1m", "--resume", name, "--runs-dir", str(runs_dir), "--json"],
    ]
    said = str(ask(server, tool, resume=name, overrides={"gamma": 0.9}).error)
    assert "leave out overrides" in said
    assert "list_experiments" in str(ask(server, tool, resume="nothing").error)
    assert "list_experiments" in str(ask(server, tool, resume="").error)
    assert "list_experiments" in str(ask(server, tool).error) or "list_runs" in str(ask(server, tool).error)
    assert len(started) == 1


def test_what_is_at_work_or_of_another_kind_does_not_go_on(runs_dir: Path, started: list[list[str]]) -> None:
    server = make_server(runs_dir)
    write(runs_dir, "a", kind="solve", status="running", pid=os.getpid(), host=socket.gethostname())
    write(runs_dir, "b", kind="solve", status="running", pid=1, host="elsewhere")
    assert "is running" in str(ask(server, "solve_environment", resume="a").error)
    assert "elsewhere" in str(ask(server, "solve_environment", resume="b").error)
    assert "solve_environment" in str(ask(server, "optimize_config", resume="a").error)
    assert not started


def test_a_sweep_is_listed_and_what_it_found_is_scored(runs_dir: Path, started: list[list[str]]) -> None:
    pytest.importorskip("optuna", reason="the [search] extra is not installed")
    make_sweep(runs_dir)
    server = make_server(runs_dir)
    answer = ask(server, "list_experiments").document
    (row,) = answer["experiments"]
    assert (row["id"], row["kind"], row["status"]) == ("own", "sweep", "completed")
    assert row["source"] == "CartPole-v1:ppo" and answer["quoted"]["experiments[0].verdict"].startswith("Best: trial 7")
    assert row["continue_with"] is None
    ask(server, "score_run", run_id="own", episodes=5)
    assert started == [["score", "--episodes", "5", "--runs-dir", str(runs_dir), "--json", "--", "own"]]
    assert "list_runs" in str(ask(server, "score_run", run_id="../own").error)
