"""The verbs of `gsolve` as Python functions. JAX is imported by those that need it, when they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.api.playback import Episode
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.evaluation import Evaluation
    from gymnasium_solver.train.loop import Event
    from gymnasium_solver.verify.trials import Notice


def train(
    ref: str,
    *,
    runs_dir: str | Path | None = None,
    init_from: str | None = None,
    on_event: Callable[[Event], None] | None = None,
    **overrides: Any,
) -> Run:
    """Train `ENV:VARIANT` and return its run; `overrides` are config fields (`seed=1, policy_lr=1e-3`)."""
    from gymnasium_solver.config.load import load_config
    from gymnasium_solver.train.loop import train

    return train(load_config(ref, overrides), runs_dir=_path(runs_dir), init_from=init_from, on_event=on_event)


def train_seeds(
    ref: str,
    seeds: int,
    *,
    jobs: int | None = None,
    runs_dir: str | Path | None = None,
    init_from: str | None = None,
    on_event: Callable[[Event], None] | None = None,
    **overrides: Any,
) -> list[Run]:
    """Train this many seeds side by side, `jobs` at a time (one a core), and return their runs, failed ones too.

    Each has a process of its own; seeds count up from the config's. Raises if not a single run came about.
    """
    from gymnasium_solver.api.request import Request, written
    from gymnasium_solver.api.seeds import SeedJob, train_jobs
    from gymnasium_solver.errors import SolverError
    from gymnasium_solver.runs.reader import Run

    first = config(ref, **overrides).seed
    request = Request(ref, written(overrides), init_from=init_from, runs_dir=_path(runs_dir))

    def forward(_: SeedJob, kind: Any, run: str, data: dict[str, Any]) -> None:
        from gymnasium_solver.train.loop import Event

        if on_event is not None:
            on_event(Event(kind, run, data))

    result = train_jobs(request, [SeedJob(seed) for seed in range(first, first + seeds)], jobs, on_event=forward)
    runs = [Run(Path(job.path)) for job in result.jobs if job.path]
    if not runs and (reasons := result.reasons()):
        raise SolverError("; ".join(reasons))
    return runs


def start(
    ref: str,
    *,
    seeds: int = 1,
    jobs: int | None = None,
    runs_dir: str | Path | None = None,
    init_from: str | None = None,
    **overrides: Any,
) -> str:
    """Train in the background, in a process that outlives this one; returns the run id, of many seeds the group id."""
    from gymnasium_solver.api.background import start_training
    from gymnasium_solver.api.guards import requires_import
    from gymnasium_solver.api.request import Request, written

    request = Request(ref, written(overrides), init_from=init_from, runs_dir=_path(runs_dir))
    if not requires_import(ref):  # else the process that trains will say what is wrong with it
        request.config()
    return start_training(request, seeds=seeds, jobs=jobs)


def resume(
    run: Run | str,
    *,
    runs_dir: str | Path | None = None,
    on_event: Callable[[Event], None] | None = None,
    **overrides: Any,
) -> Run:
    """Continue a stopped run from its last checkpoint; `overrides` such as `max_env_steps` give it more to do."""
    from gymnasium_solver.train.loop import train

    run = load_run(run, runs_dir=runs_dir)
    return train(resume=str(run.path), runs_dir=run.path.parent, overrides=overrides, on_event=on_event)


def load_run(run: Run | str, *, runs_dir: str | Path | None = None) -> Run:
    """The run with this id, unique prefix of one, or path; `@last` is the newest."""
    from gymnasium_solver.runs.reader import Run, find_run

    return run if isinstance(run, Run) else find_run(run, _path(runs_dir))


def runs(*, group: str | None = None, runs_dir: str | Path | None = None) -> list[Run]:
    """All runs, or those of a group of seeds, newest first."""
    from gymnasium_solver.runs.reader import list_runs

    found = list_runs(_path(runs_dir))
    return found if group is None else [run for run in found if run.status.get("group") == group]


def status(run: Run | Group | str, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """How far a run, or a group of seeds, is."""
    from gymnasium_solver.runs.reader import Run

    found = _find(run, runs_dir)
    return {"run_id": found.run_id, **found.status, **found.summary()} if isinstance(found, Run) else found.status()


def stop(
    run: Run | Group | str,
    *,
    timeout: float = 60.0,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Ask a training to save and end after its update, and wait for that; of a group, all its seeds.

    Returns its status, with `was_running`.
    """
    from gymnasium_solver.api.stopping import stop_group, stop_run
    from gymnasium_solver.runs.reader import Run

    found = _find(run, runs_dir)
    was_running = status(found)["status"] == "running"
    if isinstance(found, Run):
        stop_run(found, timeout, say)
    else:
        stop_group(found, timeout, say)
    return {**status(found), "was_running": was_running}


def logs(run: Run | str, n: int | None = None, *, runs_dir: str | Path | None = None) -> list[str]:
    """The lines of a run's log, or only the last n."""
    lines = load_run(run, runs_dir=runs_dir).log_lines()
    return lines if n is None else lines[max(len(lines) - n, 0) :]


def load_checkpoint(run: Run | str, *, runs_dir: str | Path | None = None) -> tuple[Run, str]:
    """The run and the name of the checkpoint that `RUN`, `RUN/@best`, `RUN/@last` or `RUN/epoch=N` means.

    Without a name: the best checkpoint, or the last where nothing was evaluated yet.
    """
    from gymnasium_solver.errors import NotFoundError
    from gymnasium_solver.runs.reader import Run, split_checkpoint_ref

    ref, name = (run, None) if isinstance(run, Run) else split_checkpoint_ref(run)
    found = load_run(ref, runs_dir=runs_dir)
    names = found.checkpoints()
    if name is None:
        name = "best" if "best" in names else "last"
    if name not in names:
        remedy = f"it has {', '.join(names)}" if names else "it has none yet"
        raise NotFoundError(f"run {found.run_id} has no checkpoint {name!r}; {remedy}")
    return found, name


def evaluate(
    run: Run | str,
    *,
    episodes: int = 20,
    deterministic: bool = True,
    seed: int | None = None,
    runs_dir: str | Path | None = None,
) -> Evaluation:
    """Play whole episodes with a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`): their returns and lengths."""
    from gymnasium_solver.train.evaluation import evaluate_checkpoint

    found, name = load_checkpoint(run, runs_dir=runs_dir)
    return evaluate_checkpoint(found, name, episodes=episodes, deterministic=deterministic, seed=seed)


def play(
    run: Run | str,
    *,
    video: str | Path | None = None,
    episodes: int = 1,
    fps: float | None = None,
    deterministic: bool = True,
    seed: int | None = None,
    runs_dir: str | Path | None = None,
) -> list[Episode]:
    """Watch a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`) act, in a window or as an .mp4 or .gif."""
    from gymnasium_solver.api.playback import play_episodes

    found, name = load_checkpoint(run, runs_dir=runs_dir)
    return play_episodes(
        found, name, episodes=episodes, video=_path(video), fps=fps, deterministic=deterministic, seed=seed
    )


def compare(
    *runs: Run | Group | str,
    group_by: str | None = None,
    baseline: str | None = None,
    runs_dir: str | Path | None = None,
) -> dict[str, Any]:
    """Runs or groups of seeds side by side: settings that differ, results over seeds, losses, gradients, schedules and
    a `verdict`. Runs equal apart from the seed form a side, or those that share the field `group_by`."""
    from gymnasium_solver.verify.comparison.document import compare_runs

    found = [_find(ref, runs_dir) for ref in runs]
    document = compare_runs([run for one in found for run in _members(one)], group_by=group_by, baseline=baseline)
    document["caveats"] += [caveat for one in found if (caveat := _chosen_by_seeds(one))]
    return document


def _chosen_by_seeds(found: Run | Group) -> str:
    """Trials of an experiment are no fair sample: some of their seeds decided who went on."""
    from gymnasium_solver.api.groups import Group

    if not isinstance(found, Group) or found.record.get("kind") not in ("optimize", "solve", "sweep"):
        return ""
    verdict = found.record.get("verdict") or "it has none yet"
    return f"{found.group_id} chose among these by some of their seeds; what it says of fresh ones: {verdict}"


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

    return insights(env_id, metric, _path(runs_dir))


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
    from gymnasium_solver.verify.budget import budget_of
    from gymnasium_solver.verify.objective import require_objective
    from gymnasium_solver.verify.optimize import optimize

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
        runs_dir=_path(runs_dir),
        say=say,
        watch=watch,
    )


def verify_change(
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
    from gymnasium_solver.verify.budget import budget_of
    from gymnasium_solver.verify.change_test import measure_change

    if resume is not None:
        asked = _resumed("verify", resume, runs_dir)
        fields, source, change, seeds = (asked[name] for name in ("config", "source", "set", "seeds"))
    else:
        fields, source, _ = _configuration(ref, (), runs_dir)
    return measure_change(
        fields,
        dict(parse_overrides(change)),
        source,
        budget_of(budget, None),
        seeds=seeds,
        jobs=jobs,
        resume=resume,
        runs_dir=_path(runs_dir),
        say=say,
        watch=watch,
    )


def _resumed(kind: str, experiment: str, runs_dir: str | Path | None) -> dict[str, Any]:
    from gymnasium_solver.errors import ConfigError
    from gymnasium_solver.verify.laboratory import asked_before

    asked = asked_before(experiment, _path(runs_dir))
    if asked["kind"] != kind:
        raise ConfigError(f"{experiment} is an experiment of gsolve {asked['kind']}, not of {kind}; resume it there")
    return asked


def _configuration(
    ref: Run | str | None, overrides: Mapping[str, Any] | Sequence[str], runs_dir: str | Path | None
) -> tuple[dict[str, Any], str, Run | None]:
    """The whole config of a run or of `ENV:VARIANT`, its name, and the run if it is what was trained."""
    from gymnasium_solver.config.load import load_config, shipped, to_dict, with_overrides
    from gymnasium_solver.errors import ConfigError
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.verify.optimize import config_of

    if ref is None:
        raise ConfigError("what to improve is missing; give a run, ENV:VARIANT, or --resume EXPERIMENT")
    if not isinstance(ref, Run) and ":" in ref:
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
    from gymnasium_solver.errors import ConfigError
    from gymnasium_solver.verify.budget import budget_of
    from gymnasium_solver.verify.solve import solve

    fields = with_overrides({}, overrides)
    if resume is not None:
        asked = _resumed("solve", resume, runs_dir)
        fields, env_id = dict(asked["task"]), asked["env_id"]
        use_shipped, episodes, seed = (asked[name] for name in ("use_shipped", "episodes", "seed"))
        fields.pop("env_id", None)
        target = fields.pop("reward_threshold", None)
    if env_id is None:
        raise ConfigError("which environment to solve is missing; give its id, or --resume EXPERIMENT")
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
        runs_dir=_path(runs_dir),
        say=say,
        watch=watch,
    )


def validate(
    algorithm: str = "ppo", function: str | Callable[..., Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Our PPO, or a loss or GAE function (`module:function`, `file.py:function`, or the function itself), against
    reference values, gradients and the published list of implementation details; options `kind`, `mapping`,
    `framework`, `maximize`. Keys: `compliant`, `verdict`, `checks`, `mistakes`, `details` and more."""
    from gymnasium_solver.verify.compliance import validate

    return validate(algorithm, function, **options)


def noise_scale(
    run: Run | str,
    *,
    checkpoint: str | None = None,
    rows: int | None = None,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """How noisy a run's gradients are, and the batch size that suggests; kept in the run as noise_scale.json."""
    from gymnasium_solver.verify.noise_scale import measure

    ref = run if isinstance(run, str) else str(run.path)
    return measure(ref, checkpoint=checkpoint, rows=rows, runs_dir=_path(runs_dir), say=say)


def score(
    run: Run | str,
    *,
    episodes: int = 100,
    seeds: int | None = None,
    transfer: Sequence[str] = (),
    noise: float = 0.2,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The score card of a solution, over the seeds beside it: efficiency, success, spread, transfer, robustness."""
    from gymnasium_solver.verify.score_card import score

    ref = run if isinstance(run, str) else str(run.path)
    return score(ref, episodes=episodes, seeds=seeds, transfer=transfer, noise=noise, runs_dir=_path(runs_dir), say=say)


def profile(
    ref: str,
    *,
    seconds: float = 10.0,
    out: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    **overrides: Any,
) -> dict[str, Any]:
    """Where the time of training `ENV:VARIANT` goes, what limits it, and which n_envs and engine is fastest here:
    `phases`, `limit`, `trials`, `final`, `recommendation`, `verdict`. No run is left behind."""
    from gymnasium_solver.verify.profile import profile

    return profile(ref, overrides, seconds=seconds, out=_path(out), say=say)


def sweep(
    ref: str | None = None, *, runs_dir: str | Path | None = None, overrides: Sequence[str] = (), **options: Any
) -> dict[str, Any]:
    """Search around `ENV:VARIANT` with Optuna, check the winner on fresh seeds, and return the document of it.

    Options as in `verify.sweep_search.Plan`: space, trials, budget (seconds), seeds, sampler, pruner, objective,
    storage, name, jobs, confirm_seeds. Without `ref`, the sweep called `name` goes on.
    """
    from gymnasium_solver.verify.sweep import Plan, sweep

    return sweep(Plan(ref, overrides=tuple(overrides), runs_dir=_path(runs_dir), **options))


def regress(
    suite: str = "quick", *, baseline: str | Path | None = None, runs_dir: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """Convergence of a suite against a stored baseline, a verdict a config; options: seeds, jobs, update, say."""
    from gymnasium_solver.verify.regression import regress

    return regress(suite, baseline=_path(baseline), runs_dir=_path(runs_dir), **options)


def config(ref: str, **overrides: Any) -> Config:
    """The fully resolved configuration of `ENV:VARIANT`."""
    from gymnasium_solver.config.load import load_config

    return load_config(ref, overrides)


def envs(filter: str = "") -> list[tuple[str, str, Path]]:
    """What is shipped, and what is in ./config/environments: (env_id, variant, file)."""
    from gymnasium_solver.config.load import shipped

    return shipped(filter)


def report(run: Run | Group | str, *, runs_dir: str | Path | None = None) -> Path:
    """Write report.md (of a run with its plots, of a group about all its seeds) again, and return its path."""
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.runs.report import write_report

    found = _find(run, runs_dir)
    return write_report(found.path) if isinstance(found, Run) else found.write_report()


def import_run(path: str | Path, *, runs_dir: str | Path | None = None, **options: Any) -> Run:
    """Bring a run of another library into the runs directory; `source`, `mapping`, `env_id`, `algo_id` as options."""
    from gymnasium_solver.runs.imports import import_run

    return import_run(Path(path), _path(runs_dir), **options)


def inspect(run: Run | str, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """What is in a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`) and what is wrong with it."""
    from gymnasium_solver.diagnose.checkpoints.inspection import inspect_run

    found, name = load_checkpoint(run, runs_dir=runs_dir)
    return inspect_run(found, name).to_dict()


def diagnose(run: Run | str | Path, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """What is wrong with a run, why, and what to change: `summary`, `metrics`, `bottlenecks`, `recommendations`,
    `next_steps`, `outlook`, `missing`. Nothing is written."""
    from gymnasium_solver.recommend.diagnosis import diagnose_run

    return diagnose_run(load_run(str(run) if isinstance(run, Path) else run, runs_dir=runs_dir))


def probe(
    run: Run | str, *, runs_dir: str | Path | None = None, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The diagnosis after the cheapest experiments that could settle what is ambiguous; `probes` holds their outcomes.

    The run's environment is built for it, so code that its configuration names is imported.
    """
    from gymnasium_solver.diagnose.engine import diagnose
    from gymnasium_solver.diagnose.readings import read
    from gymnasium_solver.recommend.diagnosis import whole_document
    from gymnasium_solver.verify import probes

    loaded = load_run(run, runs_dir=runs_dir)
    found = diagnose(read(loaded))
    config = probes.config_of(found)
    planned = probes.plan(found, config, say)
    if config is None or not planned:
        say("no experiment would change the ranking; this is the diagnosis as it stands")
        return whole_document(found, loaded) | {"probes": []}
    found, outcomes = probes.investigate(found, config, planned, say)
    return whole_document(found, loaded) | {"probes": probes.as_document(outcomes)}


def _find(run: Run | Group | str, runs_dir: str | Path | None) -> Run | Group:
    from gymnasium_solver.api.groups import find

    return find(run, _path(runs_dir)) if isinstance(run, str) else run


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
