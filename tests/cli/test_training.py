"""`gsolve train` and what follows it, for real, with a few thousand steps."""

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

import pytest

import gymnasium_solver as gs
from gymnasium_solver.errors import SolverError

pytestmark = pytest.mark.integration

SMALL = ["--set", "n_envs=4", "--set", "n_steps=64", "--set", "batch_size=64", "--set", "eval_episodes=4"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run that is far too short to reach its threshold, and what its training printed."""
    directory = tmp_path_factory.mktemp("trained")
    command = [sys.executable, "-m", "gymnasium_solver", "train", "CartPole-v1:ppo", *SMALL]
    command += ["--max-env-steps", "2000", "--json", "--runs-dir", str(directory)]
    return directory, subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_train_prints_one_document_and_tells_that_it_missed(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, result = trained
    assert result.returncode == 5, result.stderr
    document = json.loads(result.stdout)
    assert document["status"] == "missed"
    assert document["solved"] is False
    assert document["env_steps"] >= 2000
    assert Path(document["report"]).is_file()
    assert "\x1b" not in result.stderr
    assert document["run_id"] in result.stderr


def test_train_reaches_a_threshold_and_prints_a_summary(gsolve: Callable[..., Any]) -> None:
    result = gsolve("train", "CartPole-v1:ppo", *SMALL, "--max-env-steps", "1e3", "--set", "reward_threshold=5")
    assert result.code == 0, result.err
    assert result.out.startswith("Solved\n")
    assert "report.md" in result.out
    assert "gsolve play" in result.out
    assert "engine compiled" in result.err


@pytest.mark.parametrize("redirection", ["2>&1 >/dev/null | head -1", "2>&- >/dev/null | true"])
def test_training_outlives_those_who_watch_it(tmp_path: Path, redirection: str) -> None:
    command = f"{sys.executable} -m gymnasium_solver train CartPole-v1:ppo {' '.join(SMALL)} --max-env-steps 1500"
    script = f"{command} -s reward_threshold=5 -s stop_when_solved=false {redirection}; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.stdout.splitlines()[-1] == "0"
    assert result.stderr == ""
    summary = gs.load_run("@last", runs_dir=tmp_path / "runs").summary()
    assert (summary["status"], summary["error"]) == ("solved", None)


def test_quiet_prints_the_run_id_alone(gsolve: Callable[..., Any]) -> None:
    result = gsolve("train", "CartPole-v1:ppo", *SMALL, "--max-env-steps", "500", "-q")
    assert result.code == 5
    assert result.err == ""
    assert gs.load_run(result.out.strip()).run_id == result.out.strip()


def test_divergence_is_exit_4(gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium_solver.train.session as loop
    from gymnasium_solver.errors import DivergedError

    def diverge(*_: Any, **__: Any) -> None:
        raise DivergedError("training diverged at 256 env steps; lower policy_lr")

    monkeypatch.setattr(loop, "train", diverge)
    result = gsolve("train", "CartPole-v1:ppo", "--json")
    assert (result.code, result.out) == (4, "")
    assert result.err == "error: training diverged at 256 env steps; lower policy_lr\n"


def test_a_run_that_diverged_is_still_one_document(gsolve: Callable[..., Any]) -> None:
    arguments = [*SMALL, "--max-env-steps", "5000", "--set", "policy_lr=1e30", "--set", "max_grad_norm=null"]
    result = gsolve("train", "CartPole-v1:ppo", *arguments, "--json")
    assert result.code == 4, result.err
    document = json.loads(result.out)
    assert (document["status"], document["exit_code"]) == ("failed", 4)
    assert document["error"] in result.err


def test_unexpected_failure_names_the_log(gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium_solver.train.session as loop

    def fail(*_: Any, on_event: Any, **__: Any) -> None:
        on_event(loop.Event("started", "a-run", {"path": "runs/a-run", "config": {}}))
        raise RuntimeError("boom")

    monkeypatch.setattr(loop, "train", fail)
    result = gsolve("train", "CartPole-v1:ppo", "-q")
    assert result.code == 1
    assert "runs/a-run/run.log" in result.err
    assert "RuntimeError: boom" in result.err
    assert "Traceback" not in result.err


def test_evaluate_and_play(trained: tuple[Path, Any], gsolve: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("imageio")
    where = ["--runs-dir", str(trained[0])]
    document = json.loads(gsolve("evaluate", "@last", "--episodes", "3", "--stochastic", "--json", *where).out)
    assert len(document["returns"]) == 3
    assert document["checkpoint"] == "best"
    again = gs.evaluate("@last/@best", episodes=3, deterministic=False, runs_dir=trained[0])
    assert again.returns.tolist() == document["returns"]
    result = gsolve("play", "@last", "--video", "deep/episode.mp4", "--seed", "1", *where)
    assert result.code == 0, result.err
    assert result.out == "deep/episode.mp4\n"
    assert (tmp_path / "deep" / "episode.mp4").stat().st_size > 1000


def test_play_says_what_it_needs(
    trained: tuple[Path, Any], gsolve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--runs-dir", str(trained[0])]
    assert "neither .mp4 nor .gif" in gsolve("play", "@last", "--video", "x.avi", *where).err
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "--video" in gsolve("play", "@last", *where).err
    monkeypatch.setitem(sys.modules, "imageio.v2", None)
    result = gsolve("play", "@last", "--video", "x.mp4", *where)
    assert result.code == 2
    assert "gymnasium-solver[play]" in result.err


def test_detach_stop_resume(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    arguments = [*SMALL, "--max-env-steps", "1e7", "--set", "stop_when_solved=false"]
    result = gsolve("train", "CartPole-v1:ppo", *arguments, "--detach")
    assert result.code == 0, result.err
    run_id = result.out.strip()
    assert (tmp_path / "runs" / run_id / "output.log").exists()
    while gs.load_run(run_id).summary()["env_steps"] is None:
        time.sleep(0.1)
    stopped = json.loads(gsolve("stop", run_id, "--json").out)
    assert stopped["status"] == "interrupted"
    steps = stopped["env_steps"]
    result = gsolve("train", "--resume", run_id, "--max-env-steps", str(steps + 500), "--json")
    assert result.code == 5, result.err
    assert json.loads(result.out)["run_id"] == run_id
    assert json.loads(result.out)["env_steps"] >= steps + 500


@pytest.mark.parametrize("more", [[], ["--seeds", "2"]])
@pytest.mark.parametrize("detached", [True, False])
def test_a_place_that_cannot_be_written(gsolve: Callable[..., Any], more: list[str], detached: bool) -> None:
    Path("occupied").write_text("a file", encoding="utf-8")
    where = ["--runs-dir", "occupied/runs", *more, *(["--detach"] if detached else [])]
    result = gsolve("train", "CartPole-v1:ppo", *SMALL, *where)
    assert (result.code, result.out) == (1, "")
    assert "--runs-dir" in result.err.splitlines()[-1]
    assert "bug" not in result.err


def test_detached_seeds_are_known_by_their_group(gsolve: Callable[..., Any]) -> None:
    arguments = [*SMALL, "--max-env-steps", "1e7", "--set", "stop_when_solved=false"]
    result = gsolve("train", "CartPole-v1:ppo", *arguments, "--seeds", "3", "--jobs", "2", "--detach")
    assert result.code == 0, result.err
    group = result.out.strip()
    status = json.loads(gsolve("status", group, "--json").out)
    assert status["status"] == "running"
    assert status["seeds"] == [42, 43, 44]
    assert 44 in status["waiting"]
    stopped = json.loads(gsolve("stop", group, "--json").out)
    assert (stopped["status"], stopped["was_running"]) == ("interrupted", True)
    assert 44 in stopped["waiting"], "seeds that were waiting are not started"
    assert {run["status"] for run in stopped["runs"]} <= {"interrupted"}, stopped["runs"]
    for verb in ("show", "status", "stop", "report"):
        result = gsolve(verb, group[:-1])
        assert result.code == 0, result.err
        assert group in result.out
    assert "| seed | run |" in gsolve("report", group, "--print").out
    assert len(json.loads(gsolve("runs", "--group", group, "--json").out)) == len(stopped["runs"])
    assert json.loads(gsolve("runs", "--group", "other", "--json").out) == []
    assert not list(Path("runs").glob(".detached*"))


def test_detach_reports_what_fails_at_once(gsolve: Callable[..., Any], tmp_path: Path) -> None:
    result = gsolve("train", "CartPole-v1:ppo", "--detach", "--init-from", "nothing")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: ")
    assert list((tmp_path / "runs").iterdir()) == []
    result = gsolve("train", "CartPole-v1:ppo", "--detach", "--init-from", "nothing", "--seeds", "2")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: all 2 seeds failed: there is no run 'nothing'")
    assert list((tmp_path / "runs").iterdir()) == []


def test_interrupted_is_saved_and_exit_130(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gymnasium_solver", "train", "CartPole-v1:ppo", *SMALL, "--max-env-steps", "1e7"]
    with subprocess.Popen(
        [*command, "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not any((tmp_path / "runs").glob("*/metrics.csv")):
            time.sleep(0.1)
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"


def test_seeds_together(gsolve: Callable[..., Any]) -> None:
    arguments = [*SMALL, "--max-env-steps", "600", "--set", "reward_threshold=5", "--seed", "3", "--seeds", "2"]
    result = gsolve("train", "CartPole-v1:ppo", *arguments, "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert [row["seed"] for row in document["seeds"]] == [3, 4]
    assert {row["group"] for row in document["seeds"]} == {document["group"]}
    assert document["solved"] == 2
    assert Path(document["report"]).is_file()


def test_python_api(tmp_path: Path) -> None:
    small = {"n_envs": 4, "n_steps": 64, "batch_size": 64, "eval_episodes": 4}
    kinds = []
    run = gs.train(
        "CartPole-v1:ppo",
        seed=1,
        max_env_steps=600,
        runs_dir=tmp_path,
        on_event=lambda event: kinds.append(event.kind),
        **small,
    )
    assert run.summary()["seed"] == 1
    assert run.metrics["train/cnt/env_steps"][-1] >= 600
    assert kinds[0] == "started"
    assert kinds[-1] == "finished"
    assert [found.run_id for found in gs.runs(runs_dir=tmp_path)] == [run.run_id]
    assert gs.report(run).is_file()
    more = gs.resume(run, max_env_steps=1200)
    assert more.run_id == run.run_id
    assert more.summary()["env_steps"] >= 1200
    assert gs.status(run)["status"] == gs.stop(run.run_id, runs_dir=tmp_path)["status"] == "missed"
    assert gs.logs(run, 1) == gs.logs(run)[-1:]


def test_python_api_of_many_processes(tmp_path: Path) -> None:
    small: dict[str, Any] = {"n_envs": 4, "n_steps": 64, "batch_size": 64, "eval_episodes": 4, "runs_dir": tmp_path}
    events: list[Any] = []
    runs = gs.train_seeds("CartPole-v1:ppo", 2, seed=5, max_env_steps=600, on_event=events.append, **small)
    assert [run.summary()["seed"] for run in runs] == [5, 6]
    assert {run.status["status"] for run in runs} == {"completed"}
    assert {event.run for event in events} == {run.run_id for run in runs}
    group = runs[0].status["group"]
    assert {run.run_id for run in gs.runs(group=group, runs_dir=tmp_path)} == {run.run_id for run in runs}
    assert gs.report(group, runs_dir=tmp_path).is_file()
    with pytest.raises(SolverError, match="all 2 seeds failed: there is no run 'nothing'"):
        gs.train_seeds("CartPole-v1:ppo", 2, init_from="nothing", **small)
    started = gs.start("CartPole-v1:ppo", max_env_steps=10_000_000, stop_when_solved=False, **small)
    assert gs.status(started, runs_dir=tmp_path)["status"] == "running"
    assert gs.stop(started, runs_dir=tmp_path)["status"] == "interrupted"
