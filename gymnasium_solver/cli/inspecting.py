"""`gsolve inspect`: what is in a checkpoint file, of ours or of another library, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gymnasium_solver.api.inspecting import inspection
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir

if TYPE_CHECKING:
    from gymnasium_solver.diagnose.checkpoints.audit import Part
    from gymnasium_solver.diagnose.checkpoints.inspection import Inspection


def inspect(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="RUN (its best checkpoint), RUN/@last, RUN/epoch=N, or a file: .safetensors, .pt, .pth, .zip.",
        ),
    ],
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Look into a checkpoint for broken numbers and dead units.

    Also its parts, the optimiser, the target network and the statistics.
    Files of PyTorch and Stable-Baselines3 need the [torch] extra. Nothing in a file is ever executed.
    """
    found = inspection(checkpoint, runs_dir)
    output.emit_json(found.to_dict()) if json else _emit(found)


def _emit(inspection: Inspection) -> None:
    meta, found = inspection.meta, inspection.audit
    progress = meta.get("progress") or {}
    facts = [
        meta.get("source"),
        f"{meta['env_id']} {meta.get('algo_id', '')}".strip() if meta.get("env_id") else None,
        *(f"{output.number(progress[key])} {key.replace('_', ' ')}" for key in ("env_steps", "updates")
          if progress.get(key) is not None),
    ]  # fmt: skip
    output.emit(": ".join([inspection.checkpoint, ", ".join(str(fact) for fact in facts if fact)]).rstrip(": "))
    output.emit("")
    _emit_parts(found.parts)
    output.emit("")
    if inspection.compared_with:
        output.emit(f"drift: distance from {inspection.compared_with}, relative to the norm there")
    for name in meta.get("left_out") or ():
        output.message(f"left out: {name} (an unsupported kind of tensor)")
    if found.is_healthy:
        output.emit("no problems found")
    for finding in found.findings:
        output.emit(f"{finding.severity.upper()} {finding.kind}: {finding.what}")
        if finding.severity != "info":
            output.emit(f"  means: {finding.meaning}")
            output.emit(f"  remedy: {finding.remedy}")


def _emit_parts(parts: tuple[Part, ...]) -> None:
    columns = ["PART", "VALUES", "NORM", "LARGEST", "NON-FINITE", "ZEROS"]
    with_drift = any(part.drift is not None for part in parts)
    rows = [
        [
            part.name,
            output.number(part.values),
            output.number(part.norm),
            output.number(part.largest),
            output.number(part.non_finite),
            f"{part.zero_share:.1%}",
            *([output.number(part.drift, 3), output.number(part.drift_per_step, 2)] if with_drift else []),
        ]
        for part in parts
    ]
    columns += ["DRIFT", "PER STEP"] if with_drift else []
    output.emit_table(columns, rows, right=columns[1:])
