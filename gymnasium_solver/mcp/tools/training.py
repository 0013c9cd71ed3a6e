"""Trainings: `start_training resume_training stop_training get_training_status`. Each has a process of its own that
outlives the server; its run directory is all that is known about it."""

from __future__ import annotations

import time
from typing import Annotated, Any

import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

from gymnasium_solver import api
from gymnasium_solver.api.groups import Group
from gymnasium_solver.api.request import Request, written
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.mcp.answers import Answer
from gymnasium_solver.mcp.arguments import ConfigId, MaxEnvSteps, Overrides, RunId, Wait
from gymnasium_solver.mcp.place import Place
from gymnasium_solver.mcp.toolbox import Toolbox

POLL_SECONDS = 1.0
SUMMARY = (
    *("run_id", "env_id", "algo_id", "status", "seed", "clock", "progress", "budget", "env_steps", "max_env_steps"),
    *("best_reward", "last_reward"),
    *("threshold", "solved", "reason", "error"),
)


class Started(Answer):
    run_id: str = Field(description="Of many seeds the group id; get_training_status takes either.")
    is_group: bool
    config_id: str | None = None
    next_call: str


class Stopped(Answer):
    run_id: str
    status: str
    was_running: bool
    env_steps: int | None = None
    next_call: str


class Progress(BaseModel):
    run_id: str
    is_group: bool
    status: str = Field(description="running, solved, missed, done (no threshold to reach), failed or interrupted.")
    clock: str | None = Field(default=None, description="What progress counts: env_steps, or updates.")
    progress: int | None = None
    budget: float | None = Field(default=None, description="Where it ends: max_env_steps, or max_updates.")
    env_steps: int | None = None
    max_env_steps: int | None = None
    best_reward: float | None = None
    last_reward: float | None = None
    threshold: float | None = None
    solved: bool | None = None
    elapsed_s: float | None = None
    remaining_s: float | None = Field(default=None, description="At the pace so far, to the end of its budget.")
    silent_s: float | None = Field(default=None, description="Seconds since it was last heard of.")
    reason: str | None = Field(default=None, description="Why it failed or was stopped.")
    error: str | None = None
    seeds: list[dict[str, Any]] = Field(default_factory=list, description="Of a group: each run.")
    waiting: list[int] = Field(default_factory=list, description="Of a group: seeds that have not begun.")


class Trainings(Answer):
    trainings: list[Progress]
    next_call: str


def register(tools: Toolbox, place: Place) -> None:
    @tools.starts
    async def start_training(
        ctx: Context,
        config_id: ConfigId,
        overrides: Overrides = None,
        max_env_steps: MaxEnvSteps = None,
        seeds: Annotated[int, Field(description="Train this many seeds side by side, as a group.", ge=1, le=50)] = 1,
    ) -> Started:
        """Train ENV:VARIANT in the background and return its run_id at once; the training outlives this server. A bad
        configuration is refused before anything starts. Next: get_training_status, then diagnose_run."""
        fields = dict(overrides or {})
        if max_env_steps is not None:
            fields["max_env_steps"] = max_env_steps
        await anyio.to_thread.run_sync(place.check, config_id, fields)
        await ctx.report_progress(0, 1, "starting the process")
        started = await anyio.to_thread.run_sync(
            lambda: api.start(config_id, seeds=seeds, runs_dir=place.runs_dir, **fields)
        )
        await ctx.report_progress(1, 1, f"{started} has begun")
        call = f"get_training_status(run_id={started!r})"
        return Started(run_id=started, is_group=seeds > 1, config_id=config_id, next_call=call)

    @tools.starts
    def resume_training(run_id: RunId, max_env_steps: MaxEnvSteps = None) -> Started:
        """Continue a stopped, crashed or finished run from its last checkpoint, in the background; max_env_steps gives
        it more to do. Next: get_training_status."""
        from gymnasium_solver.api.background import start_training as start

        run = place.run(run_id)
        if run.status["status"] == "running":
            raise ConfigError(f"run {run.run_id} is still training; call get_training_status, or stop_training first")
        fields = {} if max_env_steps is None else {"max_env_steps": max_env_steps}
        started = start(Request(None, written(fields), resume=run.run_id, runs_dir=place.runs_dir))
        return Started(run_id=started, is_group=False, next_call=f"get_training_status(run_id={started!r})")

    @tools.stops
    def stop_training(
        run_id: RunId,
        timeout: Annotated[float, Field(description="Seconds to wait for its checkpoint.", gt=0, le=300)] = 60.0,
    ) -> Stopped:
        """Ask a training (or a group of seeds) to finish its update, save and end, and wait for that. It can be
        resumed. Next: diagnose_run, or resume_training."""
        found = place.run_or_group(run_id)
        status = api.stop(found, timeout=timeout)
        return Stopped(
            run_id=_id(found),
            status=status["status"],
            was_running=status["was_running"],
            env_steps=status.get("env_steps"),
            next_call=f"diagnose_run(run_id={_id(found)!r})" if not isinstance(found, Group) else "compare_runs",
        )

    @tools.reads
    async def get_training_status(
        ctx: Context,
        run_id: Annotated[str | None, Field(description="Run, group of seeds, or @last [all in progress].")] = None,
        wait_seconds: Wait = 0,
    ) -> Trainings:
        """How far a training is: steps, rewards, time left; without run_id, all that are in progress. With wait_seconds
        it answers when the training ends or the time is over, so call it again until status is not running. Next:
        diagnose_run (works while it trains)."""
        deadline, reported = time.monotonic() + wait_seconds, -1
        while True:
            found = await anyio.to_thread.run_sync(_trainings, place, run_id)
            running = [one for one in found if one.status == "running"]
            if not running or time.monotonic() >= deadline:
                break
            first = running[0]
            if (steps := first.progress or 0) > reported:  # the protocol wants it to grow
                reported = steps
                await ctx.report_progress(steps, first.budget, f"last reward {first.last_reward}")
            await anyio.sleep(min(POLL_SECONDS, max(deadline - time.monotonic(), 0.05)))
        if not found:
            call = "nothing is in progress: list_runs lists what was trained"
        elif running:
            call = f"get_training_status(run_id={running[0].run_id!r}, wait_seconds=30)"
        else:
            call = (
                f"compare_runs(run_ids=[{found[0].run_id!r}])"
                if found[0].is_group
                else f"diagnose_run(run_id={found[0].run_id!r})"
            )
        return Trainings(trainings=found, next_call=call)


def _trainings(place: Place, run_id: str | None) -> list[Progress]:
    if run_id is not None:
        return [_progress(place.run_or_group(run_id))]
    return [_progress(place.run(summary["run_id"])) for summary in place.summaries(status="running")[1]]


def _progress(found: Any) -> Progress:
    status = api.status(found)
    if isinstance(found, Group):
        seeds = [{name: run.get(name) for name in SUMMARY} for run in status["runs"]]
        return Progress(
            run_id=found.group_id,
            is_group=True,
            status=status["status"],
            env_steps=sum(run["env_steps"] or 0 for run in seeds),
            progress=sum(run["progress"] or 0 for run in seeds),
            seeds=seeds,
            waiting=status["waiting"],
        )
    steps, most, elapsed = status.get("progress"), status.get("budget"), status.get("duration_s")
    is_running = status["status"] == "running"
    known: dict[str, Any] = {name: status.get(name) for name in SUMMARY if name in Progress.model_fields}
    return Progress(
        **known,
        is_group=False,
        elapsed_s=elapsed,
        remaining_s=max(0.0, elapsed * (most / steps - 1)) if is_running and elapsed and steps and most else None,
        silent_s=time.time() - status["heartbeat"] if is_running and "heartbeat" in status else None,
    )


def _id(found: Any) -> str:
    return str(found.group_id if isinstance(found, Group) else found.run_id)
