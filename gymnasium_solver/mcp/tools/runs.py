"""What was trained: `list_runs get_run_info get_best_run list_checkpoints compare_runs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver import api
from gymnasium_solver.api.reading import source_of
from gymnasium_solver.mcp.answers import Answer, short, shown_of
from gymnasium_solver.mcp.arguments import EnvFilter, Limit, RunId
from gymnasium_solver.mcp.place import Place, Summary, next_call
from gymnasium_solver.mcp.toolbox import Toolbox
from gymnasium_solver.plain import plain

WARNINGS = 5
Status = Annotated[  # those of runs/outcome.py; none for all
    Literal["", "solved", "missed", "done", "failed", "interrupted", "running"],
    Field(description="Only runs that came to this [all]; done: ended, and had no threshold to reach."),
]
LISTED = (
    *("run_id", "env_id", "algo_id", "status", "seed", "clock", "progress", "budget", "env_steps", "max_env_steps"),
    *("best_reward", "last_reward"),
    *("test_reward", "threshold", "solved", "duration_s", "started_at", "group", "reason"),
)


class Runs(Answer):
    total: int = Field(description="Runs that match.")
    runs: list[Summary] = Field(description="Newest first.")


class RunInfo(Answer):
    summary: Summary
    config: dict[str, Any]
    metrics: dict[str, float | None] = Field(description="Last value of every metric; names for get_run_metrics.")
    checkpoints: list[str]
    warnings: list[str] = Field(description="The last warnings of its log.")
    source: str | None = Field(description="The library that trained it, if it was imported.")


class BestRuns(Answer):
    best: list[Summary] = Field(description="The best run of each environment.")
    judged_by: str


class Checkpoints(Answer):
    run_id: str
    checkpoints: list[dict[str, Any]] = Field(
        description="name, ref for other tools, env_steps, epoch, best_eval, bytes."
    )


class Comparison(Answer):
    verdict: dict[str, Any] = Field(description="`text` is the sentence to report; it claims no more than seeds allow.")
    caveats: list[Any]
    differences: list[Any] = Field(description="Config fields that differ, with an assessment of each.")
    sides: list[dict[str, Any]]
    tests: list[Any]
    details: dict[str, Any] = Field(description="Losses, gradients, schedules, derived quantities.")


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    def list_runs(
        env_filter: EnvFilter = "",
        status: Status = "",
        group: Annotated[str, Field(description="Only the seeds of this group.")] = "",
        limit: Limit = 20,
    ) -> Runs:
        """Runs in the runs directory, newest first, in a few numbers each. Start here to find a run_id. Next:
        get_run_info, diagnose_run, compare_runs."""
        total, found = place.summaries(env_filter, limit, status=status, group=group)
        more = shown_of(limit, total, "runs", "narrow env_filter, status or group")
        return Runs(total=total, runs=[_listed(summary) for summary in found], truncated=more)

    @tools.reads
    def get_run_info(run_id: RunId) -> RunInfo:
        """One run: summary, configuration, last value of every metric, checkpoints, warnings. Works while it trains.
        Next: diagnose_run for what is wrong, get_run_metrics for curves."""
        with place.reading(run_id) as run:
            warnings = [line for line in run.log_lines() if " WARNING " in line]
            return RunInfo(
                summary=run.summary(),
                config=run.config,
                metrics=plain(place.last_values(run)),
                checkpoints=run.checkpoints(),
                warnings=warnings[-WARNINGS:],
                source=source_of(run).get("library"),
                truncated=[f"{WARNINGS} of {len(warnings)} warnings: call get_run_logs"]
                if len(warnings) > WARNINGS
                else [],
            )

    @tools.reads
    def get_best_run(env_filter: EnvFilter = "", limit: Limit = 20) -> BestRuns:
        """The run with the highest return, for each environment that matches. One run is one seed: get_insights ranks
        configurations over seeds. Next: get_run_info, score_run."""
        best: dict[str, Summary] = {}
        for summary in place.summaries(env_filter)[1]:
            env_id = str(summary["env_id"])
            if _reward(summary) > _reward(best.get(env_id, {})):
                best[env_id] = _listed(summary)
        more = shown_of(limit, len(best), "environments", "narrow env_filter")
        judged = "test_reward where there is one (fresh episodes at the end), else best_reward"
        return BestRuns(best=list(best.values())[:limit], judged_by=judged, truncated=more)

    @tools.reads
    def list_checkpoints(run_id: RunId, limit: Limit = 20) -> Checkpoints:
        """Checkpoints of a run: last, best, then the newest epochs. Next: inspect_checkpoint with a ref."""
        with place.reading(run_id) as run:
            names = run.checkpoints()
            entries = []
            for known in map(run.describe_checkpoint, names[:limit]):
                progress = {key: known["progress"].get(key) for key in ("env_steps", "epoch", "best_eval")}
                entries.append({"name": known["name"], "ref": known["ref"], **progress, "bytes": known["bytes"]})
            more = shown_of(limit, len(names), "checkpoints")
            return Checkpoints(run_id=run.run_id, checkpoints=entries, truncated=more)

    @tools.reads
    def compare_runs(
        run_ids: Annotated[
            list[str],
            Field(
                description="Two or more; a group of seeds or an experiment has several.", min_length=1, max_length=100
            ),
        ],
        group_by: Annotated[str | None, Field(description="Config field whose values make the sides.")] = None,
    ) -> Comparison:
        """Runs or groups of seeds side by side: config differences, results over seeds with intervals, and a verdict.
        Runs equal apart from the seed form one side. Use it before you claim that one setting is better. Next: with too
        few seeds, start_training with seeds or apply_and_verify."""
        sides = [place.run_or_group(run_id) for run_id in run_ids]
        with next_call("list_runs", "list_runs for two or more runs, get_run_info for config fields"):
            document = api.compare(*sides, group_by=group_by)
        document, cut = short(document, "the whole comparison: gsolve compare RUN RUN --json")
        named = {name: document.pop(name) for name in ("verdict", "caveats", "differences", "sides", "tests")}
        return Comparison(**named, details=document, truncated=cut)


def _listed(summary: Mapping[str, Any]) -> Summary:
    return {name: summary.get(name) for name in LISTED}


def _reward(summary: Mapping[str, Any]) -> float:
    reward = summary.get("test_reward")
    reward = summary.get("best_reward") if reward is None else reward
    return float("-inf") if reward is None else float(reward)
