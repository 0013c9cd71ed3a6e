"""A run, shown to diagnosis with more or less of it left: the only place that calls the engine."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gymnasium_solver.runs import layout

# What can be known of a run from its metrics alone: which environment and algorithm, and what was aimed at.
_IDENTITY = ("env_id", "algo_id", "seed", "max_env_steps", "reward_threshold")

# Metrics and log; + config; + checkpoints; and all of it of an environment that nothing is known about.
INFORMATION = ("metrics", "config", "all", "unfamiliar")
_UNFAMILIAR = "Unfamiliar-v0"


def diagnose(run: Path, information: str = "all", share: float = 1.0) -> dict[str, Any]:
    """The diagnosis of a run from this much information, and from this share of its epochs."""
    from gymnasium_solver import api

    with view(run, information, share) as path:
        document: dict[str, Any] = api.diagnose(path)
    return document


@contextmanager
def view(run: Path, information: str, share: float) -> Iterator[Path]:
    """A copy to look at, so that nothing is written into the run and nothing else of it is seen."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / run.name
        path.mkdir()
        for name in (layout.LOG, layout.STATUS, layout.ENVIRONMENT):
            if (run / name).exists():
                shutil.copy(run / name, path / name)
        if information in ("all", "unfamiliar") and share == 1.0 and (run / layout.CHECKPOINTS).is_dir():
            (path / layout.CHECKPOINTS).symlink_to(run / layout.CHECKPOINTS)
        config = layout.read_json(run / layout.CONFIG)
        if information == "metrics":
            config = {name: config[name] for name in _IDENTITY}
        elif information == "unfamiliar":
            config["env_id"] = _UNFAMILIAR
        (path / layout.CONFIG).write_text(json.dumps(config), encoding="utf-8")
        if (run / layout.METRICS).exists():
            _copy_metrics(run / layout.METRICS, path / layout.METRICS, information != "metrics", share)
        if share < 1.0:
            _unfinish(path)
        yield path


def _copy_metrics(source: Path, target: Path, with_values_in_force: bool, share: float) -> None:
    with source.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    header, body = rows[0], rows[1:]
    kept = [i for i, name in enumerate(header) if with_values_in_force or not name.startswith("train/hp/")]
    body = body[: max(1, round(share * len(body)))]
    with target.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([row[i] for i in kept if i < len(row)] for row in [header, *body])


def _unfinish(path: Path) -> None:
    """Cut short, a run says neither how it ended nor what it reached."""
    status = layout.read_json(path / layout.STATUS) | {"status": "interrupted"}
    for name in ("solved", "error", "ended_at"):
        status.pop(name, None)
    (path / layout.STATUS).write_text(json.dumps(status), encoding="utf-8")
    log = path / layout.LOG
    if log.exists():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        log.write_text("".join(line for line in lines[:3]), encoding="utf-8")
