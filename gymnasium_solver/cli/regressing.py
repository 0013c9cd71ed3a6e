"""`gsolve regress`: does the suite still learn as fast as it did?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Jobs, Json, Quiet, RunsDir, Trust

EXAMPLES = """\b
Examples:
  gsolve regress                                           the quick suite
  gsolve regress shipped --seeds 5                         all; hours
  gsolve regress suite.yaml --baseline base.json --update  record
  gsolve regress suite.yaml --baseline base.json           compare

\b
A suite is a YAML file:
  - CartPole-v1:ppo
  - config: LunarLander-v3:ppo
    set: {policy_lr: 1e-3}
    max_env_steps: 500000

\b
Exit codes:
  0 nothing regressed              2 bad input
  1 a config could not be trained  5 regressed
"""
STYLES = {
    "regressed": "31",
    "failed": "31",
    "cannot tell": "33",
    "improved": "32",
    "unchanged": "32",
    "identical": "32",
}


def regress(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="quick, shipped, or a YAML file.")] = "quick",
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="What to compare with [default: the shipped one].")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Seeds of each config, the baseline's first [default: 5]."),
    ] = None,
    jobs: Jobs = None,
    update: Annotated[
        bool, typer.Option("--update", help="Record the measurements as the baseline instead of comparing.")
    ] = False,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare convergence with a stored baseline.

    Trains every config of the suite over the baseline's seeds and compares steps to the threshold (return, where the
    baseline did not reach it). One verdict per config: regressed, improved, unchanged, identical, or cannot tell, with
    the seeds that would be needed. Steps per second are shown, not judged: machines differ.
    """
    say = (lambda _: None) if quiet else output.message
    document = api.regress(suite, baseline=baseline, seeds=seeds, jobs=jobs, update=update, runs_dir=runs_dir, say=say)
    if json:
        output.emit_json(document)
    elif update:
        output.emit(f"wrote {len(document['configs'])} configs into {document['updated']}")
    else:
        _emit(document)
    raise typer.Exit(document["exit_code"])


def _emit(document: dict[str, Any]) -> None:
    from statistics import median

    def side(known: dict[str, Any] | None, name: str) -> str:
        if known is None:
            return "-"
        if name == "steps":
            steps = [float("inf") if value is None else value for value in known["steps"]]
            return output.number(median(steps))
        if name == "solved":
            return f"{known['solved']}/{len(known['seeds'])}"
        return output.number(median(known["reward"])) if name == "reward" else output.number(known[name])

    names = ("solved", "steps", "reward", "steps_per_second")
    output.emit_table(
        ("CONFIG", "VERDICT", "SOLVED", "STEPS", "RETURN", "STEPS/S"),
        (
            (
                row["config"],
                row["verdict"],
                *(f"{side(row['before'], name)} → {side(row['now'], name)}" for name in names),
            )
            for row in document["configs"]
        ),
    )
    output.emit("")
    identical = [row["config"] for row in document["configs"] if row["verdict"] == "identical"]
    for row in document["configs"]:
        if row["config"] not in identical:
            output.emit(f"{row['config']}: {row['verdict']}; {row['sentence']}.")
    if identical:
        output.emit(f"{len(identical)} identical: every seed gave exactly the same result as in the baseline.")
    regressed = [row["config"] for row in document["configs"] if row["verdict"] == "regressed"]
    output.emit(f"Regressed: {', '.join(regressed)}." if regressed else "Nothing is shown to have regressed.")
    output.emit(f"runs     gsolve runs --group {document['group']}")
