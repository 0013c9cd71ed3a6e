"""Work that takes minutes: started as jobs, followed with `get_job_status`, in tools/jobs.py."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver.api.configs import requires_import
from gymnasium_solver.api.experiments import check_change
from gymnasium_solver.api.jobs import start_job
from gymnasium_solver.api.request import written
from gymnasium_solver.errors import ConfigError, TrustError
from gymnasium_solver.mcp.answers import Answer
from gymnasium_solver.mcp.arguments import Budget, ConfigId, Overrides, Resume, RunId, Seeds, TestSeeds
from gymnasium_solver.mcp.place import Place, next_call
from gymnasium_solver.mcp.resuming import resumable
from gymnasium_solver.mcp.toolbox import Toolbox
from gymnasium_solver.trust import names_in, require

OptionalRun = Annotated[str | None, Field(description="The run to start from; this or config_id.")]
OptionalConfig = Annotated[str | None, Field(description="ENV:VARIANT to start from; this or run_id.")]
Objective = Annotated[
    Literal["steps", "seconds", "return"] | None,
    Field(description="What is better: fewer steps or seconds to the threshold, or a higher return [steps]."),
]
GSOLVE = "gymnasium_solver"


class JobStarted(Answer):
    job_id: str
    kind: str
    command: str = Field(description="What was started, as on the command line.")
    next_call: str


def register(tools: Toolbox, place: Place) -> None:
    def gsolve(verb: str, about: list[str], *options: object, kind: str = "", keeps_runs: bool = True) -> JobStarted:
        """`about` comes last, behind `--`: whatever it begins with, it is no option."""
        runs_dir = ["--runs-dir", str(place.runs_dir)] if keeps_runs else []
        words = [verb, *map(str, options), *runs_dir, "--json", *(["--", *about] if about else [])]
        return _started(place.runs_dir, kind or verb, GSOLVE, words)

    @tools.starts
    def apply_and_verify(
        overrides: Annotated[
            dict[str, Any] | None, Field(description="The change: config fields and new values; not with resume.")
        ] = None,
        run_id: OptionalRun = None,
        config_id: OptionalConfig = None,
        seeds: TestSeeds = 5,
        budget: Budget = "15m",
        resume: Resume = None,
    ) -> JobStarted:
        """Test one change against the run's configuration as it is: both are trained over the same fresh seeds and
        compared. Use it for a recommendation's `set`, or your own idea. Returns a job_id. Next: get_job_status; its
        result has the verdict."""
        options = _options(budget=budget, seeds=seeds)
        if resume is not None:
            resume = resumable(place, resume, "verify", overrides=overrides, run_id=run_id, config_id=config_id)
            return gsolve("verify", [], *_options(budget=budget, resume=resume))
        ref = _source(place, run_id, config_id)
        _check_change(place, ref, overrides, is_run=run_id is not None)  # refused here, not in a job
        return gsolve("verify", [ref], *_set(overrides), *options)

    @tools.starts
    def optimize_config(
        run_id: OptionalRun = None,
        config_id: OptionalConfig = None,
        overrides: Overrides = None,
        budget: Budget = "10m",
        seeds: Seeds = 5,
        objective: Objective = None,
        resume: Resume = None,
    ) -> JobStarted:
        """Look for a better configuration: diagnose, race the advice and its neighbours, test the winner on fresh
        seeds. Use it when one change is not enough or nothing is advised. Returns a job_id. Next: get_job_status;
        `winner`, `yaml` and `verdict` are in its result."""
        options = _options(budget=budget, seeds=seeds, objective=objective)
        if resume is not None:
            asked = {"run_id": run_id, "config_id": config_id, "overrides": overrides, "objective": objective}
            resume = resumable(place, resume, "optimize", **asked)
            return gsolve("optimize", [], *_options(budget=budget, resume=resume))
        ref = _source(place, run_id, config_id)
        if config_id is not None:
            place.check(config_id, overrides)
        return gsolve("optimize", [ref], *_set(overrides), *options)

    @tools.starts
    def solve_environment(
        env_id: Annotated[
            str | None, Field(description="Environment id, e.g. LunarLander-v3; not with resume.")
        ] = None,
        overrides: Overrides = None,
        budget: Budget = "10m",
        target: Annotated[float | None, Field(description="Mean return to reach [the threshold].")] = None,
        resume: Resume = None,
    ) -> JobStarted:
        """From an environment to a policy that passes on fresh episodes: pick, train, diagnose, change, train again.
        Use it when there is no run yet and the goal is a working policy. Returns a job_id. Next: get_job_status."""
        options = _options(budget=budget, target=target)
        if resume is not None:
            resume = resumable(place, resume, "solve", env_id=env_id, overrides=overrides, target=target)
            return gsolve("solve", [], *_options(budget=budget, resume=resume))
        if env_id is None:
            raise ConfigError("give env_id, or resume; list_environments and list_experiments name them")
        place.check(f"{env_id}:ppo", overrides)  # says which environments are near; which algorithm is found out
        return gsolve("solve", [env_id], *_set(overrides), *options)

    @tools.starts
    def sweep_config(
        config_id: ConfigId,
        overrides: Overrides = None,
        trials: Annotated[int, Field(description="Configurations to try.", ge=1, le=1000)] = 20,
        seeds: Annotated[int, Field(description="Seeds of each.", ge=1, le=20)] = 3,
        budget: Annotated[str | None, Field(description="Stop searching after, e.g. 30m.")] = None,
    ) -> JobStarted:
        """Search the usual hyperparameters of an algorithm with Optuna, and check the winner on fresh seeds. Use it
        when optimize_config found nothing and there is time. Returns a job_id. Next: get_job_status."""
        place.check(config_id, overrides)
        wanted = ["--trials", trials, "--seeds", seeds, *_options(budget=budget)]
        return gsolve("sweep", [config_id], *_set(overrides), *wanted)

    @tools.starts
    def profile_config(
        config_id: ConfigId,
        overrides: Overrides = None,
        seconds: Annotated[
            float, Field(description="Length of the profiled training; trials take up to ten times that.", ge=2, le=120)
        ] = 10.0,
    ) -> JobStarted:
        """Where the time of a training goes, what limits it, and which n_envs, engine and number of threads are
        fastest on this machine. Use it when a training is slow in seconds, not in steps. Returns a job_id. Next:
        get_job_status."""
        place.check(config_id, overrides)
        return gsolve("profile", [config_id], *_set(overrides), "--seconds", seconds, keeps_runs=False)

    @tools.starts
    def score_run(
        run_id: Annotated[
            str, Field(description="A run, a group of seeds, or an experiment: what it chose.", min_length=1)
        ],
        episodes: Annotated[int, Field(description="Fresh episodes of each policy.", ge=2, le=1000)] = 100,
    ) -> JobStarted:
        """The score card of a solution: sample efficiency, success rate, spread over seeds, transfer, time, robustness
        at 20 % observation noise, each against its target. Use it before a policy is called done. Returns a job_id."""
        return gsolve("score", [place.run_or_group(run_id).path.name], "--episodes", episodes)

    @tools.starts
    def evaluate_run(
        checkpoint: Annotated[str, Field(description="RUN (its best), RUN/@best, RUN/@last or RUN/epoch=N.")],
        episodes: Annotated[int, Field(description="Fresh episodes.", ge=1, le=10_000)] = 100,
    ) -> JobStarted:
        """Play fresh episodes with a checkpoint: mean return and its spread. Use it to know how good a policy is, apart
        from its training curve. Returns a job_id."""
        return gsolve("evaluate", [place.checkpoint(checkpoint)], "--episodes", episodes)

    @tools.starts
    def probe_run(run_id: RunId) -> JobStarted:
        """The diagnosis after short experiments that settle which of several causes it is. Use it when diagnose_run
        names two causes with similar confidence, or suspects a bug. Builds the run's environment. Returns a job_id."""
        return gsolve("diagnose", [place.run(run_id).run_id], "--probe", kind="probe")

    @tools.starts
    def measure_noise_scale(run_id: RunId) -> JobStarted:
        """The gradient noise scale of a run and the batch size it suggests; nothing is trained. Use it for questions
        about batch size. Returns a job_id. Next: get_job_status; diagnose_run then takes it into account."""
        return gsolve("noise-scale", [place.run(run_id).run_id])

    @tools.starts
    def check_regressions(
        suite: Annotated[Literal["quick", "shipped"], Field(description="quick: minutes; shipped: hours.")] = "quick",
        seeds: Annotated[int, Field(description="Seeds of each configuration.", ge=1, le=20)] = 5,
    ) -> JobStarted:
        """Does the suite still learn as fast as the stored baseline? Use it after changing training code or
        dependencies. Returns a job_id."""
        return gsolve("regress", [suite], "--seeds", seeds)

    @tools.starts
    def validate_ppo(
        function: Annotated[
            str | None,
            Field(description="A loss or GAE function, module:function of a module in --allow-code [our PPO]."),
        ] = None,
    ) -> JobStarted:
        """Check our PPO, or the user's loss or GAE function, against reference values and known mistakes. The function
        is imported and called. Use it when a PPO implementation is suspected. Returns a job_id."""
        if function is not None:
            if function.rpartition(":")[0].endswith(".py"):
                raise TrustError(f"function: {function} is a file of code; check it with gsolve validate in a terminal")
            require(function, "function")
        return gsolve("validate", ["ppo", *([function] if function else [])], keeps_runs=False)


def _source(place: Place, run_id: str | None, config_id: str | None) -> str:
    if (run_id is None) == (config_id is None):
        raise ConfigError("give either run_id or config_id; list_runs and list_environments name them")
    if run_id is not None:
        return place.run(run_id).run_id
    place.check(str(config_id))
    return str(config_id)


def _check_change(place: Place, ref: str, overrides: Mapping[str, Any] | None, *, is_run: bool) -> None:
    if not overrides:
        raise ConfigError("give overrides, the change to test, or resume; recommend_changes and list_experiments help")
    for name in names_in(overrides):
        require(name, "overrides")
    if is_run or not requires_import(ref):
        check_change(place.run(ref) if is_run else ref, overrides)


def _options(**named: Any) -> list[str]:
    """Checked here, for the command line of a job."""
    from gymnasium_solver.api import Options

    with next_call("it again with such a budget"):
        return Options(**named).arguments()


def _set(overrides: Mapping[str, Any] | None) -> list[str]:
    return [word for override in written(overrides or {}) for word in ("--set", override)]


def _started(runs_dir: Path, kind: str, module: str, words: list[str]) -> JobStarted:
    job = start_job(runs_dir, kind, module, words)
    return JobStarted(
        job_id=job.job_id,
        kind=kind,
        command=shlex.join(job.record["command"]),
        next_call=f"get_job_status(job_id={job.job_id!r}, wait_seconds=30)",
    )
