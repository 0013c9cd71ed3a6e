"""`gsolve watch`: the live view of a training that another process does, from its files."""

from __future__ import annotations

import math
import shlex
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gymnasium_solver import api
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import RunsDir
from gymnasium_solver.cli.progress import PlainLines
from gymnasium_solver.errors import EXIT_NOT_FOUND, EXIT_OK, NotFoundError

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.cli.following import Following
    from gymnasium_solver.cli.progress import Progress
    from gymnasium_solver.runs.reader import Run

POLL_SECONDS = 0.5
EXAMPLES = """\b
Examples:
  gsolve watch               the newest run in progress, else the newest
  gsolve watch @last --once  one frame, for scripts and slow lines
  ssh HOST gsolve watch --runs-dir /data/runs

\b
Exit codes: those of `gsolve train` for a run that has ended;
  0 with --once    3 no such run    130 Ctrl-C, the training goes on
"""


def watch(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run, or a group of seeds [the newest in progress, else the newest]."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print how it stands now, and exit.")] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Watch a training that runs elsewhere, until it ends.

    In another terminal, in the background, or over SSH.
    Progress goes to stderr, the result to stdout. Ctrl-C ends the watching, not the training.
    """
    from gymnasium_solver.api.groups import Group, find

    found = find(run, runs_dir) if run is not None else _newest(runs_dir)
    name = found.group_id if isinstance(found, Group) else found.run_id
    try:
        code = _watch_group(found, once) if isinstance(found, Group) else _watch_run(found, once, runs_dir)
    except KeyboardInterrupt:
        where = f" --runs-dir {shlex.quote(str(runs_dir))}" if runs_dir else ""
        output.message(f"no longer watching; the training goes on: gsolve watch {name}{where}")
        raise
    raise typer.Exit(code)


def _newest(runs_dir: Path | None) -> Run:
    running = (run for run in api.runs(runs_dir=runs_dir) if run.status["status"] == "running")
    return next(running, None) or api.load_run("@last", runs_dir=runs_dir)


def _watch_run(run: Run, once: bool, runs_dir: Path | None) -> int:
    from gymnasium_solver.cli.following import Diagnoser, Following
    from gymnasium_solver.cli.live import LiveView
    from gymnasium_solver.cli.summary import emit_summary

    following, diagnoser = Following(run), Diagnoser(run)
    if once:
        following.catch_up()
        following.progress.notes = diagnoser.look()
        frame = LiveView()
        frame.progress = following.progress
        output.emit_rich(frame)
        return EXIT_OK
    view = LiveView() if output.is_terminal(sys.stderr) else PlainLines()
    view.progress = following.progress
    with view:
        while True:
            for event in following.news():
                view(event)
            if not following.is_running:
                break
            if diagnoser.has_news():
                following.progress.notes = diagnoser.found
                if isinstance(view, PlainLines):
                    for line in diagnoser.found:
                        output.message(line)
            time.sleep(POLL_SECONDS)
    emit_summary(run, runs_dir)
    return run.exit_code


@dataclass
class WatchedSeed:
    """A seed as the table of `gsolve train --seeds` shows it."""

    seed: int
    following: Following | None = None
    exit_code: int | None = None
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def state(self) -> str:
        if self.exit_code is None:
            return "running" if self.following else "waiting"
        return str(self.result["status"])

    def follow(self) -> None:
        if self.following is None or self.exit_code is not None:
            return
        try:
            self.following.catch_up()
        except NotFoundError:
            self.exit_code, self.result, self.error = EXIT_NOT_FOUND, {"status": "failed"}, "deleted"
            return
        if not self.following.is_running:
            self.result = self.following.run.summary()
            self.exit_code, self.error = self.following.run.exit_code, self.result["error"] or ""


def _watch_group(group: Group, once: bool) -> int:
    from gymnasium_solver.api.seeds import SeedsResult
    from gymnasium_solver.cli.following import FileProgress
    from gymnasium_solver.cli.seed_table import emit_result, view_of

    seeds = {int(seed): WatchedSeed(int(seed)) for seed in group.record.get("seeds", ())}
    progress: dict[int, Progress] = {seed: FileProgress() for seed in seeds}
    jobs: list[Any] = list(seeds.values())  # they have what the table and the result ask of a SeedJob
    is_going_on, took = _follow(group, seeds, progress), 0.0
    if once:
        target = output.console(sys.stdout)
        with target.capture() as table, view_of(jobs, progress, quiet=False, target=target):
            pass
        output.emit(table.get())
        return EXIT_OK
    with view_of(jobs, progress, quiet=False) as refresh:
        while is_going_on:
            refresh()
            time.sleep(max(POLL_SECONDS, 5 * took))  # looking for new seeds takes long among thousands of runs
            began = time.monotonic()
            is_going_on = _follow(group, seeds, progress)
            took = time.monotonic() - began
        refresh()
    report = group.report_path
    interrupted = group.record.get("status") == "interrupted"
    result = SeedsResult(group, jobs, interrupted, _seconds(group, jobs), report if report.is_file() else None)
    emit_result(result.document())
    return result.exit_code


def _follow(group: Group, seeds: dict[int, WatchedSeed], progress: dict[int, Progress]) -> bool:
    """Take in what the seeds have written; whether there is more to come."""
    from gymnasium_solver.cli.following import Following

    if not group.path.is_dir():
        raise NotFoundError(
            f"group {group.group_id} was deleted while it was watched; gsolve runs lists the runs that are left"
        )
    is_led = group.leader is not None  # before its runs, so that none is missed between the two
    if any(seed.following is None for seed in seeds.values()):
        for run in group.runs():
            seed = seeds.get(int(run.config.get("seed") or 0))
            if seed is not None and seed.following is None:
                seed.following = Following(run)
                progress[seed.seed] = seed.following.progress
    for seed in seeds.values():
        seed.follow()
    return is_led or any(seed.state == "running" for seed in seeds.values())


def _seconds(group: Group, seeds: list[WatchedSeed]) -> float:
    """From the start of the group to the last word of a seed."""
    ends = [seed.result.get("updated_at") for seed in seeds]
    try:
        moments = [datetime.fromisoformat(moment) for moment in (group.record["started_at"], *filter(None, ends))]
    except (KeyError, ValueError):
        return math.nan
    return (max(moments) - moments[0]).total_seconds()
