"""metrics.csv while it is written: what was parsed stays parsed, and a look at all of a large file costs little."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.runs import metrics_reader
from gymnasium_solver.runs.metrics_reader import Metrics
from tests.runs.made_metrics import STEPS, VALUE, write


def test_appended_rows_are_parsed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.csv"
    write(path, 1000)
    metrics = Metrics(path)
    metrics.load([STEPS, VALUE])
    assert metrics.grown() is metrics
    write(path, 10, start=1000)
    parsed: list[int] = []
    parse = metrics_reader.parse

    def counting(blocks: Iterable[bytes], *rest: Any, **named: Any) -> Any:
        blocks = list(blocks)
        parsed.extend(map(len, blocks))
        return parse(blocks, *rest, **named)

    monkeypatch.setattr(metrics_reader, "parse", counting)
    later = metrics.grown()
    assert sum(parsed) < 200
    whole = Metrics(path)
    for name in (STEPS, VALUE):
        assert np.array_equal(later[name], whole[name], equal_nan=True)
        assert np.array_equal(later.recorded(name), whole.recorded(name))
    assert len(metrics[VALUE]) == 1000  # who holds the older one goes on with it


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    write(path, 3)
    with path.open("a") as file:
        file.write("40,0.")
    metrics = Metrics(path)
    metrics.load([STEPS, VALUE])
    with path.open("a") as file:
        file.write("5,\n50,6,\n60")
    metrics = metrics.grown()
    assert metrics[STEPS].tolist() == [10, 20, 30, 40, 50]
    assert metrics[VALUE].tolist()[3:] == [0.5, 6]
    with path.open("a") as file:
        file.write(",7,\nrubbish\n")
    assert metrics.grown()[VALUE].tolist()[3:] == [0.5, 6, 7]


def test_a_file_that_was_replaced_or_cut_is_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "metrics.csv", tmp_path / "other"
    write(path, 100)
    metrics = Metrics(path)
    metrics.load([STEPS])
    write(other, 200)
    other.rename(path)
    assert len(metrics.grown()[STEPS]) == 200
    path.unlink()
    assert metrics.grown().names == []


def test_what_is_at_hand_and_what_it_takes(tmp_path: Path) -> None:
    write(tmp_path / "metrics.csv", 100)
    metrics = Metrics(tmp_path / "metrics.csv")
    assert (metrics.loaded, metrics.nbytes) == ([], 0)
    metrics.load([VALUE, "none"])
    assert (metrics.loaded, metrics.nbytes) == ([VALUE], 800)


def test_stretches_lie_all_over_the_part_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_reader, "STRETCH", 500)
    path = tmp_path / "metrics.csv"
    write(path, 20_000)
    metrics = Metrics(path)
    size = metrics.size
    sampled = metrics.sampled([STEPS, VALUE, "none"], size)
    assert list(sampled) == [STEPS, VALUE]
    steps = sampled[STEPS]
    assert (steps[0], steps[-1]) == (10, 200_000)
    assert len(steps) == len(sampled[VALUE]) < 15_000
    assert np.diff(steps).max() < 10 * 100  # no long stretch is left out
    write(path, 20_000, start=20_000)
    assert np.array_equal(metrics.grown().sampled([STEPS], size)[STEPS], steps)  # the same rows of a longer file
    assert metrics.loaded == []
