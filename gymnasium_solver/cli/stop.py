"""`gsolve stop`: ask a training to finish its update, save and end."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunOrGroupRef, RunsDir
from gymnasium_solver.metrics.clocks import CLOCKS


def stop(
    run: RunOrGroupRef,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait for it to end.")] = 60.0,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Stop a training after its current update.

    It is saved and can be resumed. Of a group, all seeds that are running stop and no others start.
    """
    final = api.stop(run, timeout=timeout, runs_dir=runs_dir, say=output.message)
    name = final.get("run_id") or final["group"]
    if json:
        output.emit_json(final)
    elif not final["was_running"]:
        why = f" ({final['reason']})" if final.get("reason") else ""
        output.emit(f"{name} is not running: {final['status']}{why}")
    elif "runs" in final:
        waiting = f", {len(final['waiting'])} not started" if final["waiting"] else ""
        output.emit(f"{name}: {final['status']}, {len(final['runs'])} of {len(final['seeds'])} seeds begun{waiting}")
    else:
        output.emit(f"{name}: {final['status']} at {output.number(final['progress'])} {CLOCKS[final['clock']].unit}")
