"""`gsolve verify`, `gsolve optimize` and `gsolve solve`: experiments that end in a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.experiment_view import experiment_view
from gymnasium_solver.cli.options import Jobs, Json, Quiet, RunsDir, Set, Trust
from gymnasium_solver.errors import EXIT_OK, EXIT_TARGET_MISSED

VERIFY_EXAMPLES = """\b
Examples:
  gsolve verify @last -s policy_lr=1e-3  does this change help it?
  gsolve verify CartPole-v1:ppo -s n_epochs=20 --seeds 8

\b
Exit codes:
  0 a verdict, whichever    5 no verdict within the budget
"""
OPTIMIZE_EXAMPLES = """\b
Examples:
  gsolve optimize @last  fix the newest run, or make it faster
  gsolve optimize CartPole-v1:ppo --budget 5m
  gsolve optimize CartPole-v1:ppo -s policy_lr=1e-6 --objective return
  gsolve optimize --resume 20260101-120000-optimize-1a2b

\b
Exit codes:
  0 a better configuration, or none shown to be better
  5 no verdict within the budget
"""
SOLVE_EXAMPLES = """\b
Examples:
  gsolve solve CartPole-v1
  gsolve solve Pendulum-v1 --target -200 --budget 5m
  gsolve solve FrozenLake-v1 -s 'env_kwargs={is_slippery: false}'
  gsolve solve LunarLander-v3 --from-scratch  without shipped ones

\b
Exit codes:
  0 a policy passed on fresh episodes    5 none did within the budget
"""

Resume = Annotated[
    str | None, typer.Option("--resume", metavar="EXPERIMENT", help="Continue one that was interrupted.")
]


def verify(
    ref: Annotated[
        str | None, typer.Argument(metavar="RUN|ENV:VARIANT", help="What to change; not needed with --resume.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="FIELD=VALUE", help="The change; may be given several times."),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Fresh seeds per side, at least 4.")] = 5,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Most time to spend, e.g. 90s, 10m, 1h.")
    ] = None,
    jobs: Jobs = None,
    resume: Resume = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Test a change: train with and without it over fresh seeds."""
    options = api.Options(budget, seeds=seeds, jobs=jobs, resume=resume, runs_dir=runs_dir)
    with experiment_view(quiet) as view:
        document = api.verify(ref, change or (), options=options, say=view.say, watch=view.watch)
    if json:
        output.emit_json(document)
    else:
        output.emit_prose(document["verdict"])
        output.emit(f"details: gsolve compare {document['experiment']}")
    return EXIT_TARGET_MISSED if document["status"] == "no verdict" else EXIT_OK


def optimize(
    ref: Annotated[
        str | None, typer.Argument(metavar="RUN|ENV:VARIANT", help="What to make better; not needed with --resume.")
    ] = None,
    set_: Set = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="Time to spend, e.g. 90s, 10m, 1h [default: 10m].")
    ] = None,
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", min=1, help="Most trainings to run, instead of or besides time.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Fresh seeds per side of the test; doubled if undecided.")] = 5,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="WHAT",
            help="steps or seconds to the threshold, or final return [default: steps where there is a threshold].",
        ),
    ] = None,
    jobs: Jobs = None,
    resume: Resume = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Diagnose, race the advice, test the winner on fresh seeds.

    What is significantly better is written as a tuned variant, with its evidence.
    """
    options = api.Options(budget or (None if max_runs else "10m"), jobs=jobs, resume=resume, runs_dir=runs_dir)
    options = replace(options, max_runs=max_runs, seeds=seeds, objective=objective)
    with experiment_view(quiet) as view:
        document = api.optimize(ref, overrides=set_ or (), options=options, say=view.say, watch=view.watch)
    _emit(document, as_json=json)
    if not json and document["yaml"]:
        output.emit(f"\n{document['yaml']}\n{document['cli']}")
    return EXIT_TARGET_MISSED if document["status"] == "no verdict" else EXIT_OK


def solve(
    env_id: Annotated[
        str | None, typer.Argument(metavar="ENV", help="Environment id, e.g. LunarLander-v3; not with --resume.")
    ] = None,
    set_: Set = None,
    budget: Annotated[str, typer.Option("--budget", metavar="TIME", help="Time to spend, e.g. 90s, 10m, 1h.")] = "10m",
    target: Annotated[
        float | None, typer.Option("--target", help="Mean return to reach [default: the environment's threshold].")
    ] = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Ignore what is shipped for it; start from its spaces.")
    ] = False,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Fresh episodes in the deciding evaluation.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first training; the others count up.")] = 1,
    jobs: Jobs = None,
    resume: Resume = None,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Train, diagnose, change, train again, until a policy passes.

    It passes on fresh episodes; the search ends when the budget is spent.
    """
    options = api.Options(budget, jobs=jobs, resume=resume, runs_dir=runs_dir)
    options = replace(options, target=target, use_shipped=not from_scratch, episodes=episodes, seed=seed)
    with experiment_view(quiet) as view:
        document = api.solve(env_id, overrides=set_ or (), options=options, say=view.say, watch=view.watch)
    _emit(document, as_json=json)
    if not json and document["solution"]:
        output.emit(f"\nplay it:       gsolve play {document['solution']['run']}")
        output.emit(f"train it again: {document['solution']['cli']}")
    return EXIT_OK if document["solved"] else EXIT_TARGET_MISSED


def _emit(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.emit_json(document)
        return
    from gymnasium_solver.cli.summary import shortest

    output.emit_prose(f"{document['verdict']}.")
    output.emit(f"report: {shortest(Path(document['path']) / 'report.md')}")
