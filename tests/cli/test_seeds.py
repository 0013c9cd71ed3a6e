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

from gymnasium_solver.api.continuing import continued
from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.request import Request, written
from gymnasium_solver.api.seeds import SeedJob, SeedsResult
from gymnasium_solver.cli import seeds
from gymnasium_solver.cli.main import main
from gymnasium_solver.cli.progress import Progress
from gymnasium_solver.cli.seed_table import emit_result, view_of
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.errors import SolverError
from gymnasium_solver.runs.writer import RunWriter

pytestmark = pytest.mark.integration

# Says its events on stderr and its result on stdout, as `gsolve train --json --events` does.
CHILD = """
import json, os, signal, sys, time
from pathlib import Path
from gymnasium_solver.runs.writer import RunWriter
group, resume, *arguments = sys.argv[1:]
seed = int(next((a for a in arguments if a.startswith("seed=")), "seed=99")[5:])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
config = {"env_id": "CartPole-v1", "algo_id": "ppo", "seed": seed}
if seed >= 200:
    print("error: there is no such environment", file=sys.stderr)
    sys.exit(3)
if resume:
    writer = RunWriter.reopen(Path(resume), 0, config)
else:
    writer = RunWriter.create(Path("runs"), config, command=[], group=group)
    (writer.path / "checkpoints" / "last.safetensors").touch()
def say(kind, **data):
    print(json.dumps({"event": kind, "run": writer.run_id, "data": data}), file=sys.stderr, flush=True)
say("started", path=str(writer.path), config=config, engine="e", reason="r", threshold=475, max_env_steps=100)
print("a warning of some library", file=sys.stderr)
if seed == 13:
    writer.status("failed", error="the environment is broken")
    print("error: the environment is broken", file=sys.stderr)
    print(json.dumps({"run_id": writer.run_id, "status": "failed", "last_reward": 1.0, "test_reward": None}))
    sys.exit(1)
if seed == 99 and not resume:
    (writer.path / "training").touch()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not stopped:
        time.sleep(0.01)
say("epoch", metrics={"train/cnt/env_steps": 100, "train/roll/ep_rew_mean": 400.0})
reward = 400.0 if seed == 7 else 500.0 - seed
status = "interrupted" if stopped else "solved" if reward >= 475 else "missed"
writer.status("interrupted" if stopped else "completed", solved=reward >= 475, threshold=475)
result = {"run_id": writer.run_id, "status": status, "seed": seed, "env_steps": 100,
          "best_reward": reward, "last_reward": reward, "test_reward": None, "threshold": 475,
          "solved": reward >= 475, "duration_s": 0.1,
          "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
          "memory": os.environ.get("GSOLVE_MEMORY_SHARE")}
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

    def arguments(self: Request, *extra: str) -> list[str]:
        return [sys.executable, str(script), str(self.group), self.resume or "", *self.overrides, *extra]

    monkeypatch.setattr(Request, "arguments", arguments)

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
    assert (status["status"], status["solved"], status["waiting"]) == ("solved", 3, [])


def test_children_share_the_cores_without_overlap(train_seeds: Callable[..., Any]) -> None:
    cores = len(os.sched_getaffinity(0))
    _, document = train_seeds(1, cores, jobs=cores)
    assert {row["cores"] for row in document["seeds"]} == {1}
    _, document = train_seeds(1, 2, jobs=1)
    assert {row["cores"] for row in document["seeds"]} == {cores}


def test_children_at_a_time_share_the_memory(train_seeds: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium_solver.data.memory.available_bytes", lambda: 8000)
    for jobs, share in ((2, "4000/2"), (4, "2666/3"), (1, None)):
        _, document = train_seeds(1, 3, jobs=jobs)
        assert {row["memory"] for row in document["seeds"]} == {share}


def test_replays_that_fit_only_one_at_a_time_are_refused_together(process: Callable[..., Any]) -> None:
    fields = ("-s", "buffer_size=1_000_000", "-s", "max_env_steps=1_000_000")
    share = {"GSOLVE_MEMORY_SHARE": "30000000/1"}  # of this process: as much as one replay and a quarter
    result = process("train", "CartPole-v1:dqn", *fields, "--seeds", "2", "--jobs", "2", **share)
    assert result.returncode == 2
    assert "buffer_size: 1000000 transitions take 24 MB, and each of 2 trainings at a time has 15 MB" in result.stderr


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
    monkeypatch.setattr(Group, "create", lambda runs_dir, name, seeds, *_: Group(Path("runs") / name))
    code, document = train_seeds(1, 1)
    assert (code, document["solved"], document["report"]) == (1, 1, None)


def interrupt_seed_99() -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not any(Path("runs").glob("*-s99-*/training")):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)


def test_a_stop_request_reaches_running_seeds_and_starts_no_others(train_seeds: Callable[..., Any]) -> None:
    threading.Thread(target=interrupt_seed_99).start()
    code, document = train_seeds(99, 2, jobs=1)
    assert code == 130
    assert [row["state"] for row in document["seeds"]] == ["interrupted", "waiting"]
    status = Group(Path("runs") / document["group"]).status()
    assert (status["status"], status["waiting"]) == ("interrupted", [100])


def test_an_interrupted_group_goes_on_where_it_was(
    train_seeds: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """98 is done, 99 was cut short, 100 and 101 have not begun."""
    threading.Thread(target=interrupt_seed_99).start()
    _, before = train_seeds(98, 4, jobs=1)
    assert [row["state"] for row in before["seeds"]] == ["missed", "interrupted", "waiting", "waiting"]
    assert main(["show", before["group"]]) == 0
    assert f"gsolve train --resume {before['group']}" in capsys.readouterr().out
    assert main(["train", "--resume", before["group"], "--json", "--quiet"]) == 5
    after = json.loads(capsys.readouterr().out)
    assert after["group"] == before["group"]
    assert [row["state"] for row in after["seeds"]] == ["missed"] * 4
    assert [row["run_id"] for row in after["seeds"][:2]] == [row["run_id"] for row in before["seeds"][:2]]
    status = Group(Path("runs") / after["group"]).status()
    assert (status["status"], status["waiting"], status["count"]) == ("missed", [], 4)
    assert len(list(Path("runs").glob("2*/config.json"))) == 4
    assert main(["train", "--resume", before["group"]]) == 2
    assert "are done" in capsys.readouterr().err
    assert main(["train", "--resume", before["group"], "--set", "gamma=0.9"]) == 2
    assert "leave out --set" in capsys.readouterr().err


def test_seeds_that_begin_later_train_what_the_first_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has edited the file since."""
    monkeypatch.chdir(tmp_path)
    trained = to_dict(load_config("CartPole-v1:ppo", ["gamma=0.9", "seed=1"]))
    group = Group.create(Path("runs"), "g", [1, 2], Request("CartPole-v1:ppo", ("gamma=0.9",)).training())
    group.finish("interrupted")
    RunWriter.create(Path("runs"), trained, command=[], group="g").status("completed")
    file = tmp_path / "config" / "environments" / "CartPole-v1.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("env_id: CartPole-v1\nppo: {n_envs: 2, n_steps: 32, batch_size: 64}\n")
    request, jobs = continued(group, Request(None, resume="g"))
    assert [(job.seed, job.state) for job in jobs] == [(1, "done"), (2, "waiting")]
    assert to_dict(request.of_seed(2).config()) == {**trained, "seed": 2}


def test_table_of_all_seeds_and_joint_result(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [SeedJob(1), SeedJob(2)]
    jobs[0].exit_code, jobs[0].result = (
        0,
        {"status": "solved", "solved": True, "last_reward": 490.0, "test_reward": None, "run_id": "run-1"},
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
