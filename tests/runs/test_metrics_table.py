"""metrics.csv in every state a reader can meet it."""

from __future__ import annotations

import csv
import resource
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.runs import metrics_reader
from gymnasium_solver.runs.metrics_reader import Metrics


def table(tmp_path: Path, content: bytes) -> Metrics:
    path = tmp_path / "metrics.csv"
    path.write_bytes(content)
    return Metrics(path)


@pytest.mark.parametrize("content", [b"", b"a,b", b"a,b\n", b"a,b\n1", b"\n"])
def test_a_file_without_rows_is_empty(tmp_path: Path, content: bytes) -> None:
    metrics = table(tmp_path, content)
    assert all(values.size == 0 for values in metrics.values())
    assert metrics.series("a")[0].size == 0
    assert np.isnan(metrics.last("a"))
    assert metrics.skipped_lines == 0


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "none.csv")
    assert dict(metrics) == {}
    assert metrics.to_dict() == {}


def test_a_half_written_last_line_is_not_there(tmp_path: Path) -> None:
    metrics = table(tmp_path, b"a,b\n1,2\n3,4")
    assert metrics["b"].tolist() == [2]
    assert metrics.skipped_lines == 0


def test_junk_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    metrics = table(tmp_path, b"a,b\n1,2\ngarbage\n\n3\n4,5,6\nx,y\na,b\n\0\0,\0\n7,8\n")
    assert metrics["a"].tolist() == [1, 7]
    assert metrics["b"].tolist() == [2, 8]
    assert metrics.skipped_lines == 7


@pytest.mark.parametrize("columns", [1, 2, 9])
def test_unusual_numbers_are_read_as_python_reads_them(tmp_path: Path, columns: int) -> None:
    cells = [
        "+1",
        ".5",
        "5.",
        "007",
        "1E5",
        "-inf",
        "nan",
        "NaN",
        "Infinity",
        "1" * 400,
        " 2 ",
        "1e999",
        "e",
        "--1",
        "-0",
    ]
    names = ",".join(f"c{i}" for i in range(columns))
    rows = "".join(",".join([x] * columns) + "\r\n" for x in cells)
    metrics = table(tmp_path, f"{names}\r\n{rows}".encode())

    def expected(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return np.nan

    np.testing.assert_array_equal(metrics["c0"], [expected(x) for x in cells])


def test_columns_read_alone_together_and_in_pieces_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(500, 11)) * 10.0 ** random.integers(-20, 20, size=(500, 11))
    present = random.random(values.shape) < 0.7
    rows = [[repr(float(v)) if p else "" for v, p in zip(*x, strict=True)] for x in zip(values, present, strict=True)]
    names = [f"c{i}" for i in range(11)]
    with (tmp_path / "metrics.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
    expected = np.where(present, values, np.nan)
    for chunk in (300, 4096, 1 << 18):
        monkeypatch.setattr(metrics_reader, "CHUNK", chunk)
        together = Metrics(tmp_path / "metrics.csv").to_dict()
        for i, name in enumerate(names):
            alone = Metrics(tmp_path / "metrics.csv")
            np.testing.assert_array_equal(alone[name], expected[:, i])
            np.testing.assert_array_equal(together[name], expected[:, i])
            np.testing.assert_array_equal(alone.recorded(name), present[:, i])


def test_series_leaves_out_what_was_not_measured(tmp_path: Path) -> None:
    metrics = table(tmp_path, b"train/cnt/env_steps,r\n1,\n2,5\n3,nan\n4,6\n")
    steps, values = metrics.series("r")
    assert (steps.tolist(), values.tolist()) == ([2, 4], [5, 6])
    assert metrics.last("r") == 6
    assert np.isnan(metrics.last("absent"))
    with pytest.raises(KeyError):
        metrics["absent"]


def test_a_growing_file_is_seen_as_it_was(tmp_path: Path) -> None:
    metrics = table(tmp_path, b"a,b\n1,2\n")
    assert metrics["a"].tolist() == [1]
    with (tmp_path / "metrics.csv").open("ab") as file:
        file.write(b"3,4\n")
    assert metrics["b"].tolist() == [2]
    assert Metrics(tmp_path / "metrics.csv")["b"].tolist() == [2, 4]


def test_it_is_a_mapping_that_pandas_takes_for_a_dict(tmp_path: Path) -> None:
    metrics = table(tmp_path, b"a,b\n1,2\n")
    assert isinstance(metrics, dict)
    assert {**metrics}.keys() == dict(metrics).keys() == metrics.to_dict().keys() == {"a", "b"}
    assert len(metrics) == 2
    assert "b" in metrics
    assert metrics.get("c") is None
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(metrics).to_dict("list") == {"a": [1.0], "b": [2.0]}


@pytest.mark.slow
def test_of_a_million_rows_only_what_is_asked_for_is_held_in_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    block = "".join(",".join(map(repr, row)) + ",,,\n" for row in random.normal(size=(2000, 57)).tolist()).encode()
    path = tmp_path / "metrics.csv"
    with path.open("wb") as file:
        file.write(",".join(f"c{i}" for i in range(60)).encode() + b"\n")
        for _ in range(500):
            file.write(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    metrics = Metrics(path)
    metrics.load(["c0", "c30"])
    assert len(metrics["c0"]) == 1_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
