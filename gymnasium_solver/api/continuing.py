"""A group of seeds that was interrupted: what is done is kept, what was cut short goes on, the others begin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gymnasium_solver.api.groups import Group, find
from gymnasium_solver.api.request import Request, written
from gymnasium_solver.api.seeds import SeedJob
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.reader import Run, split_checkpoint_ref

CUT_SHORT = ("interrupted", "crashed")


def group_named(ref: str, runs_dir: Path | None = None) -> Group | None:
    """The group of seeds that is to go on; None if it is a run."""
    found = find(split_checkpoint_ref(ref)[0], runs_dir)
    return found if isinstance(found, Group) else None


def continued(group: Group, request: Request) -> tuple[Request, list[SeedJob]]:
    """What is asked of its seeds, as when they were begun, and all of them. `request` says where they are."""
    if group.is_experiment:
        kind = group.record.get("kind")
        raise ConfigError(
            f"{group.group_id} is an experiment; go on with it by gsolve {kind} --resume {group.group_id}"
        )
    status, runs = group.status()["status"], {run.config.get("seed"): run for run in group.runs()}
    if status == "running":
        raise ConfigError(f"{group.group_id} is still running; stop it first with `gsolve stop {group.group_id}`")
    jobs = [_job(seed, runs.get(seed)) for seed in group.seeds]
    if all(job.exit_code is not None for job in jobs):
        raise ConfigError(f"all seeds of {group.group_id} are done; train more with gsolve train ENV:VARIANT --seeds N")
    group.admit_code()
    training = group.record.get("training") or {}
    is_begun_anew = any(job.exit_code is None and not job.resume for job in jobs)
    if is_begun_anew and not training.get("ref"):
        raise ConfigError(
            f"{group.group_id} does not say what its seeds were to train; go on with those that were begun by gsolve "
            "train --resume RUN (gsolve show lists them)"
        )
    asked = replace(
        request,
        ref=training.get("ref"),
        overrides=tuple(training.get("overrides") or ()),
        init_from=training.get("init_from"),
        stop_on=request.stop_on or training.get("stop_on"),
        resume=None,
        runs_dir=group.path.parent,
        group=group.group_id,
    )
    if is_begun_anew and runs:
        asked = replace(asked, overrides=(*asked.overrides, *_since_changed(asked, next(iter(runs.values())).config)))
    return asked, jobs


def _job(seed: int, run: Run | None) -> SeedJob:
    if run is None:
        return SeedJob(seed)
    summary = run.summary()
    if run.status["status"] in CUT_SHORT and not summary["stopped_by"]:
        return SeedJob(seed, resume=str(run.path), path=str(run.path)) if run.checkpoints() else SeedJob(seed)
    result = {**summary, "report": run.report_path}
    return SeedJob(seed, exit_code=run.exit_code, path=str(run.path), result=result, error=str(summary["error"] or ""))


def _since_changed(request: Request, trained: dict[str, Any]) -> tuple[str, ...]:
    """Files may have been edited meanwhile; seeds of a group differ in nothing but the seed."""
    from gymnasium_solver.config.load import to_dict

    config = request.config()
    now = to_dict(config) if config is not None else {}
    now.pop("seed", None)
    return written({name: trained[name] for name in now if name in trained and trained[name] != now[name]})
