"""What a server hands out of its runs directory: by name and never by path, and no file that a link leads to outside.

Every server looks things up here, so that none of them is less careful than the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gymnasium_solver.api.groups import EXPERIMENT, MARKS, STUDY, Group, find
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.inside import is_inside, leads_outside
from gymnasium_solver.runs.reader import Run, find_run, split_checkpoint_ref

NAME = re.compile(r"[^./\\~\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")  # or the beginning of one
LONGEST_NAME = 255  # bytes, as in most file systems


def run(ref: str, runs_dir: Path) -> Run:
    """By id, unique beginning of one, or `@last`."""
    require_name(ref, runs_dir)
    found = find_run(ref, runs_dir)
    _require_inside(found.path, runs_dir)
    return found


def run_and_checkpoint(ref: str, runs_dir: Path) -> tuple[Run, str | None]:
    """Of `RUN`, `RUN/@best` or `RUN/epoch=N`."""
    name, checkpoint = split_checkpoint_ref(ref)
    return run(name.strip(), runs_dir), checkpoint


def run_or_group(ref: str, runs_dir: Path) -> Run | Group:
    require_name(ref, runs_dir)
    place = str((runs_dir / ref).absolute())  # not a user's home, whatever it is called
    found = find(place if _is_called(ref, runs_dir) else ref, runs_dir)
    _require_inside(found.path, runs_dir)
    for member in found.runs() if isinstance(found, Group) else ():
        _require_inside(member.path, runs_dir)
    return found


def experiments(runs_dir: Path) -> list[Group]:
    """What solve, optimize, verify and sweep left beside the runs, newest first."""
    found = [path for path in runs_dir.glob(f"*/{EXPERIMENT}") if is_inside(runs_dir, path)]
    # Of a study, files beside it are read too.
    found += [path for path in runs_dir.glob(f"*/{STUDY}") if _is_inside(path.parent, runs_dir)]
    return sorted((Group(path.parent) for path in found), key=lambda group: group.stamp, reverse=True)


def experiment(ref: str, runs_dir: Path) -> Group:
    """By id, or unique beginning of one."""
    require_name(ref, runs_dir)
    exact = Group(runs_dir / ref)
    found = [exact] if exact.is_experiment else [one for one in experiments(runs_dir) if one.group_id.startswith(ref)]
    if len(found) != 1:
        how_many = f"{len(found)} experiments begin with" if found else "there is no experiment"
        raise NotFoundError(f"{how_many} {ref!r} in {runs_dir}")
    _require_inside(found[0].path, runs_dir)
    return found[0]


def is_experiment(name: str, runs_dir: Path) -> bool:
    """Whether a group is one; no more than its name is looked at."""
    return _is_called(name, runs_dir) and Group(runs_dir / name).is_experiment


@contextmanager
def still_there(run: Run, remedy: str = "") -> Iterator[None]:
    """Whatever reading stumbles over in a run that is being deleted, it is gone; the error ends with the remedy."""
    gone = NotFoundError(f"run {run.run_id} was deleted while it was read{remedy}")
    try:
        yield
    except Exception as error:
        if (run.path / layout.CONFIG).is_file():
            raise
        raise gone from error
    if not (run.path / layout.CONFIG).is_file():
        raise gone


def require_name(ref: str, runs_dir: Path) -> None:
    if not _is_short(ref) or not (NAME.fullmatch(ref) or _is_called(ref, runs_dir)):
        raise NotFoundError(f"{ref[:100]!r} is not an id; ids have no slashes, and no point in front")


def _is_short(ref: str) -> bool:
    return len(ref.encode(errors="replace")) <= LONGEST_NAME


def _is_called(ref: str, runs_dir: Path) -> bool:
    """Directories that others made may have any name; lists show them all."""
    if not ref or not _is_short(ref) or Path(ref).name != ref or ref == "..":
        return False
    return any((runs_dir / ref / name).is_file() for name in (layout.CONFIG, *MARKS))


def _require_inside(path: Path, runs_dir: Path) -> None:
    if path.resolve().parent != runs_dir.resolve():
        raise NotFoundError(f"{path.name!r} is not in {runs_dir}; only what is in it is served")
    if links := leads_outside(path):
        raise NotFoundError(
            f"{path.name} is not served: {', '.join(links[:5])} is a link out of it; put the file itself there"
        )


def _is_inside(path: Path, runs_dir: Path) -> bool:
    return is_inside(runs_dir, path) and not leads_outside(path)
