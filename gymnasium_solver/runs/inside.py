"""Whether what is found in a runs directory is really in it: servers hand out nothing that a link leads to outside."""

from __future__ import annotations

from pathlib import Path


def is_inside(runs_dir: Path, path: Path) -> bool:
    """A directory of its own in the runs directory, or a file in one, with every link on the way followed."""
    try:
        return path.resolve().is_relative_to(runs_dir.resolve())
    except (OSError, ValueError, RuntimeError):  # a name too long, or links in a circle
        return False


def leads_outside(directory: Path) -> list[str]:
    """Names of files in a run's or an experiment's directory that are links out of it."""
    root = directory.resolve()
    try:
        links = [entry for entry in root.rglob("*") if entry.is_symlink()]
    except OSError:
        return []
    return sorted(entry.relative_to(root).as_posix() for entry in links if not is_inside(root, entry))
