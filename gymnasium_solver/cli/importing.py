"""`gsolve import`: a run of another library as one of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.api.reading import source_of
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir, mapping
from gymnasium_solver.plain import listed


def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Directory or file of the run.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="sb3, cleanrl, rllib, tianshou, tensorboard, wandb, csv or json [recognised from the files].",
        ),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OURS=THEIRS", help="Which column is which metric; may be given several times."),
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", metavar="ENV_ID", help="Its environment, where the files do not say.")
    ] = None,
    algo: Annotated[
        str | None, typer.Option("--algo", metavar="ALGO", help="Its algorithm, where the files do not say.")
    ] = None,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Import a run of another library, or a log.

    Stable-Baselines3, CleanRL, RLlib, Tianshou, TensorBoard, W&B, CSV and JSON.
    """
    columns = mapping(map_ or (), "train/roll/ep_rew_mean=reward")
    run = api.import_run(path, runs_dir=runs_dir, source=source, mapping=columns, env_id=env, algo_id=algo)
    found = source_of(run)
    summary = run.summary()
    if json:
        output.emit_json({"run_id": run.run_id, "summary": summary, **found, "source": found["path"], "path": run.path})
        return
    output.emit_facts(_rows(run.run_id, summary, found))
    for note in found["notes"]:
        output.message(f"warning: {note}")
    output.message(f"what now: gsolve diagnose {run.run_id}")


def _rows(run_id: str, summary: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, str]]:
    """What was recognised, what was mapped, and what is missing."""
    rows = [
        ("run", run_id),
        ("recognised", f"{found['library']}, from {_listed([Path(x).name for x in found['files']])}"),
        ("environment", output.number(summary["env_id"])),
        ("algorithm", output.number(summary["algo_id"])),
        ("status", f"{summary['status']}, {output.number(summary['env_steps'])} env steps"),
        ("best reward", output.number(summary["best_reward"])),
        ("metrics", f"{len(found['metrics'])} mapped: {_listed(found['metrics'])}"),
        ("settings", f"{len(found['fields'])} mapped: {_listed(found['fields'])}"),
    ]
    if found["unmapped"]:
        rows.append(("kept", f"{len(found['unmapped'])} as foreign/*: {_listed(found['unmapped'])}"))
    for kind in ("metrics", "config"):
        lacking = [x.removeprefix(f"{kind}: ") for x in found["missing"] if x.startswith(f"{kind}: ")]
        if lacking:
            rows.append((f"no {kind}", ", ".join(lacking)))
    return rows


def _listed(names: Any) -> str:
    return listed(names) or "-"
