"""The run directory: what its files are called, what a run id looks like, and how a file is replaced safely."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gymnasium_solver.limits import parse_json, read_bytes, read_end

CONFIG = "config.json"
METRICS = "metrics.csv"
STATUS = "status.json"
ENVIRONMENT = "environment.json"
LOG = "run.log"
REPORT = "report.md"
SOURCE = "source.json"  # of a run that another library trained
DIAGNOSIS = "diagnosis.json"
DIAGNOSIS_TEXT = "diagnosis.md"
NOISE_SCALE = "noise_scale.json"  # of its gradients, where that was measured
CHECKPOINTS = "checkpoints"
PLOTS = "plots"
LAST_RUN = "@last"
EXPERIMENT, TRIALS = "experiment.json", "trials.jsonl"  # of an experiment, in a directory beside its runs
STAMP = "%Y%m%d-%H%M%S"  # that ids begin with

STATUSES = ("running", "completed", "failed", "diverged", "interrupted")

EPOCHS = "train/cnt/epochs"


def iso_utc(moment: float) -> str:
    """Unix time as sortable text, e.g. 2025-01-31T12:00:00.123Z."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(kind: str, moment: float | None = None) -> str:
    """Of a run, or of a directory beside the runs: sorted by when they were begun."""
    begun = datetime.now(UTC) if moment is None else datetime.fromtimestamp(moment, UTC)
    return f"{begun.strftime(STAMP)}-{kind}-{secrets.token_hex(2)}"


def new_run_id(env_id: str, algo_id: str, seed: int, moment: float) -> str:
    env = re.sub(r"[^A-Za-z0-9._-]+", "-", env_id).strip("-.") or "env"
    return new_id(f"{env}-{algo_id}-s{seed}", moment)


def replace_file(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Readers see the old content or the new, never a mixture, even after a power failure."""
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def remove_temporaries(directory: Path) -> None:
    """What a kill between writing and renaming left behind."""
    for leftover in directory.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """A rename is on disk only once its directory is; file systems that cannot do this are left alone."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    replace_file(path, [to_json(value, indent=2).encode(), b"\n"])


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, default=_plain)


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; empty if the file is missing or damaged."""
    try:
        value = parse_json(read_bytes(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a .jsonl file; a line that a kill cut short is none."""
    found = []
    with contextlib.suppress(OSError):
        for line in read_end(path).splitlines():
            with contextlib.suppress(ValueError):
                found.append(parse_json(line))
    return [value for value in found if isinstance(value, dict)]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
