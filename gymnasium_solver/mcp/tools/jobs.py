"""Following long work: `get_job_status list_jobs stop_job`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from gymnasium_solver.mcp.answers import Answer, short
from gymnasium_solver.mcp.arguments import Limit, Wait
from gymnasium_solver.mcp.jobs import Job, find_job
from gymnasium_solver.mcp.jobs import list_jobs as all_jobs
from gymnasium_solver.mcp.place import Place
from gymnasium_solver.mcp.toolbox import Toolbox

POLL_SECONDS = 1.0

JobId = Annotated[str, Field(description="As returned when it was started, or the beginning of it.", min_length=1)]


class JobStatus(Answer):
    job_id: str
    kind: str
    status: str = Field(description="running, completed, stopped or failed.")
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


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    async def get_job_status(ctx: Context, job_id: JobId, wait_seconds: Wait = 0) -> JobStatus:
        """How far a job is (verify, optimize, solve, sweep, profile, score …) and, when it is done, its result. With
        wait_seconds it answers when the job ends or the time is over: call it again until status is not running."""
        job = find_job(place.runs_dir, job_id)
        deadline, begun = time.monotonic() + wait_seconds, time.monotonic()
        while job.is_running and time.monotonic() < deadline:
            said = job.progress()
            await ctx.report_progress(time.monotonic() - begun, wait_seconds, said[-1] if said else "running")
            await anyio.sleep(min(POLL_SECONDS, max(deadline - time.monotonic(), 0.05)))
        return await anyio.to_thread.run_sync(_status, job)

    @tools.reads
    def list_jobs(limit: Limit = 20) -> Jobs:
        """Jobs of this runs directory, newest first, those of earlier servers too. Next: get_job_status."""
        found = all_jobs(place.runs_dir)
        more = [f"{limit} of {len(found)} jobs: raise limit"] if len(found) > limit else []
        shown = [
            {"job_id": job.job_id, "kind": job.record.get("kind"), "status": job.status(), "error": job.error()}
            for job in found[:limit]
        ]
        return Jobs(total=len(found), jobs=shown, truncated=more)

    @tools.stops
    def stop_job(job_id: JobId) -> JobStatus:
        """Stop a job as Ctrl-C would; what it has trained so far is kept. Next: get_job_status."""
        job = find_job(place.runs_dir, job_id)
        job.stop()
        return _status(job)


def _status(job: Job) -> JobStatus:
    record, status = job.record, job.status()
    result, cut = short(job.result(), f"the whole: {job.path / 'stdout'}")
    again = f"get_job_status(job_id={job.job_id!r}, wait_seconds=30)"
    return JobStatus(
        job_id=job.job_id,
        kind=str(record.get("kind")),
        status=status,
        started_at=record.get("started_at"),
        progress=job.progress(),
        result=result,
        error=job.error(),
        next_call=again if status == "running" else "report the result; list_runs has its trainings",
        truncated=cut,
    )
