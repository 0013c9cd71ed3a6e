"""Checkpoints, as the verbs are given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gymnasium_solver.api.lookup import load_run
from gymnasium_solver.errors import NotFoundError

if TYPE_CHECKING:
    from gymnasium_solver.diagnose.checkpoints.inspection import Inspection
    from gymnasium_solver.runs.reader import Run

SUFFIXES = (".safetensors", ".pt", ".pth", ".zip", ".ckpt")


def load_checkpoint(
    run: Run | str, checkpoint: str | None = None, *, runs_dir: str | Path | None = None
) -> tuple[Run, str]:
    """The run and the name of the checkpoint that `RUN`, `RUN/@best`, `RUN/@last` or `RUN/epoch=N` means.

    Without a name: the best checkpoint, or the last where nothing was evaluated yet.
    """
    from gymnasium_solver.runs.reader import Run, split_checkpoint_ref

    ref, name = (run, None) if isinstance(run, Run) else split_checkpoint_ref(run)
    found, name = load_run(ref, runs_dir=runs_dir), checkpoint or name
    return found, found.require_checkpoint(name or ("best" if "best" in found.checkpoints() else "last"))


def inspection(ref: Run | str, runs_dir: str | Path | None = None) -> Inspection:
    """Of a checkpoint, or of a file of another library."""
    from gymnasium_solver.diagnose.checkpoints.inspection import inspect_file, inspect_run

    path = Path(ref).expanduser() if isinstance(ref, str) else None
    if path is not None and path.is_file():
        return inspect_file(path)
    if path is not None and path.suffix in SUFFIXES:
        raise NotFoundError(f"there is no file {path}; a run's checkpoints are RUN/@last, RUN/@best, RUN/epoch=N")
    return inspect_run(*load_checkpoint(ref, runs_dir=runs_dir))
