"""The verbs that compare, search and prove, as Python functions; the package has them beside the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.lookup import as_path, find_either, load_run, require_name
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.trust import allow, names_in
from gymnasium_solver.verify.experiments.options import Options

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.verify.sweeping.search import State

COMMON = {"budget", "jobs", "resume", "runs_dir", "say", "trust", "watch"}
OWN = {
    "verify": {"seeds"},
    "optimize": {"seeds", "objective", "max_runs"},
    "solve": {"target", "use_shipped", "episodes", "seed"},
}
USUAL_BUDGET = {"verify": None, "optimize": "10m", "solve": "10m"}


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

    allow(names_in({"env_id": env_id}))
    return insights(env_id, metric, as_path(runs_dir))


def optimize(
    ref: Run | str | None = None,
    *,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    options: Options | None = None,
    trust: bool = False,
    **named: Any,
) -> dict[str, Any]:
    """Look for a better configuration than that of a run or `ENV:VARIANT`, and test it on fresh seeds.

    Returns the experiment's document: `winner` and `yaml` if something is significantly better, `verdict` in any case.
    Options, by name or as an object: `budget` ("10m"), `max_runs`, `seeds` (5 on each side), `objective` ("steps",
    "seconds", "return"), `jobs`, `runs_dir`, `say`, `watch`; with `resume` an experiment goes on as it was begun.
    `trust`: code that a run made elsewhere names may be imported.
    """
    from gymnasium_solver.verify.experiments.optimize import optimize

    options = _options("optimize", options, named)
    if options.resume is not None:
        asked = _resumed("optimize", options, trust)
        fields, source, seeds, objective = (asked[name] for name in ("config", "source", "seeds", "objective"))
        options = replace(options, seeds=seeds, objective=objective)
        run = load_run(asked["run"], runs_dir=options.runs_dir) if asked["run"] else None
    else:
        fields, source, run = _configuration(ref, overrides, options.runs_dir, trust)
    return optimize(fields, source, options, run)


def verify(
    ref: Run | str | None = None,
    change: Mapping[str, Any] | Sequence[str] = (),
    *,
    options: Options | None = None,
    trust: bool = False,
    **named: Any,
) -> dict[str, Any]:
    """Train a run's configuration, or `ENV:VARIANT`, with and without a change over the same fresh seeds.

    Returns the experiment's document: `verdict`, and the whole `comparison`. Options, by name or as an object: `seeds`
    (5 on each side), `budget` (no end), `jobs`, `runs_dir`, `say`, `watch`; with `resume` an experiment goes on as it
    was begun.
    """
    from gymnasium_solver.config.load import parse_overrides
    from gymnasium_solver.verify.experiments.change_test import measure_change

    options = _options("verify", options, named)
    if options.resume is not None:
        asked = _resumed("verify", options, trust)
        fields, source, change, seeds = (asked[name] for name in ("config", "source", "set", "seeds"))
        options = replace(options, seeds=seeds)
    else:
        fields, source, _ = _configuration(ref, (), options.runs_dir, trust)
        _require_test(change, options.seeds)
    return measure_change(fields, dict(parse_overrides(change)), source, options)


def check_change(ref: Run | str, change: Mapping[str, Any]) -> None:
    """Refused here, before anything is started: what is no valid change of a run or of `ENV:VARIANT`, or none."""
    from gymnasium_solver.verify.experiments.change_test import with_change

    fields, source, _ = _configuration(ref, (), None)
    with_change(fields, change, source)


def _require_test(change: Mapping[str, Any] | Sequence[str], seeds: int) -> None:
    """Said before anything is trained: there is a change, and its seeds could show something."""
    from gymnasium_solver.statistics import seeds_for_ranks

    if not change:
        raise ConfigError("the change to test is missing; give it as --set FIELD=VALUE; gsolve diagnose has some")
    if seeds < (fewest := seeds_for_ranks()):
        raise ConfigError(
            f"seeds: {seeds} per side show nothing when seeds miss the threshold; use at least {fewest}, preferably 5"
        )


def _options(verb: str, options: Options | None, named: Mapping[str, Any]) -> Options:
    """Refused: what the verb has no use for."""
    if unknown := sorted(set(named) - COMMON - OWN[verb]):
        raise TypeError(f"{verb}() takes no {unknown[0]!r}; its options are {', '.join(sorted(COMMON | OWN[verb]))}")
    if "runs_dir" in named:
        named = {**named, "runs_dir": as_path(named["runs_dir"])}
    return replace(options, **named) if options is not None else Options(**{"budget": USUAL_BUDGET[verb], **named})


def _resumed(kind: str, options: Options, trust: bool) -> dict[str, Any]:
    from gymnasium_solver.verify.experiments.laboratory import asked_before

    assert options.resume is not None
    asked = asked_before(options.resume, options.runs_dir, trust=trust)
    if asked["kind"] != kind:
        raise ConfigError(
            f"{options.resume} is an experiment of gsolve {asked['kind']}, not of {kind}; resume it there"
        )
    return asked


def _configuration(
    ref: Run | str | None,
    overrides: Mapping[str, Any] | Sequence[str],
    runs_dir: str | Path | None,
    trust: bool = False,
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
        return to_dict(load_config(ref, overrides, asked=True)), ref, None
    if isinstance(ref, str) and ref in {env for env, _, _ in shipped()}:
        raise ConfigError(f"{ref!r} names no variant; write ENV:VARIANT, for example {ref}:ppo")
    run = load_run(ref, runs_dir=runs_dir)
    run.admit_code(trust=trust)
    fields = config_of(run)
    return (with_overrides(fields, overrides), run.run_id, None) if overrides else (fields, run.run_id, run)


def solve(
    env_id: str | None = None,
    *,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    options: Options | None = None,
    trust: bool = False,
    **named: Any,
) -> dict[str, Any]:
    """From an environment to a policy whose mean return on fresh episodes is at the threshold, or at `target`.

    Returns the whole history: `solved`, `solution` with the run and its configuration, `attempts`. Options, by name or
    as an object: `budget` ("10m"), `target`, `use_shipped`, `episodes` (100) of the evaluation that decides, `seed`,
    `jobs`, `runs_dir`, `say`, `watch`; with `resume` an experiment goes on as it was begun.
    """
    from gymnasium_solver.config.cards import find_card
    from gymnasium_solver.config.load import with_overrides
    from gymnasium_solver.verify.experiments.solve import solve

    options, fields = _options("solve", options, named), with_overrides({}, overrides)
    if options.resume is not None:
        asked = _resumed("solve", options, trust)
        fields, env_id = dict(asked["task"]), asked["env_id"]
        fields.pop("env_id", None)
        before = {name: asked[name] for name in ("use_shipped", "episodes", "seed")}
        options = replace(options, target=fields.pop("reward_threshold", None), **before)
    if env_id is None:
        raise ConfigError("which environment to solve is missing; give its id, or --resume EXPERIMENT")
    require_name(env_id)
    if options.resume is None:
        allow(names_in({**fields, "env_id": env_id}))
    if ":" in env_id and find_card(env_id.rpartition(":")[2]):
        raise ConfigError(f"solve takes an environment, not a variant: {env_id.rpartition(':')[0]}")
    return solve(env_id, options, fields)


def sweep(
    ref: str | None = None,
    *,
    budget: str | float | None = None,
    runs_dir: str | Path | None = None,
    overrides: Sequence[str] = (),
    watch: Callable[[State], None] = lambda _: None,
    **options: Any,
) -> dict[str, Any]:
    """Search around `ENV:VARIANT` with Optuna, check the winner on fresh seeds, and return the document of it.

    `budget` is a time such as "30m", or seconds; further options: space, trials, seeds, sampler, pruner, objective,
    storage, name, jobs, confirm_seeds. Without `ref`, the sweep called `name` goes on (code that it names is imported
    if it was begun here, or with `trust`).
    """
    from gymnasium_solver.verify.experiments.budget import parse_duration
    from gymnasium_solver.verify.sweeping.sweep import Plan, sweep

    seconds = parse_duration(budget) if isinstance(budget, str) else budget
    plan = Plan(ref, overrides=tuple(overrides), budget=seconds, runs_dir=as_path(runs_dir), **options)
    return sweep(plan, watch)
