"""`gsolve train`: one run here, in the background, or many seeds side by side."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gymnasium_solver import api
from gymnasium_solver.api.request import Request
from gymnasium_solver.api.training import train_here
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Jobs, Json, RunsDir, Set, Trust
from gymnasium_solver.cli.progress import EventLines, PlainLines, Silent
from gymnasium_solver.errors import ConfigError, SolverError

if TYPE_CHECKING:
    from gymnasium_solver.api.request import Request
    from gymnasium_solver.cli.progress import View
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.session import Event

EXAMPLES = """\b
Examples:
  gsolve train CartPole-v1:ppo --seed 7
  gsolve train LunarLander-v3:ppo --set policy_lr=1e-3 --set n_envs=32
  gsolve train CartPole-v1:ppo -s 'policy_lr={start: 1e-3, end: 0}'
  gsolve train CartPole-v1:ppo --seeds 5 --jobs 2
  gsolve train LunarLander-v3:ppo --detach
  gsolve train --resume @last --max-env-steps 2e6
  gsolve train --resume 20260101-120000-seeds-1a2b  seeds that are not done
  gsolve train LunarLander-v3:ppo --stop-on critical
  gsolve train LunarLander-v3:ppo --init-from 20260101-120000/@best

\b
Exit codes:
  0 done, and solved where there is a threshold    4 diverged
  2 bad configuration                              5 threshold missed
  3 not found                                    130 interrupted, and saved
"""


def train(
    ref: Annotated[
        str | None,
        typer.Argument(metavar="ENV:VARIANT", help="What to train, e.g. CartPole-v1:ppo; not needed with --resume."),
    ] = None,
    set_: Set = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of all randomness.", show_default=False)] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Train this many seeds and report them together.")] = 1,
    jobs: Jobs = None,
    max_env_steps: Annotated[
        str | None, typer.Option("--max-env-steps", metavar="STEPS", help="Environment steps to train for, e.g. 2e6.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="What steps the environments: auto, gymnasium or envpool.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN|GROUP", help="Continue a stopped run, or group of seeds.")
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option("--init-from", metavar="RUN[/@best]", help="Start from another run's weights, where they fit."),
    ] = None,
    stop_on: Annotated[
        str | None,
        typer.Option("--stop-on", metavar="SEVERITY", help="End a run that a finding makes hopeless (critical, high)."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Train in the background and print the run id.")] = False,
    runs_dir: RunsDir = None,
    trust: Trust = False,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; print only the run id.")] = False,
    group: Annotated[str | None, typer.Option("--group", hidden=True)] = None,
    events: Annotated[bool, typer.Option("--events", hidden=True)] = False,
    announce: Annotated[Path | None, typer.Option("--announce", hidden=True)] = None,
) -> None:
    """Train an agent.

    Progress goes to stderr, the result to stdout. Ctrl-C finishes the update, saves and stops.
    """
    shortcuts = {"seed": seed, "max_env_steps": max_env_steps, "engine": engine}
    overrides = (*(set_ or ()), *(f"{field}={value}" for field, value in shortcuts.items() if value is not None))
    if resume is not None and (ref is not None or seeds > 1 or init_from is not None):
        raise ConfigError("--resume continues one run as it is; leave out ENV:VARIANT, --seeds and --init-from")
    if stop_on not in (None, "critical", "high"):
        raise ConfigError(f"--stop-on {stop_on!r} is not a severity to stop on; use critical or high")
    request = Request(ref, overrides, resume, init_from, runs_dir, group, stop_on)
    config = request.config()
    stopped = None
    if resume is not None:
        from gymnasium_solver.api.continuing import group_named

        stopped = group_named(resume, runs_dir)
    if stopped is not None and overrides:
        raise ConfigError(f"--resume continues the seeds of {stopped.group_id} as they were started; leave out --set")
    if detach:
        from gymnasium_solver.api.background import start_training

        name = start_training(request, seeds=seeds, jobs=jobs)
        output.emit_json({"group" if seeds > 1 or stopped else "run_id": name}) if json else output.emit(name)
        return
    if stopped is not None:
        from gymnasium_solver.cli.seeds import resume_seeds

        raise typer.Exit(resume_seeds(request, stopped, jobs, as_json=json, quiet=quiet, announce=announce))
    if seeds > 1 and config is not None:
        from gymnasium_solver.cli.seeds import train_seeds

        code = train_seeds(request, config.seed, seeds, jobs, as_json=json, quiet=quiet, announce=announce)
        raise typer.Exit(code)
    begun: list[Path] = []
    try:
        run = _train_here(request, config, _view(events, quiet), announce, begun)
    except BaseException:
        if json and begun:  # a run that came to grief is a result too; why is in it and on stderr
            _emit_json(api.load_run(begun[0]))
        raise
    if json:
        _emit_json(run)
    elif quiet:
        output.emit(run.run_id)
    else:
        from gymnasium_solver.cli.summary import emit_summary

        emit_summary(run, runs_dir)
    raise typer.Exit(run.exit_code)


def _emit_json(run: Run) -> None:
    more = {"path": run.path, "report": run.report_path, "exit_code": run.exit_code}
    output.emit_json({**run.summary(), **more})


def _train_here(request: Request, config: Config | None, view: View, announce: Path | None, begun: list[Path]) -> Run:
    """Puts the directory of the run into `begun` as soon as there is one."""

    def on_event(event: Event) -> None:
        if event.kind == "started":
            begun.append(Path(event.data["path"]))
            if announce is not None:
                announce.write_text(event.run, encoding="utf-8")
        view(event)

    # An environment that prints must not end up in the data on stdout.
    with contextlib.redirect_stdout(sys.stderr), view:
        try:
            return train_here(request, config, on_event, sys.argv)
        except SolverError:
            if begun and not isinstance(view, EventLines):
                output.message(f"what happened: gsolve diagnose {begun[0].name}")
            raise
        except Exception as failure:
            if begun:
                failure.add_note(f"details in {begun[0] / 'run.log'}")
            raise


def _view(events: bool, quiet: bool) -> View:
    if events:
        return EventLines()
    if quiet:
        return Silent()
    if output.is_terminal(sys.stderr):
        from gymnasium_solver.cli.live import LiveView

        return LiveView()
    return PlainLines()
