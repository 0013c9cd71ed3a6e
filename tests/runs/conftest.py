from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.runs.writer import RunWriter

CONFIG = {"env_id": "CartPole-v1", "algo_id": "ppo", "seed": 3, "reward_threshold": 475.0, "max_env_steps": 100_000}


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def new_run(runs_dir: Path) -> Iterator[Callable[..., RunWriter]]:
    """new_run(rows=…, **config): a run with that many rows, an evaluation in every fifth."""
    writers: list[RunWriter] = []

    def create(rows: int = 0, **config: Any) -> RunWriter:
        writer = RunWriter.create(runs_dir, {**CONFIG, **config}, command=["gsolve", "train", "CartPole-v1:ppo"])
        writers.append(writer)
        for epoch in range(1, rows + 1):
            writer.metrics(row_of(epoch))
        return writer

    yield create
    for writer in writers:
        writer.close()


def row_of(epoch: int) -> dict[str, float]:
    row = {"train/cnt/env_steps": epoch * 256.0, "train/cnt/epochs": epoch, "train/roll/ep_rew_mean": 10.1 * epoch}
    if epoch % 5 == 0:
        row["val/roll/ep_rew_mean"] = 30.0 * epoch
    return row
