"""`gsolve train`: one run here, in the background, or many seeds side by side."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir, Set
from gymnasium_solver.errors import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TARGET_MISSED,
    ConfigError,
    SolverError,
)

if TYPE_CHECKING:
    from gymnasium_solver.cli.progress import View
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.loop import Event

EXAMPLES = """\b
Examples:
  gsolve train CartPole-v1:ppo --seed 7
  gsolve train LunarLander-v3:ppo --set policy_lr=1e-3 --set n_envs=32
  gsolve train CartPole-v1:ppo -s 'policy_lr={start: 1e-3, end: 0, schedule: linear}'
  gsolve train CartPole-v1:ppo --seeds 5 --jobs 2
  gsolve train LunarLander-v3:ppo --detach
  gsolve train --resume @last --max-env-steps 2e6
  gsolve train LunarLander-v3:ppo --init-from 20260101-120000/@best

\b
Exit codes:
  0 done, and solved where there is a threshold    4 diverged
  2 bad configuration                              5 threshold missed
  3 not found                                    130 interrupted, and saved
"""


@dataclass(frozen=True)
class Request:
    """What is to be trained, in a form that can be handed to another process."""

    ref: str | None
    overrides: tuple[str, ...] = ()
    resume: str | None = None
    init_from: str | None = None
    runs_dir: Path | None = None
    group: str | None = None

    def arguments(self, *extra: str) -> list[str]:
        """The command line that asks for the same in a process of its own."""
        words = [sys.executable, "-m", "gymnasium_solver", "train"]
        words += [self.ref] if self.ref else []
        for override in self.overrides:
            words += ["--set", override]
        named = {"--resume": self.resume, "--init-from": self.init_from, "--group": self.group}
        named["--runs-dir"] = str(self.runs_dir) if self.runs_dir else None
        for name, value in named.items():
            words += [name, value] if value is not None else []
        return [*words, *extra]

    def config(self) -> Config | None:
        """Resolved and checked, before anything is trained or written; a resumed run has its own."""
        if self.resume is not None:
            return None
        if self.ref is None:
            raise ConfigError("what to train is missing; give ENV:VARIANT (gsolve envs lists them) or --resume RUN")
        from gymnasium_solver.config.load import load_config

        return load_config(self.ref, self.overrides)


def register(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(train)


def train(
    ref: Annotated[
        str | None,
        typer.Argument(metavar="ENV:VARIANT", help="What to train, e.g. CartPole-v1:ppo; not needed with --resume."),
    ] = None,
    set_: Set = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of all randomness.", show_default=False)] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Train this many seeds and report them together.")] = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Seeds trained at once [default: one a core].")
    ] = None,
    max_env_steps: Annotated[
        str | None, typer.Option("--max-env-steps", metavar="STEPS", help="Environment steps to train for, e.g. 2e6.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Who steps the environments: auto, gymnasium or envpool.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Continue a stopped run from its last checkpoint.")
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option("--init-from", metavar="RUN[/@best]", help="Start from another run's weights, where they fit."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Train in the background and print the run id.")] = False,
    runs_dir: RunsDir = None,
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
    request = Request(ref, overrides, resume, init_from, runs_dir, group)
    config = request.config()
    if detach:
        from gymnasium_solver.cli.detach import start

        name = start(request, seeds=seeds, jobs=jobs)
        output.emit_json({"group" if seeds > 1 else "run_id": name}) if json else output.emit(name)
        return
    if seeds > 1 and config is not None:
        from gymnasium_solver.cli.seeds import train_seeds

        code = train_seeds(request, config.seed, seeds, jobs, as_json=json, quiet=quiet, announce=announce)
        raise typer.Exit(code)
    run = _train_here(request, config, _view(events, quiet), announce)
    summary = run.summary()
    code = exit_code(summary)
    if json:
        output.emit_json({**summary, "path": run.path, "report": run.report_path, "exit_code": code})
    elif quiet:
        output.emit(run.run_id)
    else:
        from gymnasium_solver.cli.summary import emit_summary

        emit_summary(run, runs_dir)
    raise typer.Exit(code)


def _train_here(request: Request, config: Config | None, view: View, announce: Path | None) -> Run:
    path: str | None = None

    def on_event(event: Event) -> None:
        nonlocal path
        if event.kind == "started":
            path = str(event.data["path"])
            if announce is not None:
                announce.write_text(event.run, encoding="utf-8")
        view(event)

    # An environment that prints must not end up in the data on stdout.
    with contextlib.redirect_stdout(sys.stderr), view:
        from gymnasium_solver.config.load import parse_overrides
        from gymnasium_solver.train.loop import train

        try:
            return train(
                config,
                runs_dir=request.runs_dir,
                resume=request.resume,
                overrides=dict(parse_overrides(request.overrides)) if request.resume else None,
                init_from=request.init_from,
                group=request.group,
                on_event=on_event,
                command=sys.argv,
            )
        except SolverError:
            raise
        except Exception as failure:
            if path is not None:
                failure.add_note(f"details in {Path(path) / 'run.log'}")
            raise


def _view(events: bool, quiet: bool) -> View:
    from gymnasium_solver.cli.progress import EventLines, PlainLines, Silent

    if events:
        return EventLines()
    if quiet:
        return Silent()
    if output.is_terminal(sys.stderr):
        from gymnasium_solver.cli.live import LiveView

        return LiveView()
    return PlainLines()


def exit_code(summary: dict[str, Any]) -> int:
    """0 only for a run that did all that was asked of it."""
    if summary["status"] == "interrupted":
        return EXIT_INTERRUPTED
    if summary["status"] != "completed":
        return EXIT_FAILURE
    missed = summary.get("threshold") is not None and not summary.get("solved")
    return EXIT_TARGET_MISSED if missed else EXIT_OK
