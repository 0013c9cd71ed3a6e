"""Whether a replay fits, asked before training."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gymnasium_solver.data.layout import Layout
from gymnasium_solver.errors import ConfigError

_KEEP_FREE = 0.1  # of what is available: networks, compiled programs, environments
_SHARE = "GSOLVE_MEMORY_SHARE"  # bytes/trainings: what each of several at a time may take


def available_bytes() -> int | None:
    """What this process may still allocate: the machine's free memory, or less in a container; None if not known."""
    limits = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        limits.append(int(lines["MemAvailable"].split()[0]) * 1024)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and (text := limit.read_text().strip()).isdigit():
        limits.append(int(text) - int(used.read_text()))
    return min(limits) if limits else None


def shared_by(trainings: int) -> dict[str, str]:
    """The environment of processes that train at the same time: each may take its share of what is available now.

    Told once, by whoever starts them: a replay takes its memory as it fills, so that none of them sees what the others
    will need.
    """
    available, _ = host_memory()
    return {} if available is None or trainings == 1 else {_SHARE: f"{available // trainings}/{trainings}"}


def host_memory() -> tuple[int | None, str]:
    """Bytes that a training may take, and whose they are."""
    available, share = available_bytes(), re.fullmatch(r"(\d+)/(\d+)", os.environ.get(_SHARE, ""))
    if share is None or (available is not None and available < int(share[1])):
        return available, "this machine"
    return int(share[1]), f"each of {share[2]} trainings at a time"


def require_memory(layout: Layout, available: int | None, where: str) -> None:
    """ConfigError if the replay would not fit into that many bytes."""
    if available is None or layout.nbytes <= available * (1 - _KEEP_FREE):
        return
    fits = int(layout.rows * layout.n_envs * available * (1 - _KEEP_FREE) / layout.nbytes)
    digits = max(0, len(str(fits)) - 2)
    raise ConfigError(
        f"buffer_size: {layout.rows * layout.n_envs} transitions take {describe(layout.nbytes)}, and {where} has "
        f"{describe(available)} free; use at most {fits // 10**digits * 10**digits}"
    )


def describe(nbytes: int) -> str:
    return f"{nbytes / 1e9:.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.0f} MB"
