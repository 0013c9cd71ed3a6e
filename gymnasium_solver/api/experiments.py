"""The verbs that compare, search and prove, as Python functions; the package has them beside the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.lookup import as_path, find_either, load_run, require_name
from gymnasium_solver.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.verify.trials import Notice


def compare(
    *runs: Run | Group | str,
    group_by: str | None = None,
    baseline: str | None = None,
    runs_dir: str | Path | None = None,
) -> dict[str, Any]:
    """Runs or groups of seeds side by side: settings that differ, results over seeds, losses, gradients, schedules and
    a `verdict`. Runs equal apart from the seed form a side, or those that share the field `group_by`."""
    from gymnasium_solver.api.solutions import chosen_by_seeds
    from gymnasium_solver.verify.comparison.document import compare_runs

    if listed := [ref for ref in runs if isinstance(ref, list | tuple)]:
        raise ConfigError(f"compare takes runs one by one, not a {type(listed[0]).__name__}; write compare(*runs)")
    found = [find_either(ref, runs_dir) for ref in runs]
    document = compare_runs([run for one in found for run in _members(one)], group_by=group_by, baseline=baseline)
    document["caveats"] += [caveat for one in found if (caveat := chosen_by_seeds(one))]
    return document


def _members(found: Run | Group) -> list[Run]:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.errors import NotFoundError

    if not isinstance(found, Group):
        return [found]
    if not (members := found.runs()):
        raise NotFoundError(f"no run of the group {found.group_id} has begun yet; wait, or compare runs by their ids")
    return members


def insights(env_id: str, *, metric: str = "frames", runs_dir: str | Path | None = None) -> dict[str, Any]:
    """What all runs of an environment show together: `best` configurations, settings that are `separating` solved from
    failed runs, and results `over_time`; judged by frames or seconds to the threshold, or by the return."""
    from gymnasium_solver.diagnose.insights import insights

    return insights(env_id, metric, as_path(runs_dir))


def optimize(
    ref: Run | str | None = None,
    *,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    budget: str | float | None = "10m",
    max_runs: int | None = None,
    seeds: int = 5,
    objective: str | None = None,
    jobs: int | None = None,
    resume: str | None = None,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[Notice], None] = lambda _: None,
) -> dict[str, Any]:
    """Look for a better configuration than that of a run or `ENV:VARIANT`, and test it on fresh seeds.

    Returns the experiment's document: `winner` and `yaml` if something is significantly better, `verdict` in any case.
    With `resume` an experiment goes on with what it was begun with.
    """
    from gymnasium_solver.verify.experiments.budget import budget_of
    from gymnasium_solver.verify.experiments.optimize import optimize
    from gymnasium_solver.verify.objective import require_objective

    if resume is not None:
        asked = _resumed("optimize", resume, runs_dir)
        fields, source, seeds, objective = (asked[name] for name in ("config", "source", "seeds", "objective"))
        run = load_run(asked["run"], runs_dir=runs_dir) if asked["run"] else None
    else:
        fields, source, run = _configuration(ref, overrides, runs_dir)
    return optimize(
        fields,
        source,
        budget_of(budget, max_runs),
        run=run,
        objective=require_objective(objective),
        seeds=seeds,
        jobs=jobs,
        resume=resume,
        runs_dir=as_path(runs_dir),
        say=say,
        watch=watch,
    )


def verify(
    ref: Run | str | None = None,
    change: Mapping[str, Any] | Sequence[str] = (),
    *,
    seeds: int = 5,
    budget: str | float | None = None,
    jobs: int | None = None,
    resume: str | None = None,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[Notice], None] = lambda _: None,
) -> dict[str, Any]:
    """Train a run's configuration, or `ENV:VARIANT`, with and without a change over the same fresh seeds.

    Returns the experiment's document: `verdict`, and the whole `comparison`.
    """
    from gymnasium_solver.config.load import parse_overrides
    from gymnasium_solver.verify.experiments.budget import budget_of
    from gymnasium_solver.verify.experiments.change_test import measure_change

    if resume is not None:
        asked = _resumed("verify", resume, runs_dir)
        fields, source, change, seeds = (asked[name] for name in ("config", "source", "set", "seeds"))
    else:
        fields, source, _ = _configuration(ref, (), runs_dir)
        _require_test(change, seeds)
    return measure_change(
        fields,
        dict(parse_overrides(change)),
        source,
        budget_of(budget, None),
        seeds=seeds,
        jobs=jobs,
        resume=resume,
        runs_dir=as_path(runs_dir),
        say=say,
        watch=watch,
    )


def _require_test(change: Mapping[str, Any] | Sequence[str], seeds: int) -> None:
    """Said before anything is trained: there is a change, and its seeds could show something."""
    from gymnasium_solver.statistics import seeds_for_ranks

    if not change:
        raise ConfigError("the change to test is missing; give it as --set FIELD=VALUE; gsolve diagnose has some")
    if seeds < (fewest := seeds_for_ranks()):
        raise ConfigError(
            f"seeds: {seeds} a side show nothing where seeds miss the threshold; give at least {fewest}, better 5"
        )


def _resumed(kind: str, experiment: str, runs_dir: str | Path | None) -> dict[str, Any]:
    from gymnasium_solver.verify.experiments.laboratory import asked_before

    asked = asked_before(experiment, as_path(runs_dir))
    if asked["kind"] != kind:
        raise ConfigError(f"{experiment} is an experiment of gsolve {asked['kind']}, not of {kind}; resume it there")
    return asked


def _configuration(
    ref: Run | str | None, overrides: Mapping[str, Any] | Sequence[str], runs_dir: str | Path | None
) -> tuple[dict[str, Any], str, Run | None]:
    """The whole config of a run or of `ENV:VARIANT`, its name, and the run if it is what was trained."""
    from gymnasium_solver.config.load import load_config, shipped, to_dict, with_overrides
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.verify.experiments.optimize import config_of

    if ref is None:
        raise ConfigError("what to improve is missing; give a run, ENV:VARIANT, or --resume EXPERIMENT")
    if not isinstance(ref, Run):
        require_name(ref)
    if isinstance(ref, str) and ":" in ref:
        return to_dict(load_config(ref, overrides)), ref, None
    if isinstance(ref, str) and ref in {env for env, _, _ in shipped()}:
        raise ConfigError(f"{ref!r} names no variant; write ENV:VARIANT, for example {ref}:ppo")
    run = load_run(ref, runs_dir=runs_dir)
    fields = config_of(run)
    return (with_overrides(fields, overrides), run.run_id, None) if overrides else (fields, run.run_id, run)


def solve(
    env_id: str | None = None,
    *,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    budget: str | float = "10m",
    target: float | None = None,
    use_shipped: bool = True,
    episodes: int = 100,
    seed: int = 1,
    jobs: int | None = None,
    resume: str | None = None,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    watch: Callable[[Notice], None] = lambda _: None,
) -> dict[str, Any]:
    """From an environment to a policy whose mean return on fresh episodes is at the threshold, or at `target`.

    Returns the whole history: `solved`, `solution` with the run and its configuration, `attempts`.
    """
    from gymnasium_solver.config.load import with_overrides
    from gymnasium_solver.config.schema import CONFIGS
    from gymnasium_solver.verify.experiments.budget import budget_of
    from gymnasium_solver.verify.experiments.solve import solve

    fields = with_overrides({}, overrides)
    if resume is not None:
        asked = _resumed("solve", resume, runs_dir)
        fields, env_id = dict(asked["task"]), asked["env_id"]
        use_shipped, episodes, seed = (asked[name] for name in ("use_shipped", "episodes", "seed"))
        fields.pop("env_id", None)
        target = fields.pop("reward_threshold", None)
    if env_id is None:
        raise ConfigError("which environment to solve is missing; give its id, or --resume EXPERIMENT")
    require_name(env_id)
    if ":" in env_id and env_id.rpartition(":")[2] in CONFIGS:
        raise ConfigError(f"solve takes an environment, not a variant: {env_id.rpartition(':')[0]}")
    return solve(
        env_id,
        budget_of(budget, None),
        target=target,
        overrides=fields,
        use_shipped=use_shipped,
        episodes=episodes,
        seed=seed,
        jobs=jobs,
        resume=resume,
        runs_dir=as_path(runs_dir),
        say=say,
        watch=watch,
    )


def sweep(
    ref: str | None = None, *, runs_dir: str | Path | None = None, overrides: Sequence[str] = (), **options: Any
) -> dict[str, Any]:
    """Search around `ENV:VARIANT` with Optuna, check the winner on fresh seeds, and return the document of it.

    Options as in `verify.sweeping.search.Plan`: space, trials, budget (seconds), seeds, sampler, pruner, objective,
    storage, name, jobs, confirm_seeds. Without `ref`, the sweep called `name` goes on.
    """
    from gymnasium_solver.verify.sweeping.sweep import Plan, sweep

    return sweep(Plan(ref, overrides=tuple(overrides), runs_dir=as_path(runs_dir), **options))
