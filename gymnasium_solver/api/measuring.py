"""The verbs that measure, as Python functions; the package has them beside the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.lookup import as_path, find_either
from gymnasium_solver.api.request import written

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run


def score(
    run: Run | Group | str,
    *,
    episodes: int = 100,
    seeds: int | None = None,
    transfer: Sequence[str] = (),
    noise: float = 0.2,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    trust: bool = False,
) -> dict[str, Any]:
    """The score card of a solution, over the seeds beside it: efficiency, success, spread, transfer, robustness.

    Of a group of seeds it is about all of them; of an experiment, about all seeds of the configuration it chose.
    `trust`: code that a run made elsewhere names may be imported.
    """
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.api.solutions import chosen_by_seeds, solution_of
    from gymnasium_solver.runs.reader import checkpoint_ref, split_checkpoint_ref
    from gymnasium_solver.verify.scoring.card import score

    name, checkpoint = split_checkpoint_ref(run) if isinstance(run, str) else (run, None)
    found = find_either(name, runs_dir)
    chosen = solution_of(found) if isinstance(found, Group) else found
    chosen.admit_code(trust=trust)
    path = str(chosen.path)
    ref = path if checkpoint is None else checkpoint_ref(path, checkpoint)
    document = score(
        ref, episodes=episodes, seeds=seeds, transfer=transfer, noise=noise, runs_dir=as_path(runs_dir), say=say
    )
    document["notes"] += [caveat] if (caveat := chosen_by_seeds(found)) else []
    return document


def noise_scale(
    run: Run | str,
    *,
    checkpoint: str | None = None,
    rows: int | None = None,
    runs_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    trust: bool = False,
) -> dict[str, Any]:
    """How noisy a run's gradients are, and the batch size that suggests; kept in the run as noise_scale.json. `trust`:
    code that a run made elsewhere names may be imported."""
    from gymnasium_solver.api.inspecting import load_checkpoint
    from gymnasium_solver.verify.noise_scale import measure

    ref = run if isinstance(run, str) else str(run.path)
    if trust:
        load_checkpoint(run, checkpoint, runs_dir=runs_dir)[0].admit_code(trust=True)
    return measure(ref, checkpoint=checkpoint, rows=rows, runs_dir=as_path(runs_dir), say=say)


def profile(
    ref: str,
    *,
    overrides: Sequence[str] = (),
    seconds: float = 10.0,
    out: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    **fields: Any,
) -> dict[str, Any]:
    """Where the time of training `ENV:VARIANT` goes, what limits it, and which n_envs, engine and number of threads are
    fastest here: `phases`, `limit`, `limits`, `work`, `trials`, `final`, `recommendation`, `verdict`, `threads`. No run
    is left behind. Config fields
    are changed by name (`n_envs=32`) or by `overrides` written FIELD=VALUE."""
    from gymnasium_solver.verify.profiling.profile import profile

    return profile(ref, (*written(fields), *overrides), seconds=seconds, out=as_path(out), say=say)


def validate(
    algorithm: str = "ppo", function: str | Callable[..., Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Our PPO, or a loss or GAE function (`module:function`, `file.py:function`, or the function itself), against
    reference values, gradients and the published list of implementation details; options `kind`, `mapping`,
    `framework`, `maximize`. Keys: `compliant`, `verdict`, `checks`, `mistakes`, `details` and more."""
    from gymnasium_solver import trust
    from gymnasium_solver.verify.compliance import validate

    if isinstance(function, str):
        trust.allow([function])
    return validate(algorithm, function, **options)


def regress(
    suite: str = "quick", *, baseline: str | Path | None = None, runs_dir: str | Path | None = None, **options: Any
) -> dict[str, Any]:
    """Convergence of a suite against a stored baseline, one verdict per config; options: seeds, jobs, update, say."""
    from gymnasium_solver.verify.regression.regress import regress

    return regress(suite, baseline=as_path(baseline), runs_dir=as_path(runs_dir), **options)
