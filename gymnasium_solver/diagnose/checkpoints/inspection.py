"""From a run or a file to an audit: loads the checkpoint, and the run's first one to compare it with."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium_solver.diagnose.checkpoints.audit import Audit, audit
from gymnasium_solver.diagnose.checkpoints.layers import Arrays
from gymnasium_solver.errors import CheckpointError
from gymnasium_solver.runs.foreign.checkpoints import load_for_audit, load_run_checkpoint
from gymnasium_solver.runs.reader import Run, checkpoint_ref


@dataclass(frozen=True)
class Inspection:
    checkpoint: str  # as it can be named again
    meta: dict[str, Any]
    compared_with: str | None
    audit: Audit

    def to_dict(self) -> dict[str, Any]:
        known = {key: self.meta.get(key) for key in ("source", "env_id", "algo_id", "left_out")}
        progress = self.meta.get("progress") or {}
        counts = {key: progress.get(key) for key in ("epoch", "env_steps", "updates")}
        return {
            "checkpoint": self.checkpoint,
            **known,
            "progress": counts,
            "compared_with": self.compared_with,
            **self.audit.to_dict(),
        }


def inspect_run(run: Run, name: str = "last") -> Inspection:
    arrays, meta = load_run_checkpoint(run, name)
    first = _first_before(run, (meta.get("progress") or {}).get("epoch") or 0)
    shown = checkpoint_ref(run.run_id, name)
    if first is None:
        return Inspection(shown, meta, None, audit(arrays, meta))
    number, earlier, before = first
    meta |= {"earlier_progress": before.get("progress")}
    compared_with = checkpoint_ref(run.run_id, f"epoch={number}")
    return Inspection(shown, meta, compared_with, audit(arrays, meta, earlier=earlier))


def inspect_file(path: Path) -> Inspection:
    """A file by itself; one in the directory of a run of ours is looked at as the run's checkpoint."""
    run, name = Run(path.parent.parent), path.name.removesuffix(".safetensors")
    if run.config and name in run.checkpoints():
        return inspect_run(run, name)
    arrays, meta = load_for_audit(path)
    return Inspection(str(path), meta, None, audit(arrays, meta))


def _first_before(run: Run, epoch: int) -> tuple[int, Arrays, dict[str, Any]] | None:
    """The first `epoch=N` that is older than this and whole."""
    numbers = sorted(int(name[6:]) for name in run.checkpoints() if re.fullmatch(r"epoch=\d+", name))
    for number in (number for number in numbers if number < epoch):
        with contextlib.suppress(CheckpointError):
            return number, *run.read_checkpoint(f"epoch={number}")
    return None
