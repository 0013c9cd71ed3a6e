"""A foreign run as a run directory of ours. Importing it again refreshes the same directory."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.errors import writing
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.foreign.build import Foreign
from gymnasium_solver.runs.foreign.series import csv_chunks
from gymnasium_solver.runs.reader import Run, default_runs_dir

FRESH_SECONDS = 60.0  # a log that grew within this, short of its end, is of a run in progress


def run_id_of(foreign: Foreign) -> str:
    """The same for the same path, so that a run that goes on, or is imported twice, stays one run."""
    name = foreign.path.parent.name if foreign.path.is_file() and foreign.path.parent.name else foreign.path.stem
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "run"
    return f"imported-{foreign.library}-{name}-{_digest(foreign.path)}"


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path).encode(errors="replace")).hexdigest()[:8]


def told_before(path: Path, runs_dir: Path | None) -> dict[str, Any]:
    """What the user said of this path when it was last imported; nothing if it was not."""
    try:
        path = path.expanduser().resolve()
        found = default_runs_dir(runs_dir).glob(f"imported-*-{_digest(path)}/{layout.SOURCE}")
        newest = max(found, key=lambda file: file.stat().st_mtime, default=None)
    except (OSError, RuntimeError, ValueError):  # no path at all: who reads it will say so
        return {}
    told = layout.read_json(newest).get("told") if newest else None
    return told if isinstance(told, dict) else {}


def write_run(foreign: Foreign, runs_dir: Path | None, told: Mapping[str, Any]) -> Run:
    """`told`: what its files did not say and the user did."""
    directory = default_runs_dir(runs_dir).resolve()
    path = directory / run_id_of(foreign)
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        (path / layout.CHECKPOINTS).mkdir(exist_ok=True)
        layout.replace_file(path / layout.METRICS, csv_chunks(foreign.columns))
        layout.replace_file(path / layout.LOG, [_log(foreign).encode(errors="replace")])
        layout.write_json(path / layout.SOURCE, {**_source(foreign), "told": dict(told)})
        layout.write_json(path / layout.ENVIRONMENT, {})  # where it took place is not known; see source.json
        layout.write_json(path / layout.STATUS, _status(foreign, path.name))
        layout.write_json(path / layout.CONFIG, foreign.config)  # last: a directory without it is no run yet
    return Run(path)


def write_source(path: Path, library: str, **facts: Any) -> None:
    """source.json beside a run that another library trains: whose words its settings are."""
    lists: dict[str, Any] = {name: [] for name in ("files", "unmapped", "missing", "notes")}
    layout.write_json(path / layout.SOURCE, {"library": library, **lists, "hyperparameters": {}, "fields": {}, **facts})


def _source(foreign: Foreign) -> dict[str, Any]:
    return {
        "library": foreign.library,
        "format": foreign.format,
        "path": str(foreign.path),
        "files": [str(path) for path in foreign.files],
        "hyperparameters": foreign.hyperparameters,
        "fields": foreign.fields,
        "metrics": foreign.mapped,
        "unmapped": foreign.unmapped,
        "missing": foreign.missing,
        "notes": foreign.notes,
        "system": foreign.system,
    }


def _status(foreign: Foreign, run_id: str) -> dict[str, Any]:
    now = time.time()
    changed = max((path.stat().st_mtime for path in foreign.files if path.is_file()), default=now)
    started = foreign.started if foreign.started is not None else changed - (foreign.seconds or 0.0)
    if foreign.error is not None:
        status = "failed"
    elif foreign.reached_its_end:
        status = "completed"
    else:
        status = "running" if now - changed < FRESH_SECONDS else "interrupted"
    return {
        "status": status,
        "run_id": run_id,
        "started_at": layout.iso_utc(started),
        "updated_at": layout.iso_utc(changed),
        "heartbeat": changed,
        "elapsed_s": foreign.seconds,
        "env_steps": foreign.env_steps,
        "threshold": foreign.config.get("reward_threshold"),
        "imported_from": foreign.library,
        **({"error": foreign.error} if foreign.error is not None else {}),
    }


def _log(foreign: Foreign) -> str:
    now = layout.iso_utc(time.time())
    lines = [f"{now} INFO imported from {foreign.path} ({foreign.library}, {foreign.format})"]
    lines += [f"{now} WARNING import: {note}" for note in foreign.notes]
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"
