"""Whether a replay fits, asked before training."""

from __future__ import annotations

from pathlib import Path

from gymnasium_solver.data.layout import Layout
from gymnasium_solver.errors import ConfigError

_KEEP_FREE = 0.1  # of what is available: networks, compiled programs, environments


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
