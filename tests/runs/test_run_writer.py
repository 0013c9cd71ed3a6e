"""What is written, and what a resumed run finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.errors import SolverError
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.metrics_writer import cell
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter

NewRun = Callable[..., RunWriter]


def test_a_run_id_sorts_by_time_and_has_no_separator(new_run: NewRun) -> None:
    run_id = new_run(env_id="ALE/Pong-v5", seed=7).run_id
    assert re.fullmatch(r"\d{8}-\d{6}-ALE-Pong-v5-ppo-s7-[0-9a-f]{4}", run_id)


def test_an_id_that_is_taken_is_never_used_again(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["aaaa", "aaaa", "bbbb"])
    monkeypatch.setattr(layout.secrets, "token_hex", lambda _: next(answers))
    monkeypatch.setattr("gymnasium_solver.runs.writer.time.time", lambda: 1_700_000_000.0)
    assert new_run().run_id.endswith("aaaa")
    assert new_run().run_id.endswith("bbbb")


def test_the_environment_is_on_record(new_run: NewRun) -> None:
    record = Run(new_run().path).environment
    assert record["command"] == ["gsolve", "train", "CartPole-v1:ppo"]
    assert record["packages"]["numpy"] == np.__version__
    assert {"python", "platform", "cpu_count", "host", "git"} <= record.keys()


def test_git_state_outside_a_repository_is_none(
    new_run: NewRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Run(new_run().path).environment["git"] is None


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-300, 1e22, -0.0, 2.0**53, 5e-324, float("nan"), float("-inf")])
def test_numbers_come_back_exactly(value: float) -> None:
    assert np.array(float(cell(value))).tobytes() == np.array(value).tobytes() or np.isnan(value)


def test_whole_numbers_have_no_fraction() -> None:
    assert [cell(x) for x in (4096.0, np.float32(3), np.int64(7), True, None)] == ["4096", "3", "7", "1", ""]


def test_nan_is_evidence_and_a_missing_value_is_empty(new_run: NewRun) -> None:
    writer = new_run()
    writer.metrics({"a": float("nan"), "b": 1.0, "c": float("inf")})
    writer.metrics({"b": 2.0, "c": float("-inf")})
    assert (writer.path / "metrics.csv").read_text() == "a,b,c\nnan,1,inf\n,2,-inf\n"
    metrics = Run(writer.path).metrics
    assert np.isnan(metrics["a"]).all()
    assert metrics.recorded("a").tolist() == [True, False]
    assert np.isnan(metrics.last("a"))
    assert metrics["c"].tolist() == [np.inf, -np.inf]


def test_a_new_column_leaves_earlier_rows_in_shape(new_run: NewRun) -> None:
    writer = new_run()
    writer.metrics({"a": 1})
    writer.metrics({"b": 2, "a": 1.5})
    writer.metrics({"c": 3})
    assert (writer.path / "metrics.csv").read_text() == "a,b,c\n1,,\n1.5,2,\n,,3\n"


def test_a_column_name_that_would_break_the_table_is_refused(new_run: NewRun) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a column"):
        new_run().metrics({"a,b": 1})


def test_status_keeps_fields_and_always_has_the_process(new_run: NewRun) -> None:
    writer = new_run()
    writer.status("running", threshold=475.0)
    writer.status("completed", solved=np.bool_(True))
    status = json.loads((writer.path / "status.json").read_text())
    assert status["status"] == "completed"
    assert status["threshold"] == 475.0
    assert status["solved"] is True
    assert status["pid"] == os.getpid()
    assert {"host", "heartbeat", "started_at", "updated_at"} <= status.keys()
    with pytest.raises(ValueError, match="status must be one of"):
        writer.status("done")


def test_heartbeats_are_written_at_most_once_a_second(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = new_run()
    written: list[str] = []
    monkeypatch.setattr(writer, "status", written.append)
    for _ in range(100):
        writer.heartbeat(env_steps=1)
    assert written == []
    writer._beaten -= 2
    writer.heartbeat()
    assert written == ["running"]


def test_the_log_has_time_level_and_indented_continuation(new_run: NewRun) -> None:
    writer = new_run()
    writer.log("warning", "first\nsecond")
    first, second = Run(writer.path).log_lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING first", first)
    assert second == "    second"


def test_reopen_drops_later_rows_and_keeps_the_rest_byte_for_byte(new_run: NewRun) -> None:
    writer = new_run(rows=20)
    path = writer.path / "metrics.csv"
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:13])
    started = Run(writer.path).status["started_at"]
    with path.open("ab") as file:
        file.write(b"5376,21,0.")  # torn
    again = RunWriter.reopen(writer.path, epoch=12)
    assert path.read_bytes() == kept
    again.metrics({"train/cnt/epochs": 13, "new": 1.0})
    metrics = Run(writer.path).metrics
    assert metrics["train/cnt/epochs"].tolist() == list(range(1, 14))
    status = Run(writer.path).status
    assert (status["started_at"], status["resumes"], status["status"]) == (started, 1, "running")
    again.close()


@pytest.mark.parametrize("content", [b"", b"train/cnt/ep", b"\0" * 4096, None])
def test_reopen_starts_over_when_there_is_no_header(new_run: NewRun, content: bytes | None) -> None:
    writer = new_run()
    path = writer.path / "metrics.csv"
    path.unlink() if content is None else path.write_bytes(content)
    again = RunWriter.reopen(writer.path, epoch=0)
    again.metrics({"a": 1})
    assert path.read_bytes() == b"a\n1\n"
    again.close()


@pytest.mark.integration
def test_a_run_that_is_being_trained_cannot_be_resumed(new_run: NewRun) -> None:
    writer = new_run(rows=1)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        status = json.loads((writer.path / "status.json").read_text()) | {"pid": process.pid, "process": None}
        (writer.path / "status.json").write_text(json.dumps(status))
        with pytest.raises(SolverError, match=f"still being trained by process {process.pid}"):
            RunWriter.reopen(writer.path, epoch=1)
    finally:
        process.communicate(b"\n")
    RunWriter.reopen(writer.path, epoch=1).close()


def test_a_runs_directory_that_cannot_be_made_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SolverError, match="choose another place with --runs-dir"):
        RunWriter.create(tmp_path / "file" / "runs", {}, command=[])
