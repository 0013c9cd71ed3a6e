"""An exception in an environment as the fault to report: one sentence with the place in the user's code."""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path

import gymnasium

from gymnasium_solver.errors import EnvironmentFault

_OURS = tuple(str(Path(file).parents[depth]) + os.sep for file, depth in ((__file__, 1), (gymnasium.__file__, 0)))
_INSTALLED = tuple(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "purelib", "platlib"))


def environment_fault(what: str, error: Exception) -> EnvironmentFault:
    """The stack trace is a note of the fault: unlike its cause, a note comes along from a worker process."""
    place = place_of(error)
    fault = EnvironmentFault(f"{what}: {type(error).__name__}: {error}" + (f" (at {place})" if place else ""))
    fault.add_note("".join(traceback.format_exception(error)).rstrip())
    return fault


def place_of(error: Exception) -> str:
    """file:line of the innermost frame that the user wrote; else of the innermost of an installed environment."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    own = [frame for frame in frames if not frame.filename.startswith((*_INSTALLED, "<"))]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    return f"{min(frame.filename, os.path.relpath(frame.filename), key=len)}:{frame.lineno}"
