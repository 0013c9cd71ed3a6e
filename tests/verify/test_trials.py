"""Trainings side by side in worker processes: what they bring, and what happens when one breaks, stops or is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.runs.reader import Run, list_runs
from gymnasium_solver.verify.trials import Training, Workers, require_success

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    return to_dict(load_config("CartPole-v1:ppo", ["max_env_steps=60000"]))


def test_two_workers_train_what_they_are_given(fields: dict[str, Any], tmp_path: Path) -> None:
    broken = {**fields, "env_id": "NoSuchEnvironment-v0", "seed": 9}
    trainings = [Training("good", {**fields, "seed": seed}) for seed in (1, 2)] + [Training("broken", broken)]
    with Workers(2, runs_dir=tmp_path, group="experiment") as workers:
        results = {(result.label, result.seed): result for result in workers.results(trainings)}
    assert set(results) == {("good", 1), ("good", 2), ("broken", 9)}
    assert results["broken", 9].status == "failed" and "NoSuchEnvironment" in results["broken", 9].error
    good = results["good", 1]
    assert good.status == "completed" and Run(Path(good.path)).status["group"] == "experiment"
    assert json.loads((Path(good.path) / "config.json").read_text())["engine"] == "compiled"
    assert good.solved and good.steps_to_threshold and good.seconds_to_threshold
    assert 0 < good.seconds_to_threshold <= good.seconds
    assert {Path(results["good", seed].path) for seed in (1, 2)} == {run.path for run in list_runs(tmp_path)}


def test_replays_of_all_workers_must_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium_solver.data.memory.available_bytes", lambda: 30_000_000)
    config = load_config("CartPole-v1:dqn", ["buffer_size=1_000_000", "max_env_steps=1_000_000"])  # 24 MB
    with Workers(2, runs_dir=tmp_path) as workers:
        (result,) = workers.results([Training("large", to_dict(config))])
    assert result.status == "failed" and "each of 2 trainings at a time has 15 MB free" in result.error


def test_a_cap_and_a_request_end_a_training_with_its_work_saved(fields: dict[str, Any], tmp_path: Path) -> None:
    endless = {**fields, "max_env_steps": 10_000_000, "stop_when_solved": False, "seed": 1}
    capped, asked, never = (Training("capped", endless, cap=6000), *(Training(x, endless) for x in ("asked", "never")))
    with Workers(1, runs_dir=tmp_path) as workers:
        for training in (capped, asked, never):
            workers.submit(training)
        assert workers.free == 0
        ended = {}
        for notice in workers.notices():
            if notice.training is asked and notice.kind == "epoch":
                workers.stop(never)
                workers.stop(asked)
            if notice.trained is not None:
                ended[notice.training.label] = notice.trained
    assert set(ended) == {"capped", "asked"}
    assert {result.status for result in ended.values()} == {"interrupted"}
    summaries = {label: Run(Path(result.path)).summary() for label, result in ended.items()}
    assert [summaries[label]["stopped_by"] for label in ("capped", "asked")] == ["cap", "budget"]
    assert {summary["status"] for summary in summaries.values()} == {"interrupted"}, "by no finding"
    assert 6000 <= ended["capped"].env_steps < 12_000
    assert all("last" in Run(Path(result.path)).checkpoints() for result in ended.values())


def test_a_killed_worker_is_a_failed_training_and_the_next_one_runs(fields: dict[str, Any], tmp_path: Path) -> None:
    endless = Training("killed", {**fields, "max_env_steps": 10_000_000, "stop_when_solved": False, "seed": 1})
    results = []
    with Workers(1, runs_dir=tmp_path) as workers:
        workers.submit(endless)
        workers.submit(Training("next", {**fields, "seed": 2}))
        for notice in workers.notices():
            if notice.training is endless and notice.kind == "epoch":
                (pid,) = _children("gymnasium_solver.verify.worker")
                os.kill(pid, signal.SIGKILL)
            if notice.trained is not None:
                results.append(notice.trained)
    assert [(result.label, result.status) for result in results] == [("killed", "failed"), ("next", "completed")]
    assert "exit code -9" in results[0].error


def test_workers_end_with_a_killed_parent(fields: dict[str, Any], tmp_path: Path) -> None:
    script = f"""
        from pathlib import Path
        from gymnasium_solver.verify.trials import Training, Workers
        fields = {dict(fields, max_env_steps=10_000_000, stop_when_solved=False, seed=1)!r}
        with Workers(1, runs_dir=Path({str(tmp_path)!r})) as workers:
            workers.submit(Training("endless", fields))
            for notice in workers.notices():
                print(notice.kind, flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert any(line.startswith("epoch") for line in parent.stdout)
        parent.kill()
    (run,) = list_runs(tmp_path)
    deadline = time.monotonic() + 20
    while run.status["status"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert run.status["status"] == "interrupted" and "last" in run.checkpoints()
    assert run.summary()["status"] == "interrupted", "nothing was found to be wrong with it"
    assert not any("stopped by" in line for line in run.log_lines())


def test_nothing_that_could_be_trained_is_an_error(fields: dict[str, Any], tmp_path: Path) -> None:
    with Workers(1, runs_dir=tmp_path) as workers:
        results = list(workers.results([Training("bad", {**fields, "n_envs": -1, "seed": 1})]))
    with pytest.raises(Exception, match="n_envs"):
        require_success(results, "cannot optimise")


def _children(name: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == os.getpid() and name in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found
