"""Following long work: `get_job_status list_jobs stop_job list_experiments`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.jobs import Job, find_job
from gymnasium_solver.api.jobs import list_jobs as all_jobs
from gymnasium_solver.mcp.answers import Answer, clipped, short, shown_of
from gymnasium_solver.mcp.arguments import Limit, Wait
from gymnasium_solver.mcp.place import Place
from gymnasium_solver.mcp.quoting import said as spoken
from gymnasium_solver.mcp.resuming import TOOLS
from gymnasium_solver.mcp.toolbox import Toolbox

POLL_SECONDS = 1.0
VERDICT = 500

JobId = Annotated[str, Field(description="As returned when it was started, or the beginning of it.", min_length=1)]


class JobStatus(Answer):
    job_id: str
    kind: str
    status: str = Field(description="running, completed, stopped, failed, or unknown (on another HOST).")
    started_at: str | None
    progress: list[str] = Field(description="What it said last.")
    result: Any = Field(
        default=None, description="The verb's document, once it is done; `verdict` is the sentence to report."
    )
    error: str | None = None
    next_call: str


class Jobs(Answer):
    total: int
    jobs: list[dict[str, Any]]


class Experiments(Answer):
    total: int
    experiments: list[dict[str, Any]] = Field(
        description="id, kind, status, verdict, source, and `continue_with`, the call that continues it."
    )


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    async def get_job_status(ctx: Context, job_id: JobId, wait_seconds: Wait = 0) -> JobStatus:
        """How far a job is (verify, optimize, solve, sweep, profile, score …) and, when it is done, its result. With
        wait_seconds it answers when the job ends or the time is over: call it again until status is not running."""
        job = find_job(place.runs_dir, job_id)
        deadline, begun = time.monotonic() + wait_seconds, time.monotonic()
        while job.is_running and time.monotonic() < deadline:
            said = job.progress()
            await ctx.report_progress(time.monotonic() - begun, wait_seconds, spoken(said[-1]) if said else "running")
            await anyio.sleep(min(POLL_SECONDS, max(deadline - time.monotonic(), 0.05)))
        return await anyio.to_thread.run_sync(_status, job)

    @tools.reads
    def list_jobs(limit: Limit = 20) -> Jobs:
        """Jobs of this runs directory, newest first, those of earlier servers too. Next: get_job_status."""
        found = all_jobs(place.runs_dir)
        more = shown_of(limit, len(found), "jobs")
        shown = [
            {"job_id": job.job_id, "kind": job.record.get("kind"), "status": job.status(), "error": job.error()}
            for job in found[:limit]
        ]
        return Jobs(total=len(found), jobs=shown, truncated=more)

    @tools.reads
    def list_experiments(limit: Limit = 20) -> Experiments:
        """What apply_and_verify, optimize_config, solve_environment and sweep_config found, newest first, also from the
        command line and from jobs that were stopped. Use it before a new experiment. Next: its `continue_with`,
        list_runs with the id as group, or score_run."""
        found = place.experiments()
        shown = [_experiment(one, place.standing(one)) for one in found[:limit]]
        return Experiments(total=len(found), experiments=shown, truncated=shown_of(limit, len(found), "experiments"))

    @tools.stops
    def stop_job(job_id: JobId) -> JobStatus:
        """Stop a job as Ctrl-C would; what it has trained so far is kept. Next: get_job_status."""
        job = find_job(place.runs_dir, job_id)
        job.stop()
        return _status(job)


def _status(job: Job) -> JobStatus:
    record, status = job.record, job.status()
    result, cut = short(job.result(), f"the whole: {job.path / 'stdout'}")
    calls = {
        "running": f"get_job_status(job_id={job.job_id!r}, wait_seconds=30)",
        **dict.fromkeys(("completed", "failed"), "report the result; list_runs has its trainings"),
        "stopped": "list_experiments says how to continue it; list_runs has its trainings",
    }
    return JobStatus(
        job_id=job.job_id,
        kind=str(record.get("kind")),
        status=status,
        started_at=record.get("started_at"),
        progress=job.progress(),
        result=result,
        error=job.error(),
        next_call=calls.get(status, f"ask where it runs: it is {status}"),
        truncated=cut,
    )


def _experiment(group: Group, status: str) -> dict[str, Any]:
    record = group.record
    kind, asked = str(record.get("kind")), record.get("asked") or {}
    goes_on = kind in TOOLS and status in ("interrupted", "crashed", "failed", "no verdict", "not solved")
    return {
        "id": group.group_id,
        "kind": kind,
        "status": status,
        "verdict": clipped(str(record.get("verdict") or ""), VERDICT) or None,
        "source": record.get("source") or asked.get("source") or asked.get("env_id"),
        "continue_with": f"{TOOLS[kind]}(resume={group.group_id!r})" if goes_on else None,
    }
