"""Curves of large and growing files: nothing parsed twice, no peak lost, memory bounded."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.api import columns
from gymnasium_solver.api.columns import Columns
from gymnasium_solver.runs import metrics_reader
from gymnasium_solver.runs.metrics_reader import Metrics
from gymnasium_solver.runs.thinning import thin
from tests.runs.made_metrics import VALUE, write


@pytest.mark.parametrize("points", [2, 3, 4, 5, 17, 500, 5000])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 100, 5001, 10_007])
def test_thinned_curves_keep_ends_and_extremes(size: int, points: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    steps = np.arange(size) * 10.0
    kept_steps, kept = thin(steps, values, points)
    assert len(kept) == min(size, points) if size <= points else len(kept) <= points
    assert (np.diff(kept_steps) > 0).all()
    assert np.array_equal(values[(kept_steps / 10).astype(int)], kept)
    if size:
        assert (kept[0], kept[-1]) == (values[0], values[-1])
    if size > 2 and points >= 4:
        assert (kept.min(), kept.max()) == (values.min(), values.max())


def test_thinning_shows_a_single_spike_and_is_the_same_every_time() -> None:
    values = np.zeros(1_000_000)
    values[654_321] = 1
    one, other = thin(np.arange(1e6), values, 100), thin(np.arange(1e6), values, 100)
    assert 654_321 in one[0]
    assert np.array_equal(one[1], other[1])


def test_a_large_file_is_answered_at_once_and_exactly_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.csv"
    write(path, 20_002)
    monkeypatch.setattr(metrics_reader, "LARGE", 1000)
    monkeypatch.setattr(metrics_reader, "STRETCH", 500)
    monkeypatch.setattr(columns, "STRETCH", 500)
    read: list[Path] = []
    kept = Columns(read.append)
    found, exact = kept.curves(path, [VALUE, "no-such"])
    assert not exact
    assert list(found) == [VALUE]
    assert 100 < len(found[VALUE][0]) < 20_002
    assert found[VALUE][0].max() == 200_020  # the newest row is among them
    deadline = time.monotonic() + 10
    while not read and time.monotonic() < deadline:
        time.sleep(0.01)
    found, exact = kept.curves(path, [VALUE])
    assert exact
    assert len(found[VALUE][0]) == np.isfinite(Metrics(path)[VALUE]).sum()
    write(path, 4, start=20_002)
    found, exact = kept.curves(path, [VALUE])  # still exact: the tail is parsed at once
    assert exact
    assert found[VALUE][0][-1] == 200_060
    kept.close()


def test_a_file_larger_than_memory_allows_is_never_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.csv"
    write(path, 20_002)
    monkeypatch.setattr(metrics_reader, "LARGE", 1000)
    monkeypatch.setattr(metrics_reader, "STRETCH", 500)
    monkeypatch.setattr(columns, "STRETCH", 500)
    monkeypatch.setattr(columns, "KEPT_BYTES", 200_000)  # two columns are 320,000
    kept = Columns(lambda path: pytest.fail("it was read"))
    for _ in range(3):
        found, exact = kept.curves(path, [VALUE])
        assert not exact
        assert len(found[VALUE][0])
    kept._reader.shutdown(wait=True)


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "KEPT_BYTES", 50_000)
    kept = Columns()
    for index in range(5):
        path = tmp_path / f"{index}.csv"
        write(path, 1000)
        assert len(kept.curves(path, [VALUE])[0][VALUE][0])
    assert sum(table.bytes for table in kept._tables.values()) <= 50_000
    assert 0 < len(kept._tables) < 5
    large = tmp_path / "large.csv"
    write(large, 10_000)
    assert len(kept.curves(large, [VALUE])[0][VALUE][0])  # more than is kept: answered, and forgotten
    assert sum(table.bytes for table in kept._tables.values()) <= 50_000
    kept.close()
