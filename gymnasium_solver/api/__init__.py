"""The verbs of `gsolve` as Python functions. JAX is imported by those that need it, when they are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.configs import resolved
from gymnasium_solver.api.experiments import Options, compare, insights, optimize, solve, sweep, verify
from gymnasium_solver.api.inspecting import inspection, load_checkpoint
from gymnasium_solver.api.lookup import as_path, find_either, load_run, require_episodes, require_name, telling_run
from gymnasium_solver.api.measuring import noise_scale, profile, regress, score, validate
from gymnasium_solver.api.reading import checkpoints, logs, runs, show, status

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.api.playback import Episode
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.train.judge import Evaluation
    from gymnasium_solver.train.session import Event

__all__ = [
    "Options",
    "checkpoints",
    "compare",
    "config",
    "diagnose",
    "envs",
    "evaluate",
    "import_run",
    "insights",
    "inspect",
    "load_run",
    "logs",
    "noise_scale",
    "optimize",
    "play",
    "probe",
    "profile",
    "regress",
    "report",
    "resume",
    "runs",
    "score",
    "show",
    "solve",
    "start",
    "status",
    "stop",
    "sweep",
    "train",
    "train_seeds",
    "validate",
    "verify",
]


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
    from gymnasium_solver.train.session import train

    require_name(ref)
    config = load_config(ref, overrides, asked=True)
    return train(config, runs_dir=as_path(runs_dir), init_from=init_from, on_event=on_event)


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
    """Train this many seeds side by side, `jobs` at a time (one per core), and return their runs, failed ones too.

    Each has a process of its own; seeds count up from the config's. Raises if not a single run came about.
    """
    from gymnasium_solver.api.request import Request, written
    from gymnasium_solver.api.seeds import SeedJob, train_jobs
    from gymnasium_solver.errors import SolverError
    from gymnasium_solver.runs.reader import Run

    first = config(ref, **overrides).seed
    request = Request(ref, written(overrides), init_from=init_from, runs_dir=as_path(runs_dir))

    def forward(_: SeedJob, kind: Any, run: str, data: dict[str, Any]) -> None:
        from gymnasium_solver.train.session import Event

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
    from gymnasium_solver.api.configs import requires_import
    from gymnasium_solver.api.request import Request, written

    require_name(ref)
    request = Request(ref, written(overrides), init_from=init_from, runs_dir=as_path(runs_dir))
    if not requires_import(ref):  # else the process that trains will say what is wrong with it
        request.config()
    return start_training(request, seeds=seeds, jobs=jobs)


def resume(
    run: Run | str,
    *,
    runs_dir: str | Path | None = None,
    on_event: Callable[[Event], None] | None = None,
    trust: bool = False,
    **overrides: Any,
) -> Run:
    """Continue a stopped run from its last checkpoint; `overrides` such as `max_env_steps` give it more to do. `trust`:
    code that a run made elsewhere names may be imported."""
    from gymnasium_solver.train.session import train

    run = load_run(run, runs_dir=runs_dir)
    run.admit_code(trust=trust)
    return train(resume=str(run.path), runs_dir=run.path.parent, overrides=overrides, on_event=on_event)


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

    found = find_either(run, runs_dir)
    was_running = status(found)["status"] == "running"
    if isinstance(found, Run):
        stop_run(found, timeout, say)
    else:
        stop_group(found, timeout, say)
    return {**status(found), "was_running": was_running}


def evaluate(
    run: Run | str,
    *,
    checkpoint: str | None = None,
    episodes: int = 20,
    deterministic: bool = True,
    seed: int | None = None,
    runs_dir: str | Path | None = None,
    trust: bool = False,
) -> Evaluation:
    """Play whole episodes with a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`): their returns and lengths. `trust`:
    code that a run made elsewhere names may be imported."""
    from gymnasium_solver.train.judge import evaluate_checkpoint

    require_episodes(episodes)
    found, name = load_checkpoint(run, checkpoint, runs_dir=runs_dir)
    found.admit_code(trust=trust)
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
    trust: bool = False,
) -> list[Episode]:
    """Watch a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`) act, in a window or as an .mp4 or .gif. `trust`: code that
    a run made elsewhere names may be imported."""
    from gymnasium_solver.api.playback import play_episodes

    require_episodes(episodes)
    found, name = load_checkpoint(run, runs_dir=runs_dir)
    found.admit_code(trust=trust)
    return play_episodes(
        found, name, episodes=episodes, video=as_path(video), fps=fps, deterministic=deterministic, seed=seed
    )


def config(ref: str, **overrides: Any) -> Config:
    """The fully resolved configuration of `ENV:VARIANT`."""
    return resolved(ref, overrides)


def envs(filter: str = "") -> list[tuple[str, str, Path]]:
    """What is shipped, and what is in ./config/environments: (env_id, variant, file)."""
    from gymnasium_solver.config.load import shipped

    return shipped(filter)


def report(run: Run | Group | str, *, runs_dir: str | Path | None = None) -> Path:
    """Write report.md (of a run with its plots, of a group about all its seeds) again, and return its path."""
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.runs.report import write_report

    found = find_either(run, runs_dir)
    return write_report(found.path) if isinstance(found, Run) else found.write_report()


def import_run(path: str | Path, *, runs_dir: str | Path | None = None, **options: Any) -> Run:
    """Bring a run of another library into the runs directory; `source`, `mapping`, `env_id`, `algo_id` as options."""
    from gymnasium_solver.runs.foreign import import_run

    return import_run(Path(path), as_path(runs_dir), **options)


def inspect(run: Run | str, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """What is in a checkpoint (`RUN`, `RUN/@best`, `RUN/epoch=N`, or a file) and what is wrong with it."""
    return inspection(run, runs_dir).to_dict()


def diagnose(run: Run | Group | str | Path, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """What is wrong with a run, why, and what to change: `summary`, `metrics`, `bottlenecks`, `recommendations`,
    `next_steps`, `outlook`, `missing`. Of a group it is about the seed that did worst. Nothing is written."""
    from gymnasium_solver.recommend.diagnosis import diagnose_run

    found = telling_run(run, runs_dir=runs_dir)
    found.admit_code()  # the commands it recommends depend on what the environment looks like
    return diagnose_run(found)


def probe(
    run: Run | str,
    *,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    trust: bool = False,
) -> dict[str, Any]:
    """The diagnosis after the cheapest experiments that could settle what is ambiguous; `probes` holds their outcomes.

    The run's environment is built for it, so code that its configuration names is imported: of a run that was made
    elsewhere only with `trust`.
    """
    from gymnasium_solver.diagnose.engine import diagnose
    from gymnasium_solver.diagnose.readings import read
    from gymnasium_solver.recommend.diagnosis import document
    from gymnasium_solver.verify.probing import investigation

    loaded = load_run(run, runs_dir=runs_dir)
    loaded.admit_code(trust=trust)
    found = diagnose(read(loaded))
    config = investigation.config_of(found)
    planned = investigation.plan(found, config, say)
    if config is None or not planned:
        say("no experiment would change the ranking; this is the diagnosis as it stands")
        return document(found, loaded) | {"probes": []}
    found, outcomes = investigation.investigate(found, config, planned, say)
    return document(found, loaded) | {"probes": investigation.as_document(outcomes)}
