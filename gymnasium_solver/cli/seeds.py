"""`gsolve train --seeds N`: how many seeds look side by side, and what is printed of them in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gymnasium_solver.api.continuing import continued
from gymnasium_solver.api.groups import Group, new_group_id
from gymnasium_solver.api.request import Request
from gymnasium_solver.api.seeds import SeedJob, train_jobs
from gymnasium_solver.cli import output
from gymnasium_solver.cli.progress import Progress
from gymnasium_solver.cli.seed_table import emit_result, view_of
from gymnasium_solver.errors import EXIT_FAILURE


def train_seeds(
    request: Request, first: int, count: int, jobs: int | None, *, as_json: bool, quiet: bool, announce: Path | None
) -> int:
    """Train seeds first, first + 1, …; print the joint result and return the exit code."""
    request = replace(request, group=request.group or new_group_id())
    seeds = [SeedJob(seed) for seed in range(first, first + count)]
    return _train(request, seeds, None, jobs, as_json=as_json, quiet=quiet, announce=announce)


def resume_seeds(
    request: Request, group: Group, jobs: int | None, *, as_json: bool, quiet: bool, announce: Path | None
) -> int:
    """Go on with those that were interrupted or have not begun; print the joint result of all."""
    request, seeds = continued(group, request)
    return _train(request, seeds, group, jobs, as_json=as_json, quiet=quiet, announce=announce)


def _train(
    request: Request,
    seeds: Sequence[SeedJob],
    group: Group | None,
    jobs: int | None,
    *,
    as_json: bool,
    quiet: bool,
    announce: Path | None,
) -> int:
    progress = {seed.seed: Progress() for seed in seeds}
    for seed in seeds:  # done before
        progress[seed.seed].steps = int(seed.result.get("progress") or 0)
        progress[seed.seed].budget = seed.result.get("budget") or 0.0
    announced = False

    def on_event(job: SeedJob, kind: str, run: str, data: dict[str, Any]) -> None:
        nonlocal announced
        if kind == "started":
            progress[job.seed] = Progress()  # its clock begins now
            if announce is not None and not announced:  # once: whoever waits for it takes it away
                announce.write_text(str(request.group), encoding="utf-8")
                announced = True
        progress[job.seed].feed(kind, run, data)

    with view_of(seeds, progress, quiet) as refresh:
        result = train_jobs(request, seeds, jobs, group=group, on_event=on_event, on_tick=refresh)
    document = result.document()
    if as_json:
        output.emit_json(document)
    elif quiet:
        output.emit("\n".join(row["run_id"] for row in document["seeds"] if row.get("run_id")) or str(request.group))
    else:
        emit_result(document)
    for reason in filter(None, [*result.reasons(), result.trouble]):
        output.error(reason)
    return result.exit_code or (EXIT_FAILURE if result.trouble else result.exit_code)
