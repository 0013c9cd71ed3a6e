"""Is the process that wrote a status still that process?"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def identity(pid: int) -> str | None:
    """Boot and start time: a process id alone is reused, within hours or at the next start of a container.

    None where the system does not tell (anything but Linux) or the process is gone.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{_stat(pid)[19]}"
    except (OSError, IndexError):
        return None


def is_alive(pid: int, known_as: str | None = None) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # somebody else's process: it exists
    except (OSError, OverflowError):
        return False
    with contextlib.suppress(OSError, IndexError):
        if _stat(pid)[0] == "Z":  # dead, but its parent has not collected it
            return False
    now = identity(pid)
    return known_as is None or now is None or now == known_as


def _stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the state on; the command name before them may contain spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
