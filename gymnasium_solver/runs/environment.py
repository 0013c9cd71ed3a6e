"""Where a run took place: enough to tell two runs apart and to repeat one."""

from __future__ import annotations

import os
import platform
import socket
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from gymnasium_solver.processes import finish, start

PACKAGES = (
    "gymnasium-solver", "jax", "jaxlib", "numpy", "optax", "gymnasium", "envpool", "pydantic", "safetensors",
    "ale-py", "mujoco", "box2d", "minigrid",
)  # fmt: skip
GIT_SECONDS = 1.0


def environment_record(command: list[str]) -> dict[str, Any]:
    return {
        "command": command,
        "directory": str(Path.cwd()),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": _versions(),
        "git": _git_state(),
    }


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _git_state() -> dict[str, Any] | None:
    """Commit of the working directory, and whether tracked files differ from it; None outside a repository."""
    try:
        command = ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
        # Looking must not disturb the user's own git.
        said, _, code = finish(start(command, environment={"GIT_OPTIONAL_LOCKS": "0"}), GIT_SECONDS)
    except OSError:  # no git, or it takes too long
        return None
    if code:
        return None
    lines = said.splitlines()
    branch = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    return {
        "commit": branch.get("branch.oid"),
        "branch": branch.get("branch.head"),
        "dirty": any(not line.startswith("# ") for line in lines),
    }
