"""Runs, groups and paths, as the verbs are given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.reader import Run

LONGEST_SHOWN = 60
SHOWN = 5  # names in an error


def load_run(run: Run | Group | str | Path, *, runs_dir: str | Path | None = None) -> Run:
    """The run with this id, unique prefix of one, or path; `@last` is the newest."""
    from gymnasium_solver.runs.reader import Run

    found = find_either(run, runs_dir)
    if isinstance(found, Run):
        return found
    members = [member.run_id for member in found.runs()]
    these = f"name one of them: {', '.join(members[:SHOWN])}" if members else "none of them has begun yet"
    raise NotFoundError(f"{found.group_id} is not one run but a group of them; {these}{', …' * (len(members) > SHOWN)}")


def telling_run(run: Run | Group | str | Path, *, runs_dir: str | Path | None = None) -> Run:
    """The run that says what is wrong: of a group of seeds the one that did worst, of an experiment one of the
    configuration it chose."""
    from gymnasium_solver.api.groups import Group

    found = find_either(run, runs_dir)
    if not isinstance(found, Group):
        return found
    if found.is_experiment:
        from gymnasium_solver.api.solutions import solution_of

        return solution_of(found)
    if not (members := found.runs()):
        raise NotFoundError(f"no run of the group {found.group_id} has begun yet; wait for one")
    return min(members, key=_success)


def any_run(ref: str, runs_dir: Path | None = None) -> tuple[Run, str]:
    """The telling run of what is named, or a run of another library, imported; and what is to be said of that."""
    from gymnasium_solver.api.groups import Group, find
    from gymnasium_solver.runs import layout
    from gymnasium_solver.runs.foreign import import_run
    from gymnasium_solver.runs.reader import Run

    try:
        found = find(ref, runs_dir)
    except NotFoundError:
        path = Path(ref).expanduser()
        if not ref.strip() or not _exists(path):
            raise
        if (path / layout.METRICS).is_file() and (path / layout.STATUS).is_file():  # ours, its config lost
            return Run(path), ""
        imported = import_run(path, runs_dir)
        return imported, f"imported {path} as {imported.run_id}"
    if not isinstance(found, Group):
        return found, ""
    chosen = telling_run(found)
    what = "of the configuration it chose" if found.is_experiment else "the seed that did worst"
    return chosen, f"{found.group_id} is a group; this is {chosen.run_id}, {what}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no name that a file could have
        return False


def _success(run: Run) -> tuple[bool, float]:
    from gymnasium_solver.runs.report import final_reward

    summary = run.summary()
    reward = final_reward(summary)
    return not summary["error"], float("-inf") if reward is None else reward


def find_either(run: Run | Group | str | Path, runs_dir: str | Path | None) -> Run | Group:
    from gymnasium_solver.api.groups import Group, find
    from gymnasium_solver.runs.reader import Run

    return run if isinstance(run, Run | Group) else find(_named(run), as_path(runs_dir))


def require_name(ref: Any) -> None:
    """What is to be trained is given by name: other processes have to find it too."""
    if isinstance(ref, str):
        return
    if not isinstance(ref, type):
        raise ConfigError(f"{_shown(ref)} is no ENV:VARIANT; give it as a string, for example 'CartPole-v1:ppo'")
    module = ref.__module__ if ref.__module__ != "__main__" else "my_module"
    remedy = f"write {f'{module}:{ref.__qualname__}:ppo'!r}"
    if module != ref.__module__:
        remedy = f"put it into a module, for example {module}.py, and {remedy}"
    raise ConfigError(f"the class {ref.__qualname__} has to be named, so that worker processes find it: {remedy}")


def require_episodes(episodes: int) -> None:
    if episodes < 1:
        raise ConfigError(f"episodes: {episodes} is out of range; the nearest valid value is 1")


def runs_directory(explicit: str | Path | None = None) -> Path:
    """Where runs are kept, unless it is said otherwise."""
    from gymnasium_solver.runs.reader import default_runs_dir

    return default_runs_dir(as_path(explicit))


def as_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _named(run: Any) -> str:
    if isinstance(run, str | Path):
        return str(run)
    raise ConfigError(f"{_shown(run)} is no run; give a run, its id, the beginning of one, a path, or '@last'")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
