"""noise_scale.json: how noisy the gradients of a run were measured to be, beside the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.errors import writing
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.reader import Run


def write_noise_scale(run: Run, document: Mapping[str, Any]) -> None:
    with writing(
        run.path / layout.NOISE_SCALE, f"make it writable, or take the output of gsolve noise-scale {run.run_id} --json"
    ):
        layout.write_json(run.path / layout.NOISE_SCALE, plain(document))


def read_noise_scale(run: Run) -> dict[str, Any]:
    """Empty where it was not measured."""
    return layout.read_json(run.path / layout.NOISE_SCALE)
