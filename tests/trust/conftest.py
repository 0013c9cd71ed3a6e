"""A module that leaves a mark when it is imported, and runs and records that name it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter
from tests.made_runs import FAILING, STEPS, write_run

# Every way in ends here once the gate lets it pass: nothing has to be trained to see that it did.
TRAP = """
import pathlib
pathlib.Path({mark!r}).write_text(__name__)
raise RuntimeError("the trap was imported")
"""


class Trap(NamedTuple):
    here: Path  # the working directory, with trap.py
    mark: Path

    @property
    def runs_dir(self) -> Path:
        return self.here / "runs"

    @property
    def is_sprung(self) -> bool:
        return self.mark.exists()

    def run(self, **fields: Any) -> Run:
        """As somebody else has made it, with a checkpoint; `fields` name the code."""
        run = write_run(self.runs_dir, FAILING, status="interrupted", max_env_steps=60_000)
        writer = RunWriter(run.path, {"run_id": run.run_id, "started_at": "2026-01-01T00:00:00Z"})
        writer.checkpoint(["epoch=1", "last", "best"], {"x": np.zeros(1, np.float32)}, {"progress": {"epoch": 1}})
        writer.metrics({"train/cnt/env_steps": float(STEPS[-1]) + 1000, "train/cnt/epochs": len(STEPS) + 1})
        writer.status("interrupted")
        writer.close()
        config = json.loads((run.path / "config.json").read_text()) | (fields or {"env_id": "trap:Env"})
        (run.path / "config.json").write_text(json.dumps(config))
        return Run(run.path)

    def record(self, name: str, file: str, document: dict[str, Any]) -> str:
        (self.runs_dir / name).mkdir(parents=True, exist_ok=True)
        (self.runs_dir / name / file).write_text(json.dumps(document))
        return name


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    laid = Trap(tmp_path, tmp_path / "mark")
    (tmp_path / "trap.py").write_text(TRAP.format(mark=str(laid.mark)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("GSOLVE_RUNS_DIR", raising=False)
    sys.modules.pop("trap", None)
    laid.runs_dir.mkdir()
    return laid
