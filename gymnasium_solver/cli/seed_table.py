"""How many seeds look side by side: a live table, plain lines, and the joint result."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType

from gymnasium_solver import api
from gymnasium_solver.api.seeds import SeedJob
from gymnasium_solver.cli import output
from gymnasium_solver.cli.progress import EVAL_REWARD, TRAIN_REWARD, Progress, progress_line
from gymnasium_solver.cli.summary import boxed, finding_of, shortest
from gymnasium_solver.errors import EXIT_INTERRUPTED
from gymnasium_solver.plain import duration

COLUMNS = ("SEED", "STATE", "STEPS", "DONE", "TRAIN", "EVAL", "STEPS/S", "ETA", "CURVE")
RIGHT = ("SEED", "STEPS", "DONE", "TRAIN", "EVAL", "STEPS/S", "ETA")
PLAIN_SECONDS = 5.0
LIVE_SECONDS = 0.25


@contextlib.contextmanager
def view_of(
    jobs: Sequence[SeedJob], progress: Mapping[int, Progress], quiet: bool, target: Console | None = None
) -> Iterator[Callable[[], None]]:
    """Yields a function that is called often and draws as often as is sensible."""
    if quiet:
        yield lambda: None
    elif target is None and not output.is_terminal(sys.stderr):
        yield _plain(jobs, progress)
    else:
        from rich.live import Live

        due = 0.0
        with Live(_table(jobs, progress), console=target or output.console(sys.stderr), auto_refresh=False) as live:

            def refresh() -> None:
                nonlocal due
                if time.perf_counter() >= due:
                    live.update(_table(jobs, progress), refresh=True)
                    due = time.perf_counter() + LIVE_SECONDS

            yield refresh
            live.update(_table(jobs, progress), refresh=True)


def _table(jobs: Sequence[SeedJob], progress: Mapping[int, Progress]) -> RenderableType:
    return output.table(COLUMNS, (_row(job, progress[job.seed]) for job in jobs), RIGHT)


def _row(job: SeedJob, progress: Progress) -> tuple[str, ...]:
    over = job.exit_code is not None
    reward = progress.curves.get(EVAL_REWARD) or progress.curves.get(TRAIN_REWARD)
    return (
        str(job.seed),
        progress.phase if job.state == "running" else job.state,
        output.number(job.result.get("progress", progress.steps)),
        f"{progress.fraction:.0%}",
        output.number(progress.last(TRAIN_REWARD)),
        output.number(job.result.get("last_reward", progress.last(EVAL_REWARD))),
        output.number(round(progress.fps)) if progress.fps else "-",
        duration(job.result.get("duration_s")) if over else duration(progress.eta),
        job.error or (reward.sparkline(20) if reward else ""),
    )


def _plain(jobs: Sequence[SeedJob], progress: Mapping[int, Progress]) -> Callable[[], None]:
    told: set[int] = set()
    due = time.perf_counter() + PLAIN_SECONDS

    def refresh() -> None:
        nonlocal due
        for job in jobs:
            if job.exit_code is not None and job.seed not in told:
                told.add(job.seed)
                reward = output.number(job.result.get("last_reward"))
                output.message(f"seed {job.seed}: {job.state}, {job.error or f'eval {reward}'}")
        if time.perf_counter() >= due:
            due = time.perf_counter() + PLAIN_SECONDS
            for job in jobs:
                if job.state == "running":
                    output.message(f"seed {job.seed}: {progress_line(progress[job.seed])}")

    return refresh


def emit_result(document: dict[str, Any]) -> None:
    output.emit_table(
        ("SEED", "STATE", "STEPS", "BEST", "LAST", "TIME", "RUN"),
        (
            (
                str(row["seed"]),
                row["state"],
                output.number(row.get("progress")),
                output.best(row),
                output.number(row.get("last_reward")),
                duration(row.get("duration_s")),
                row.get("run_id") or row["error"] or "-",
            )
            for row in document["seeds"]
        ),
        right=("SEED", "STEPS", "BEST", "LAST", "TIME"),
        whole="RUN",
    )
    all_solved = document["solved"] == document["count"]
    spread = f" ± {output.number(document['std'])}" if document["std"] is not None else ""
    facts = {
        "group": document["group"],
        "reward": f"mean {output.number(document['mean'])}{spread}, IQM {output.number(document['iqm'])}",
        "took": duration(document["duration_s"]),
    }
    if document["report"] is not None:
        facts["report"] = shortest(document["report"])
    commands = []
    missed = [row for row in document["seeds"] if row.get("path") and row["state"] == "missed"]
    if missed:
        facts |= finding_of(api.load_run(missed[0]["path"]))
        commands += [facts.pop("command", ""), f"gsolve diagnose {missed[0]['run_id']}"]
    if document["exit_code"] == EXIT_INTERRUPTED:
        commands.append(f"gsolve train --resume {document['group']}")
    failed = f", {document['failed']} failed" if document["failed"] else ""
    headline = f"Solved {document['solved']} of {document['count']} seeds{failed}"
    output.emit_rich(boxed(headline, "green" if all_solved else "yellow", facts))
    for command in filter(None, commands):
        output.emit(command)
