"""Verbs that look at runs, on run directories made here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.runs.writer import RunWriter


def make_run(runs_dir: Path, *, status: str = "completed", epochs: int = 20, seed: int = 1) -> RunWriter:
    config = to_dict(load_config("CartPole-v1:ppo", {"seed": seed, "reward_threshold": 475.0}))
    writer = RunWriter.create(runs_dir, config, command=["gsolve"])
    writer.log("INFO", "started")
    for epoch in range(1, epochs + 1):
        row = {"train/cnt/env_steps": epoch * 256.0, "train/cnt/epochs": float(epoch)}
        row |= {"train/roll/ep_rew_mean": 20.0 * epoch, "train/metrics/kl_divergence": 0.01}
        if epoch % 5 == 0:
            row["val/roll/ep_rew_mean"] = 25.0 * epoch
        writer.metrics(row)
    writer.log("WARNING", "the KL estimate is negative")
    writer.checkpoint(["epoch=20", "last", "best"], {"w": np.zeros(2, np.float32)}, {"epoch": 20})
    writer.status(status, env_steps=epochs * 256, solved=status == "completed")
    return writer


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    writer = make_run(tmp_path / "runs")
    writer.close()
    return writer


def test_no_runs_is_no_error(gsolve: Callable[..., Any]) -> None:
    result = gsolve("runs")
    assert (result.code, result.out) == (0, "")
    assert "gsolve train" in result.err
    assert json.loads(gsolve("runs", "--json").out) == []


def test_runs_lists_newest_first(gsolve: Callable[..., Any], run: RunWriter, tmp_path: Path) -> None:
    make_run(tmp_path / "runs", status="failed", seed=2).close()
    result = gsolve("runs")
    assert result.code == 0
    header, first, second = result.out.splitlines()
    assert header.startswith("RUN")
    assert "-s2-" in first + second
    assert "solved" in result.out
    assert "failed" in result.out
    assert len(json.loads(gsolve("runs", "--json", "--limit", "1").out)) == 1


def test_runs_dir_by_option_and_environment(
    gsolve: Callable[..., Any], run: RunWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert run.run_id in gsolve("runs", "--runs-dir", str(tmp_path / "runs")).out
    monkeypatch.setenv("GSOLVE_RUNS_DIR", str(tmp_path / "runs"))
    assert run.run_id in gsolve("runs").out


@pytest.mark.parametrize("verb", ["show", "logs", "status", "report", "checkpoints", "stop"])
def test_verbs_take_any_reference_and_json(gsolve: Callable[..., Any], run: RunWriter, verb: str) -> None:
    for reference in (run.run_id, "@last", str(run.path)):
        assert gsolve(verb, reference).code == 0
    document = gsolve(verb, "@last", "--json")
    assert document.code == 0
    json.loads(document.out)


@pytest.mark.parametrize("verb", ["show", "logs", "status", "report", "checkpoints", "stop", "evaluate", "play"])
def test_unknown_run_is_exit_3(gsolve: Callable[..., Any], run: RunWriter, verb: str) -> None:
    result = gsolve(verb, "1999")
    assert (result.code, result.out) == (3, "")
    assert result.err.count("\n") == 1


def test_unknown_checkpoint_is_exit_3_and_names_those_there_are(gsolve: Callable[..., Any], run: RunWriter) -> None:
    result = gsolve("evaluate", "@last/epoch=7")
    assert result.code == 3
    assert "best" in result.err


def test_show(gsolve: Callable[..., Any], run: RunWriter) -> None:
    result = gsolve("show", "@last")
    assert run.run_id in result.out
    assert "train reward" in result.out
    assert "▁▁▁▂▂" in result.out or "▁▁▂" in result.out
    assert "warning: the KL estimate is negative" in result.err
    document = json.loads(gsolve("show", "@last", "--json").out)
    assert document["summary"]["solved"] is True
    assert document["metrics"]["val/roll/ep_rew_mean"] == 500
    assert document["config"]["env_id"] == "CartPole-v1"
    assert document["warnings"] == ["the KL estimate is negative"]
    assert {"best", "last"} <= set(document["checkpoints"])


def test_logs(gsolve: Callable[..., Any], run: RunWriter) -> None:
    assert "started" in gsolve("logs", "@last").out
    assert gsolve("logs", "@last", "-n", "1").out.count("\n") == 1
    entries = json.loads(gsolve("logs", "@last", "--json").out)
    assert entries[-1]["level"] == "WARNING"
    assert entries[-1]["message"] == "the KL estimate is negative"
    followed = gsolve("logs", "@last", "--follow", "--json")
    assert [json.loads(line) for line in followed.out.splitlines()] == entries


@pytest.mark.integration
def test_logs_follow_until_the_run_ends(tmp_path: Path) -> None:
    writer = make_run(tmp_path / "runs", status="running")
    command = [sys.executable, "-m", "gymnasium_solver", "logs", str(writer.path), "-f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "KL" not in process.stdout.readline():
            pass
        writer.log("INFO", "one more")
        writer.status("completed")
        writer.close()
        assert "one more" in process.stdout.read()
        assert process.wait(timeout=20) == 0


def test_status_without_a_run_lists_what_is_running(gsolve: Callable[..., Any], run: RunWriter, tmp_path: Path) -> None:
    assert "nothing is running" in gsolve("status").err
    writer = make_run(tmp_path / "runs", status="running", seed=5)
    assert writer.run_id in gsolve("status").out
    assert [row["run_id"] for row in json.loads(gsolve("status", "--json").out)] == [writer.run_id]
    writer.close()


def test_report_prints_its_path_or_itself(gsolve: Callable[..., Any], run: RunWriter) -> None:
    path = Path(gsolve("report", "@last").out.strip())
    assert path.is_file()
    assert run.run_id in gsolve("report", "@last", "--print").out


STOPPABLE = """
import signal, sys, time
from pathlib import Path
from gymnasium_solver.runs.writer import RunWriter
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
config = {"env_id": "E", "algo_id": "ppo", "seed": 1}
writer = RunWriter.create(Path(sys.argv[1]), config, command=[], group=sys.argv[2])
writer.status("running", env_steps=1)
print(writer.run_id, flush=True)
while not asked:
    writer.heartbeat(env_steps=2)
    time.sleep(0.05)
writer.status("interrupted", env_steps=3)
"""


@pytest.mark.integration
def test_stop_waits_and_says_what_happened(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPABLE, str(tmp_path / "runs"), "g"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        result = gsolve("stop", run_id)
        assert result.code == 0, result.err
        assert "interrupted" in result.out
        assert process.wait(timeout=10) == 0
    again = gsolve("stop", run_id, "--json")
    assert json.loads(again.out)["was_running"] is False


@pytest.mark.integration
def test_stop_reaches_seeds_that_have_lost_their_leader(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    from gymnasium_solver.api.groups import RECORD, Group

    group = Group.create(tmp_path / "runs", "a-group", [1, 2])
    record = {**group.record, "pid": 2**22 + 1}  # above what Linux gives out
    (group.path / RECORD).write_text(json.dumps(record))
    command = [sys.executable, "-c", STOPPABLE, str(tmp_path / "runs"), group.group_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        assert json.loads(gsolve("status", "a-group", "--json").out)["status"] == "running"
        stopped = json.loads(gsolve("stop", "a-gr", "--json").out)
        assert process.wait(timeout=10) == 0
    assert stopped["was_running"] is True
    assert stopped["status"] == "failed"
    assert [(run["run_id"], run["status"]) for run in stopped["runs"]] == [(run_id, "interrupted")]
    assert stopped["waiting"] == [2]


@pytest.mark.integration
def test_stop_never_hits_a_stranger(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    """The number of a process that ended is given to another one."""
    writer = make_run(tmp_path / "runs", status="running")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"]) as stranger:
        path = writer.path / "status.json"
        status = {**json.loads(path.read_text()), "pid": stranger.pid, "heartbeat": time.time() - 3600}
        path.write_text(json.dumps(status))
        result = gsolve("stop", writer.run_id)
        assert stranger.poll() is None
        assert "is not running: failed (crashed: its process is gone)" in result.out
        path.write_text(json.dumps({**status, "process": None}))  # a system that cannot tell them apart
        result = gsolve("stop", writer.run_id)
        assert stranger.poll() is None
        assert (result.code, result.out) == (1, "")
        os.kill(stranger.pid, signal.SIGKILL)


def test_log_entries_keep_tracebacks_together() -> None:
    from gymnasium_solver.api.reading import log_entries

    lines = [
        "2026-01-01T00:00:00Z ERROR Traceback:",
        "      File x",
        "    ValueError: 1",
        "2026-01-01T00:00:01Z INFO a b",
    ]
    assert [entry["message"] for entry in log_entries(lines)] == ["Traceback:\n  File x\nValueError: 1", "a b"]
