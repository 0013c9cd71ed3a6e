"""A runs directory with a run that failed, one that solved its task, and nothing trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnasium_solver.runs.reader import Run
from tests.made_runs import FAILING, HEALTHY, write_run


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GSOLVE_RUNS_DIR", raising=False)
    monkeypatch.delenv("GSOLVE_TOKEN", raising=False)
    path = tmp_path / "runs"
    path.mkdir()
    return path


@pytest.fixture
def failed(runs_dir: Path) -> Run:
    return write_run(runs_dir, FAILING, seed=1, policy_lr=1e-6)


@pytest.fixture
def solved(runs_dir: Path) -> Run:
    return write_run(runs_dir, HEALTHY, seed=2, solved=True)
