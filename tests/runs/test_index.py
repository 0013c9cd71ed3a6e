from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.index.digest import POINTS, digest
from gymnasium_solver.runs.index.index import TABLE, Index
from gymnasium_solver.runs.index.rows import NewRows
from gymnasium_solver.runs.index.store import FILE
from gymnasium_solver.runs.metrics_writer import MetricsFile
from gymnasium_solver.runs.reader import Run, list_runs
from gymnasium_solver.runs.writer import RunWriter
from tests.runs.conftest import row_of

NewRun = Callable[..., RunWriter]


@pytest.fixture(autouse=True)
def no_shared_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GSOLVE_INDEX_URL", raising=False)


def summaries(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows without what the index adds."""
    extra = ("sparkline", "rows", "root")
    return {row["run_id"]: {key: value for key, value in row.items() if key not in extra} for row in rows}


def truth(runs_dir: Path) -> dict[str, dict[str, Any]]:
    return {run.run_id: plain(run.summary()) for run in list_runs(runs_dir)}


def copies(writer: RunWriter, count: int) -> None:
    """The run and others like it, that many in all."""
    for number in range(1, count):
        shutil.copytree(writer.path, writer.path.with_name(f"{writer.run_id}{number}"))


def test_rows_are_the_summaries_newest_first(new_run: NewRun, runs_dir: Path) -> None:
    for seed in range(3):
        new_run(rows=12, seed=seed).status("completed", solved=seed == 1)
    (runs_dir / "20260101-a-group").mkdir()
    with Index.open(runs_dir) as index:
        assert len(index.refresh().added) == 3
        total, rows = index.find()
        assert total == 3
        assert [row["run_id"] for row in rows] == [run.run_id for run in list_runs(runs_dir)]
        assert summaries(rows) == truth(runs_dir)
        assert rows[0]["sparkline"] == [150.0, 300.0]
        assert rows[0]["rows"] == 12
        assert index.get(rows[1]["run_id"]) == rows[1]
        assert index.get("20") is None
    assert len(list_runs(runs_dir)) == 3, "the index itself is no run"


def test_only_what_changed_is_read_and_told(new_run: NewRun, runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (new_run(rows=2, seed=seed) for seed in (1, 2))
    first.status("completed")
    index = Index.open(runs_dir)
    assert index.refresh().added == sorted([first.run_id, second.run_id])
    read: list[str] = []

    def spy(path: Path, before: Any = None) -> Any:
        read.append(path.name)
        return digest(path, before)

    monkeypatch.setattr("gymnasium_solver.runs.index.index.digest", spy)
    assert index.refresh() == ([], [], [])
    assert read == []
    second.metrics(row_of(3))
    assert index.refresh() == ([], [second.run_id], [])
    third = new_run(rows=1, seed=3)
    shutil.rmtree(first.path)
    assert index.refresh() == ([third.run_id], [], [first.run_id])
    assert read == [second.run_id, third.run_id]
    assert index.get(first.run_id) is None
    assert summaries(index.find()[1]) == truth(runs_dir)


def test_each_object_is_told_what_another_stored(new_run: NewRun, runs_dir: Path) -> None:
    writer = new_run(rows=1)
    one, other = Index.open(runs_dir), Index.open(runs_dir)
    assert one.refresh().added == [writer.run_id]
    assert other.refresh() == ([], [], []), "it was stored before this one looked"
    writer.metrics(row_of(2))
    assert one.refresh().changed == [writer.run_id]
    assert other.refresh().changed == [writer.run_id]


TRAINING = """
import sys, time
from pathlib import Path
from gymnasium_solver.runs.writer import RunWriter
writer = RunWriter.create(Path(sys.argv[1]), {"env_id": "E", "algo_id": "ppo", "seed": 1}, command=[])
print(writer.run_id, flush=True)
time.sleep(60)
"""


@pytest.mark.integration
def test_a_run_whose_process_died_becomes_crashed(runs_dir: Path) -> None:
    """Though it leaves no trace in any file."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(runs_dir)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        index = Index.open(runs_dir)
        index.refresh()
        assert index.find(status="running")[0] == 1
        assert index.refresh().changed == []
        process.kill()
        process.wait()
    assert index.refresh().changed == [run_id]
    assert [row["status"] for row in index.find()[1]] == ["failed"]
    assert index.refresh().changed == []


def test_appended_rows_are_read_without_those_before(
    new_run: NewRun, runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that is damaged after it was read does not show: it is not read again."""
    writer = new_run(rows=2000)
    index = Index.open(runs_dir)
    index.refresh()
    path = writer.path / layout.METRICS
    data = bytearray(path.read_bytes())
    at = data.index(b"\n", 200) + 1
    data[at : at + 1] = b"x"
    with path.open("r+b") as file:
        file.write(data)
    writer.metrics(row_of(2001))
    parsed: list[bytes] = []

    class Counting(NewRows):
        def __iter__(self) -> Any:
            for row in super().__iter__():
                parsed.append(b"")
                yield row

    monkeypatch.setattr("gymnasium_solver.runs.index.digest.NewRows", Counting)
    index.refresh()
    row = index.find()[1][0]
    assert len(parsed) == 1
    assert (row["rows"], row["epochs"], row["last_reward"]) == (2001, 2001, 60_000.0)
    assert len(row["sparkline"]) <= POINTS


def test_digest_agrees_with_the_whole_file_however_it_grew(tmp_path: Path) -> None:
    """Random rows and new columns, torn lines, NaN, trimming: the digest that went along is that of the whole."""
    random = np.random.default_rng(0)
    path = tmp_path / layout.METRICS
    file, kept = MetricsFile(path), None
    columns = ["train/cnt/env_steps", "train/cnt/epochs", "train/roll/ep_rew_mean"]
    for epoch in range(1, 400):
        if epoch == 100:
            columns.append("val/roll/ep_rew_mean")
        if epoch == 200:
            columns.append("test/roll/ep_rew_mean")
        values = [float(random.choice([random.normal(), np.nan, np.inf], p=[0.9, 0.08, 0.02])) for _ in columns]
        row = {name: value for name, value in zip(columns, values, strict=True) if random.random() < 0.7}
        file.append(row)
        if epoch == 250:
            with path.open("ab") as other:
                other.write(b"garbage\n")
        if epoch == 300:  # as when a run is resumed
            file.close()
            layout.replace_file(path, path.read_bytes().splitlines(keepends=True)[:-30])
            file = MetricsFile(path)
        if random.random() < 0.2:
            kept = digest(tmp_path, kept)
            fresh = digest(tmp_path)
            np.testing.assert_equal(vars(kept), vars(fresh))
            np.testing.assert_equal(kept.newest, json.loads(kept.to_json())["newest"])
            whole = Run(tmp_path).metrics
            rewards = whole.series(kept.reward)[1]
            assert kept.rewards == rewards.size
            np.testing.assert_equal(kept.series(kept.reward)[1].max(initial=-np.inf), rewards.max(initial=-np.inf))
            for name in columns[:2]:
                np.testing.assert_equal(kept.last(name), whole.last(name))
    assert kept is not None
    assert kept.stride > 1
    assert len(kept.sparkline()) <= POINTS


def test_a_half_written_line_waits_until_it_is_whole(new_run: NewRun, runs_dir: Path) -> None:
    writer = new_run(rows=5)
    index = Index.open(runs_dir)
    index.refresh()
    line = (writer.path / layout.METRICS).read_bytes().splitlines(keepends=True)[-1]
    with (writer.path / layout.METRICS).open("ab") as file:
        for part, rows in ((line[:4], 5), (line[4:9], 5), (line[9:], 6)):
            file.write(part)
            file.flush()
            index.refresh()
            assert index.find()[1][0]["rows"] == rows


@pytest.mark.parametrize("damage", ["deleted", "garbage", "half", "another version", "other columns"])
def test_a_damaged_index_is_rebuilt_silently(new_run: NewRun, runs_dir: Path, damage: str) -> None:
    copies(new_run(rows=40), 40)
    with Index.open(runs_dir) as before:
        before.refresh()
    path = runs_dir / FILE
    if damage == "deleted":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"no database at all" * 1000)
    elif damage == "half":
        data = path.read_bytes()
        path.write_bytes(data[:4096] + bytes(4096) + data[8192 : len(data) // 2])
    else:
        path.unlink()
        name = "gsolve_runs_0" if damage == "another version" else TABLE
        with sqlite3.connect(path) as connection:
            connection.execute(f"CREATE TABLE {name} (root TEXT, run_id TEXT, started_at TEXT, other TEXT)")
    index = Index.open(runs_dir)
    index.refresh()
    total, rows = index.find()
    assert total == 40
    assert summaries(rows) == truth(runs_dir)
    assert path.read_bytes().startswith(b"SQLite format 3")


def test_an_index_deleted_or_damaged_while_open_comes_back(new_run: NewRun, runs_dir: Path) -> None:
    copies(new_run(rows=40), 40)
    index = Index.open(runs_dir)
    index.refresh()
    for suffix in ("", "-wal", "-shm"):
        (runs_dir / f"{FILE}{suffix}").unlink()
    index.refresh()
    assert (runs_dir / FILE).exists()
    assert index.find()[0] == 40
    index.close()
    (runs_dir / FILE).write_bytes(b"x" * 10_000)
    assert index.find()[0] == 40, "rebuilt when it is asked, not only when it is refreshed"


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Nothing is read-only for root."""
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_that_cannot_be_written_has_its_index_in_memory(new_run: NewRun, runs_dir: Path) -> None:
    new_run(rows=2).status("completed")
    with tempfile.TemporaryDirectory() as name:
        copied = Path(name, "runs")
        shutil.copytree(runs_dir, copied, symlinks=True)
        Path(name).chmod(0o755)
        copied.chmod(0o555)
        with nobody(), Index.open(copied) as index:
            assert len(index.refresh().added) == 1
            assert summaries(index.find()[1]) == truth(copied)
            assert index.refresh() == ([], [], [])
        assert not (copied / FILE).exists()
        with Index.open(copied) as index:  # by somebody who may
            index.refresh()
        with nobody(), Index.open(copied) as index:
            assert len(index.refresh().added) == 1
            assert index.find()[0] == 1
        copied.chmod(0o755)


def test_a_missing_directory_has_no_runs_and_is_not_created(tmp_path: Path) -> None:
    index = Index.open(tmp_path / "nowhere")
    assert index.refresh() == ([], [], [])
    assert index.find() == (0, [])
    assert not (tmp_path / "nowhere").exists()


def test_a_moved_directory_keeps_its_index(new_run: NewRun, runs_dir: Path, tmp_path: Path) -> None:
    new_run(rows=2)
    with Index.open(runs_dir) as index:
        index.refresh()
    runs_dir.rename(tmp_path / "elsewhere")
    with Index.open(tmp_path / "elsewhere") as index:
        assert index.refresh() == ([], [], [])
        assert summaries(index.find()[1]) == truth(tmp_path / "elsewhere")


def test_search_filter_sort_and_page(new_run: NewRun, runs_dir: Path) -> None:
    for seed, (env, rows, status) in enumerate(
        [("CartPole-v1", 5, "completed"), ("Acrobot-v1", 10, "failed"), ("ALE/Pong_v5", 0, "running")]
    ):
        writer = new_run(rows=rows, seed=seed, env_id=env)
        writer.status(status, error="100% broken" if status == "failed" else None, solved=status == "completed")
    index = Index.open(runs_dir)
    index.refresh()

    def seeds(*words: str, **options: Any) -> list[int]:
        return [row["seed"] for row in index.find(*words, **options)[1]]

    assert seeds("acro") == seeds("ACROBOT failed") == seeds("100%") == [1]
    assert seeds("o_-v") == seeds("0%b") == seeds("acrobot completed") == [], "signs of LIKE are letters here"
    assert seeds(env="ALE/Pong_v5") == seeds(status="running") == [2]
    assert seeds(solved=True) == [0]
    assert seeds(group="no such") == []
    assert seeds(sort="seed") == [0, 1, 2]
    assert seeds(sort="best_reward") == [0, 1, 2]
    assert seeds(sort="-best_reward") == [1, 0, 2], "without a reward comes last either way"
    assert index.find(limit=2, offset=2, sort="-seed")[0] == 3
    assert seeds(limit=2, offset=2, sort="-seed") == [0]
    assert seeds(limit=0) == []
    with pytest.raises(ConfigError, match="best_reward"):
        index.find(sort="seed; DROP TABLE runs")


@pytest.mark.parametrize("text", ["'", '"; --', "%", "!", "\0x", "\ud800", "?", "💥" * 500, "z" * 10**6, "z " * 10**5])
def test_no_text_is_an_error(new_run: NewRun, runs_dir: Path, text: str) -> None:
    new_run(rows=1)
    index = Index.open(runs_dir)
    index.refresh()
    assert index.find(text) == (0, [])
    assert index.find(text, env=text, group=text, limit=10**30, offset=10**30) == (0, [])
    assert index.get(text) is None
    assert index.find()[0] == 1


def test_runs_with_odd_files_are_indexed_like_any_other(new_run: NewRun, runs_dir: Path) -> None:
    odd = new_run(rows=2)
    (odd.path / layout.STATUS).write_text("{")
    (odd.path / layout.METRICS).write_bytes(b"")
    config = {"env_id": ["a\0b"], "algo_id": None, "seed": 10**400, "reward_threshold": 1e308}
    layout.write_json(new_run(seed=5).path / layout.CONFIG, config)
    unnamed = os.fsencode(runs_dir) + b"/\xff"  # no run that anybody could name
    os.mkdir(unnamed)  # noqa: PTH102
    shutil.copy(odd.path / layout.CONFIG, os.fsdecode(unnamed))
    index = Index.open(runs_dir)
    index.refresh()
    assert index.find()[0] == 2
    shutil.rmtree(unnamed)
    assert summaries(index.find()[1]) == truth(runs_dir)


ANOTHER = """
import sys
from pathlib import Path
from gymnasium_solver.runs.index.index import Index
with Index.open(Path(sys.argv[1])) as index:
    for _ in range(100):
        index.refresh()
        total, rows = index.find()
        assert total >= len(rows) - 5 and all(row["sparkline"] is not None for row in rows)
    print(index._store.generation)
"""


@pytest.mark.integration
def test_two_processes_on_one_directory(new_run: NewRun, runs_dir: Path) -> None:
    """From the first moment on, while runs are written and deleted: no error, no lost row, the file in use."""
    writers = [new_run(rows=3, seed=seed) for seed in range(12)]
    command = [sys.executable, "-c", ANOTHER, str(runs_dir)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    epoch = 3
    while any(other.poll() is None for other in others):
        epoch += 1
        writers[epoch % len(writers)].metrics(row_of(epoch))
        if epoch % 50 == 0:
            shutil.rmtree(writers.pop().path)
            writers.append(new_run(rows=1, seed=epoch))
        time.sleep(0.005)
    for other in others:
        out, err = other.communicate()
        assert (other.returncode, out.split()) == (0, ["0"]), err
    index = Index.open(runs_dir)
    index.refresh()
    assert index.find()[0] == 12
    assert summaries(index.find()[1]) == truth(runs_dir)


def test_many_threads_on_one_index(new_run: NewRun, runs_dir: Path) -> None:
    for seed in range(10):
        new_run(rows=2, seed=seed)
    index, failures = Index.open(runs_dir), []
    index.refresh()

    def ask() -> None:
        try:
            for _ in range(20):
                index.refresh()
                assert index.find("cartpole", limit=5)[0] == 10
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.slow
def test_ten_thousand_runs(new_run: NewRun, runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_run(rows=50)
    made.status("completed")
    status = (made.path / layout.STATUS).read_bytes()
    for number in range(1, 10_000):
        path = runs_dir / f"{made.run_id}{number}"
        path.mkdir()
        for name in (layout.CONFIG, layout.METRICS):
            (path / name).hardlink_to(made.path / name)
        (path / layout.STATUS).write_bytes(status)

    index = Index.open(runs_dir)
    assert len(index.refresh().added) == 10_000
    monkeypatch.setattr("gymnasium_solver.runs.index.index.digest", None)  # none is read again
    assert index.refresh() == ([], [], [])
    total, rows = index.find("cartpole", limit=50)
    assert (total, len(rows)) == (10_000, 50)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: (run / "status.json").write_text('{"status": "completed", "threshold": "high"}'),
        lambda run: (run / "status.json").write_text("[" * 100_000),
        lambda run: (run / "metrics.csv").write_bytes(bytes(range(256)) * 20),
        lambda run: ((run / "metrics.csv").unlink(), (run / "metrics.csv").mkdir()),
    ],
)
def test_one_damaged_run_hides_no_other(new_run: NewRun, runs_dir: Path, damage: Callable[[Path], object]) -> None:
    good, bad = new_run(rows=3, seed=1), new_run(rows=3, seed=2)
    for writer in (good, bad):
        writer.status("completed", solved=False)
    damage(bad.path)
    with Index.open(runs_dir) as index:
        index.refresh()
        assert {row["run_id"] for row in index.find()[1]} == {good.run_id, bad.run_id}
    assert {run.summary()["run_id"] for run in list_runs(runs_dir)} == {good.run_id, bad.run_id}
