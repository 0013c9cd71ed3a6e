"""A fresh process, watched from outside: when each line of its output came, what it exited with, how big it grew."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Line:
    """A JSON object that the process printed, and the seconds from process start to its arrival here."""

    seconds: float
    data: dict[str, Any]


@dataclass(frozen=True)
class Finished:
    lines: list[Line]
    seconds: float
    exit_code: int
    peak_mb: float
    errors: str  # the end of what was not JSON on the watched streams

    @property
    def last(self) -> Line | None:
        return self.lines[-1] if self.lines else None


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    timeout: float,
    on_line: Callable[[int, Line], None] | None = None,
) -> Finished:
    """Run the command to its end, or kill it at the timeout. `on_line` gets the process id and each JSON line."""
    # A cache that the caller's shell has set would hide the compilation that is to be measured.
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=inherited | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # to end it together with its workers, which hold its output open
    )
    watchdog = threading.Timer(timeout, os.killpg, (process.pid, signal.SIGKILL))
    watchdog.start()
    lines: list[Line] = []
    other: deque[str] = deque(maxlen=20)
    assert process.stdout is not None
    try:
        for text in process.stdout:
            line = _json_line(time.perf_counter() - started, text)
            if line is None:
                other.append(text)
                continue
            lines.append(line)
            if on_line is not None:
                on_line(process.pid, line)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        # Before the process is waited for: until then its id cannot have passed to another one.
        watchdog.cancel()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is bytes on macOS, kilobytes elsewhere
    return Finished(lines, seconds, process.returncode, usage.ru_maxrss / unit, "".join(other))


def resident_mb(pid: int) -> float:
    """The memory the process occupies now."""
    output = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return int(output or 0) / 2**10


def _json_line(seconds: float, text: str) -> Line | None:
    try:
        data = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return None
    return Line(seconds, data) if isinstance(data, dict) else None
