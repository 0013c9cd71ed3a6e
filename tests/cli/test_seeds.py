"""Many seeds side by side, with children that only pretend to train."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.request import Request, written
from gymnasium_solver.api.seeds import SeedJob, SeedsResult
from gymnasium_solver.cli import seeds
from gymnasium_solver.cli.progress import Progress
from gymnasium_solver.cli.seed_table import emit_result, view_of
from gymnasium_solver.errors import SolverError

# Says its events on stderr and its result on stdout, as `gsolve train --json --events` does.
CHILD = """
import json, os, signal, sys, time
from pathlib import Path
from gymnasium_solver.runs.writer import RunWriter
group, *arguments = sys.argv[1:]
seed = int(next(a for a in arguments if a.startswith("seed="))[5:])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
config = {"env_id": "CartPole-v1", "algo_id": "ppo", "seed": seed}
if seed >= 200:
    print("error: there is no such environment", file=sys.stderr)
    sys.exit(3)
writer = RunWriter.create(Path("runs"), config, command=[], group=group)
def say(kind, **data):
    print(json.dumps({"event": kind, "run": writer.run_id, "data": data}), file=sys.stderr, flush=True)
say("started", path=str(writer.path), config=config, engine="e", reason="r", threshold=475, max_env_steps=100)
print("a warning of some library", file=sys.stderr)
if seed == 13:
    writer.status("failed", error="the environment is broken")
    print("error: the environment is broken", file=sys.stderr)
    print(json.dumps({"run_id": writer.run_id, "status": "failed", "last_reward": 1.0, "test_reward": None}))
    sys.exit(1)
deadline = time.monotonic() + (60 if seed == 99 else 0.1)
while time.monotonic() < deadline and not stopped:
    time.sleep(0.01)
say("epoch", metrics={"train/cnt/env_steps": 100, "train/roll/ep_rew_mean": 400.0})
reward = 400.0 if seed == 7 else 500.0 - seed
status = "interrupted" if stopped else "completed"
writer.status(status, solved=reward >= 475)
result = {"run_id": writer.run_id, "status": status, "seed": seed, "env_steps": 100,
          "best_reward": reward, "last_reward": reward, "test_reward": None, "threshold": 475,
          "solved": reward >= 475, "duration_s": 0.1,
          "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1}
print(json.dumps(result))
sys.exit(130 if stopped else 0 if reward >= 475 else 5)
"""


@pytest.fixture
def train_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, Any]]]:
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Request, "arguments", lambda self, *extra: [sys.executable, str(script), self.group, *self.overrides, *extra]
    )

    def call(first: int, count: int, jobs: int | None = None) -> tuple[int, dict[str, Any]]:
        request = Request("CartPole-v1:ppo")
        code = seeds.train_seeds(request, first, count, jobs, as_json=True, quiet=True, announce=None)
        return code, json.loads(capsys.readouterr().out)

    return call


def test_all_solved(train_seeds: Callable[..., Any]) -> None:
    code, document = train_seeds(1, 3)
    assert code == 0
    assert [row["seed"] for row in document["seeds"]] == [1, 2, 3]
    assert (document["solved"], document["count"], document["failed"]) == (3, 3, 0)
    assert document["mean"] == 498
    assert document["std"] == 1
    assert document["iqm"] == 498
    assert Path(document["report"]).read_text(encoding="utf-8").startswith("# CartPole-v1 · ppo · 3 runs")
    group = Group(Path("runs") / document["group"])
    assert [run.status["group"] for run in group.runs()] == [group.group_id] * 3
    status = group.status()
    assert (status["status"], status["solved"], status["waiting"]) == ("completed", 3, [])


def test_children_share_the_cores_without_overlap(train_seeds: Callable[..., Any]) -> None:
    cores = len(os.sched_getaffinity(0))
    _, document = train_seeds(1, cores, jobs=cores)
    assert {row["cores"] for row in document["seeds"]} == {1}
    _, document = train_seeds(1, 2, jobs=1)
    assert {row["cores"] for row in document["seeds"]} == {cores}


def test_one_missed_is_exit_5(train_seeds: Callable[..., Any]) -> None:
    code, document = train_seeds(6, 2)
    assert code == 5
    assert [row["state"] for row in document["seeds"]] == ["solved", "missed"]


def test_a_failed_seed_stops_no_other_and_its_error_is_shown(train_seeds: Callable[..., Any]) -> None:
    code, document = train_seeds(12, 3, jobs=2)
    assert code == 5
    assert [row["state"] for row in document["seeds"]] == ["solved", "failed", "solved"]
    assert document["seeds"][1]["error"] == "the environment is broken"
    assert (document["solved"], document["failed"]) == (2, 1)
    assert document["mean"] == 487


def test_all_failed_alike_is_their_exit_code(train_seeds: Callable[..., Any]) -> None:
    code, document = train_seeds(13, 1)
    assert code == 1
    assert document["mean"] is None
    assert Group(Path("runs") / document["group"]).status()["status"] == "failed"


def test_a_reason_is_told_once_and_nothing_is_left_where_no_run_began(
    train_seeds: Callable[..., Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = seeds.train_seeds(Request("X:ppo"), 200, 3, None, as_json=False, quiet=True, announce=None)
    assert code == 3
    assert capsys.readouterr().err == "error: all 3 seeds failed: there is no such environment\n"
    assert list((tmp_path / "runs").iterdir()) == []


def test_reasons_name_their_seeds() -> None:
    jobs = [SeedJob(seed, error=error) for seed, error in ((1, "a"), (2, ""), (3, "b"), (4, "a"))]
    result = SeedsResult(Group(Path("g")), jobs, interrupted=False, seconds=0.0, report=None)
    assert result.reasons() == ["seeds 1, 4 failed: a", "seed 3 failed: b"]


def test_a_runs_directory_that_cannot_be_written(train_seeds: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(SolverError, match="--runs-dir"):
        train_seeds(1, 2)


def test_a_report_that_cannot_be_written_loses_no_result(
    train_seeds: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gymnasium_solver.runs.layout.replace_file", full)
    monkeypatch.setattr(Group, "create", lambda runs_dir, name, seeds: Group(Path("runs") / name))
    code, document = train_seeds(1, 1)
    assert (code, document["solved"], document["report"]) == (1, 1, None)


def test_a_stop_request_reaches_running_seeds_and_starts_no_others(train_seeds: Callable[..., Any]) -> None:
    def interrupt() -> None:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    code, document = train_seeds(99, 2, jobs=1)
    assert code == 130
    assert [row["state"] for row in document["seeds"]] == ["interrupted", "waiting"]
    status = Group(Path("runs") / document["group"]).status()
    assert (status["status"], status["waiting"]) == ("interrupted", [100])


def test_table_of_all_seeds_and_joint_result(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [SeedJob(1), SeedJob(2)]
    jobs[0].exit_code, jobs[0].result = (
        0,
        {"status": "completed", "solved": True, "last_reward": 490.0, "test_reward": None, "run_id": "run-1"},
    )
    jobs[1].exit_code, jobs[1].error = 1, "the environment is broken"
    target = Console(force_terminal=True, file=io.StringIO(), width=100)
    with view_of(jobs, {1: Progress(), 2: Progress()}, quiet=False, target=target) as refresh:
        refresh()
    drawn = target.file.getvalue()  # type: ignore[attr-defined]
    assert "SEED" in drawn
    assert "solved" in drawn
    assert "failed" in drawn
    emit_result(SeedsResult(Group(Path("g")), jobs, interrupted=False, seconds=1.0, report=None).document())
    out = capsys.readouterr().out
    assert "the environment is broken" in out
    assert "Solved 1 of 2 seeds, 1 failed" in out


def test_request_survives_the_way_to_another_process() -> None:
    request = Request("A:ppo", ("x=1", "lr={a: 1}"), init_from="r/@best", runs_dir=Path("/r"), group="g")
    words = request.arguments("--json")
    assert words[1:4] == ["-m", "gymnasium_solver", "train"]
    assert words[4:8] == ["--set", "x=1", "--set", "lr={a: 1}"]
    assert words[8:] == ["--init-from", "r/@best", "--group", "g", "--runs-dir", "/r", "--json", "--", "A:ppo"]


def test_python_values_survive_it_too() -> None:
    from gymnasium_solver.config.load import parse_overrides

    values = {"seed": 3, "policy_lr": {"start": 0.001, "end": 0.0}, "normalize_obs": True, "hidden_dims": [64, 64]}
    assert dict(parse_overrides(written(values))) == values
