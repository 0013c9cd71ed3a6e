"""`gsolve watch` on runs that are written here meanwhile."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.api.groups import RECORD, Group
from gymnasium_solver.cli import following, watching
from gymnasium_solver.cli.following import Diagnoser, Following
from gymnasium_solver.cli.progress import EVAL_REWARD, TRAIN_REWARD
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.metrics_writer import MetricsFile
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter

COMMAND = [sys.executable, "-m", "gymnasium_solver", "watch"]


def begin(runs_dir: Path, epochs: int = 4, seed: int = 1, **more: Any) -> RunWriter:
    fields = {"seed": seed, "reward_threshold": 475.0, "max_env_steps": 10_000}
    writer = RunWriter.create(runs_dir, to_dict(load_config("CartPole-v1:ppo", fields)), command=["gsolve"], **more)
    writer.log("INFO", "started")
    writer.log("INFO", "engine gymnasium/native: it has a vector class of its own")
    for epoch in range(1, epochs + 1):
        train(writer, epoch)
    writer.status("running", threshold=475.0)
    return writer


def train(writer: RunWriter, epoch: int) -> None:
    row = {"train/cnt/env_steps": epoch * 1000.0, "train/cnt/epochs": float(epoch), "train/sys/fps_total": 500.0}
    row |= {TRAIN_REWARD: 20.0 * epoch, "train/metrics/kl_divergence": 0.01}
    writer.metrics(row | ({EVAL_REWARD: 100.0 * epoch} if epoch % 2 == 0 else {}))


def end(writer: RunWriter) -> None:
    writer.status("completed", solved=True)
    writer.close()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[Callable[[], Any]]], None]:
    """meanwhile(steps): what happens while the watching sleeps, a step after each look at the files."""

    def plan(steps: Iterable[Callable[[], Any]]) -> None:
        left = iter(steps)
        clock = SimpleNamespace(sleep=lambda seconds: next(left)(), monotonic=time.monotonic)
        monkeypatch.setattr(watching, "time", clock)

    return plan


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def test_once_prints_a_frame_and_leaves(gsolve: Callable[..., Any], runs_dir: Path) -> None:
    writer = begin(runs_dir)
    result = gsolve("watch", writer.run_id, "--once")
    assert (result.code, result.err) == (0, "")
    for text in (
        *(writer.run_id, "CartPole-v1 · ppo · seed 1", "gymnasium/native: it has a vector class of its own"),
        *("40%  4,000/10,000 steps  500 steps/s", "ETA 12.0 s", "train reward", "80", "best 400  goal 475", "▁"),
    ):
        assert text in result.out
    end(writer)
    assert "solved" in gsolve("watch", "--once").out


def test_the_newest_in_progress_is_meant_else_the_newest(gsolve: Callable[..., Any], runs_dir: Path) -> None:
    result = gsolve("watch")
    assert (result.code, result.out) == (3, "")
    older = begin(runs_dir, seed=1)
    newer = begin(runs_dir, seed=2)
    end(newer)
    assert older.run_id in gsolve("watch", "--once").out
    end(older)
    assert newer.run_id in gsolve("watch", "--once").out


def test_it_follows_to_the_end_and_prints_the_result(
    gsolve: Callable[..., Any],
    runs_dir: Path,
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gymnasium_solver.cli.progress import PlainLines

    monkeypatch.setattr(PlainLines.__init__, "__defaults__", (0.0,))
    writer = begin(runs_dir)

    def finish() -> None:
        writer.log("WARNING", "the KL estimate\nis negative")
        end(writer)

    meanwhile([*(partial(train, writer, epoch) for epoch in range(5, 9)), finish])
    result = gsolve("watch", writer.run_id)
    assert result.code == 0
    assert f"run {writer.run_id}: CartPole-v1 ppo seed 1" in result.err
    assert "engine gymnasium/native (it has a vector class of its own)" in result.err
    assert "6,000/10,000 steps (60%), 500 steps/s, reward 120, eval 600 of 475" in result.err
    assert result.err.count("warning: the KL estimate is negative") == 1
    assert "\x1b" not in result.err + result.out
    assert result.out.startswith("Solved\n")


@pytest.mark.parametrize(("status", "code"), [("completed", 5), ("failed", 1), ("diverged", 4), ("interrupted", 130)])
def test_the_exit_code_is_that_of_the_training(
    gsolve: Callable[..., Any], runs_dir: Path, status: str, code: int
) -> None:
    writer = begin(runs_dir)
    writer.status(status, solved=False)
    writer.close()
    assert gsolve("watch", writer.run_id).code == code


def test_a_killed_training_ends_the_watching(
    gsolve: Callable[..., Any], runs_dir: Path, meanwhile: Callable[..., None]
) -> None:
    writer = begin(runs_dir)

    def die() -> None:
        path = writer.path / "status.json"
        layout.write_json(path, {**layout.read_json(path), "pid": 2**22 + 1})

    meanwhile([die])
    result = gsolve("watch", writer.run_id)
    assert result.code == 1
    assert "crashed" in result.out


def test_a_run_deleted_meanwhile_is_one_sentence(
    gsolve: Callable[..., Any], runs_dir: Path, meanwhile: Callable[..., None]
) -> None:
    writer = begin(runs_dir)
    meanwhile([lambda: shutil.rmtree(writer.path)])
    result = gsolve("watch", writer.run_id)
    assert (result.code, result.out) == (3, "")
    errors = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert errors == [
        f"error: run {writer.run_id} was deleted while it was watched; gsolve runs lists those that are left"
    ]


@pytest.mark.integration
def test_ctrl_c_leaves_the_training_alone(tmp_path: Path) -> None:
    runs_dir = tmp_path / "my runs"
    writer = begin(runs_dir)
    before = (writer.path / "status.json").read_bytes()
    words = [*COMMAND, writer.run_id, "--runs-dir", str(runs_dir)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "engine" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        again = f"gsolve watch {writer.run_id} --runs-dir '{runs_dir}'"
        assert f"no longer watching; the training goes on: {again}" in process.stderr.read()
        assert process.wait(timeout=20) == 130
    assert (writer.path / "status.json").read_bytes() == before


@pytest.mark.integration
def test_on_a_terminal_the_frame_moves(runs_dir: Path) -> None:
    writer = begin(runs_dir)
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    seen = ""
    with subprocess.Popen(
        [*COMMAND, str(writer.path)], stderr=child, stdout=subprocess.PIPE, env=environment
    ) as process:
        os.close(child)
        for epoch, shown in ((4, "4,000/10,000 steps"), (5, "5,000/10,000 steps"), (6, "6,000/10,000 steps")):
            if epoch > 4:
                train(writer, epoch)
            while shown not in seen:
                seen += os.read(parent, 65536).decode()
        end(writer)
        while True:
            try:
                seen += os.read(parent, 65536).decode()
            except OSError:  # it has closed its end
                break
        assert process.wait(timeout=20) == 0
        assert process.stdout is not None
        assert b"Solved" in process.stdout.read()
    os.close(parent)
    assert "best 600  goal 475" in seen
    assert "\x1b[1A" in seen, "drawn over what was there"


def test_new_columns_do_not_count_rows_twice(runs_dir: Path) -> None:
    """The first evaluation makes the writer replace the file by one with another column."""
    writer = begin(runs_dir, epochs=1)
    watched = Following(Run(writer.path))
    watched.catch_up()
    for epoch in (2, 3):
        train(writer, epoch)
        watched.catch_up()
    progress = watched.progress
    assert progress.steps == 3000
    assert progress.curves[TRAIN_REWARD]._points == [20.0, 40.0, 60.0]
    assert progress.curves[EVAL_REWARD]._points == [200.0]
    assert progress.best_eval == 200.0
    writer.close()


def test_a_long_past_is_thinned_out_and_its_ends_kept(runs_dir: Path) -> None:
    writer = begin(runs_dir, epochs=0)
    file = MetricsFile(writer.path / "metrics.csv")
    for epoch in range(1, 9001):
        file.append({"train/cnt/env_steps": epoch, TRAIN_REWARD: np.nan if epoch == 9000 else float(epoch)})
    watched = Following(Run(writer.path))
    assert sum(event.kind == "epoch" for event in watched.news()) == 1
    curve = watched.progress.curves[TRAIN_REWARD]
    assert np.isnan(curve.last), "a NaN that was measured is shown"
    assert curve._points[0] < 100
    assert curve._points[-1] > 8900
    writer.close()


def test_a_group_is_the_table_of_its_seeds(
    gsolve: Callable[..., Any], runs_dir: Path, meanwhile: Callable[..., None]
) -> None:
    group = Group.create(runs_dir, "a-group", [1, 2, 3])
    first = begin(runs_dir, seed=1, group="a-group")
    end(first)
    second = begin(runs_dir, epochs=2, seed=2, group="a-group")
    rows = [line.split() for line in gsolve("watch", "a-group", "--once").out.splitlines()]
    assert rows[0][:3] == ["SEED", "STATE", "STEPS"]
    assert [row[:3] for row in rows[1:]] == [
        ["1", "solved", "4,000"],
        ["2", "training", "2,000"],
        ["3", "waiting", "0"],
    ]

    def go_on() -> None:
        end(second)
        end(begin(runs_dir, epochs=6, seed=3, group="a-group"))
        group.finish("completed")

    meanwhile([go_on])
    result = gsolve("watch", "a-group")
    assert result.code == 0
    assert "Solved 3 of 3 seeds" in result.out
    assert "seed 3: solved, eval 600" in result.err


def test_a_group_whose_leader_died_or_whose_seed_was_deleted(
    gsolve: Callable[..., Any], runs_dir: Path, meanwhile: Callable[..., None]
) -> None:
    group = Group.create(runs_dir, "a-group", [1, 2])
    record = {**group.record, "pid": 2**22 + 1}
    writer = begin(runs_dir, seed=1, group="a-group")

    def lose() -> None:
        layout.write_json(group.path / RECORD, record)
        shutil.rmtree(writer.path)

    meanwhile([lose])
    result = gsolve("watch", "a-group")
    assert result.code == 1
    assert "deleted" in result.out
    shutil.rmtree(group.path)
    assert gsolve("watch", "a-group").code == 3


def test_a_finding_is_shown_and_a_diagnosis_that_fails_is_no_end(
    gsolve: Callable[..., Any],
    runs_dir: Path,
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gymnasium_solver import api

    first = {"severity": "high", "title": "too slow", "cause": "learning-rate-too-low", "confidence": 0.83}
    document = {"bottlenecks": [first], "summary": {"solved": False}}
    outlook = {"probability_of_threshold": 0.25, "action": "continue"}
    monkeypatch.setattr(api, "diagnose", lambda run: document | {"outlook": outlook})
    monkeypatch.setattr(following, "DIAGNOSE_SECONDS", 0.0)
    writer = begin(runs_dir)
    news: list[bool] = []
    has_news = Diagnoser.has_news
    monkeypatch.setattr(Diagnoser, "has_news", lambda self: news.append(has_news(self)) or news[-1])

    def end_once_it_is_told() -> None:
        time.sleep(0.01)
        if news.count(True) and len(news) > news.index(True) + 3:  # and it has had occasion to repeat itself
            end(writer)

    meanwhile(repeat(end_once_it_is_told))
    told = gsolve("watch", writer.run_id).err
    assert told.count("high: too slow (learning-rate-too-low, 83% sure)") == 1
    assert told.count("outlook: 25% odds of the threshold, continue") == 1

    def fail(run: Run) -> None:
        raise ValueError("no")

    monkeypatch.setattr(api, "diagnose", fail)
    assert Diagnoser(Run(writer.path)).look() == ["the diagnosis failed (ValueError: no)"]
