"""A sweep by its directory, in the form of an experiment's record. Optuna keeps its trials in a file there, which is
only read: a server must not change what it shows, and a sweep may be at work on it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from gymnasium_solver.api.configs import requires_import
from gymnasium_solver.api.groups import STUDY
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.plain import plain
from gymnasium_solver.processes import at_work
from gymnasium_solver.runs import layout

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.verify.sweeping.studies import Study

PATIENCE = 10.0  # seconds, for a database that is being written
KEPT = 64  # sweeps that stay read until their files change
WINNERS = ("best.yaml", "candidate.yaml")
SHOWN = ("objective", "threshold", "counts", "base", "best", "importance", "confirmation")


class _Sweep(NamedTuple):
    record: dict[str, Any]
    rows: list[dict[str, Any]]
    owners: list[dict[str, Any]]  # processes that trained its trials, the last to begin one first
    is_open: bool  # there is a trial that has not ended
    changed: float  # Unix time at which a trial last began or ended


def sweep_record(path: Path) -> dict[str, Any]:
    """`asked`, `counts` of trials by outcome, `best`, `importance`, `confirmation`, `verdict` …; `error` where it
    cannot be read."""
    record = {"experiment": path.name, "kind": "sweep"}
    try:
        found = _read(path, _version(path))
    except SolverError as error:
        return {**record, "status": "unknown", "error": str(error)}
    return {**record, **found.record, **_standing(path, found)}


def sweep_trials(path: Path) -> list[dict[str, Any]]:
    """Each with its `outcome`, `value`, what it `set`, its `runs`, and more; none where the study cannot be read."""
    with contextlib.suppress(SolverError):
        return _read(path, _version(path)).rows
    return []


def _standing(path: Path, found: _Sweep) -> dict[str, Any]:
    """A study does not say whether anyone is at work on it. The report is written last of all; before that, who began
    the last trials is at work or was killed: a group's leader tells."""
    try:
        if (path / layout.REPORT).stat().st_mtime >= found.changed:
            return {"status": "completed"}
    except OSError:
        pass
    failed = [row["error"] for row in found.rows if row["outcome"] == "failed"]
    if failed and not found.is_open and "complete" not in found.record["counts"]:
        return {"status": "failed", "error": failed[-1]}
    alive = (owner for owner in found.owners if at_work(owner))
    return {"status": "running", **next(alive, found.owners[0] if found.owners else {})}


def _version(path: Path) -> tuple[Any, ...]:
    """Changes whenever the study does: what is new is in the file beside it at first."""
    return tuple(_state(path / name) for name in (STUDY, f"{STUDY}-wal", *WINNERS))


def _state(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


@lru_cache(KEPT)
def _read(path: Path, _: tuple[Any, ...]) -> _Sweep:
    from gymnasium_solver.verify.sweeping import report
    from gymnasium_solver.verify.sweeping.studies import Aim

    with _opened(path) as study:
        trials = study.trials
        base, is_exact = _base(study, path)
        aim = Aim(study.objective, study.threshold, base.budget)
        document = report.document_of(study, aim, base, study.optuna.user_attrs.get("confirmation"))
        if document["best"] and not is_exact:
            kept = next((text for name in WINNERS if (text := _text(path / name))), None)
            document["best"] |= {"yaml": kept, "command": None}
        spans = [(trial.datetime_start, trial.datetime_complete) for trial in trials]
        moments = [moment.timestamp() for span in spans for moment in span if moment is not None]
        owners = [trial.user_attrs.get("owner") for trial in reversed(trials)]
        return _Sweep(
            record=plain(_record(study, base, document) | _times(spans, moments)),
            rows=plain(document["trials"]),
            owners=[owner for owner in owners if isinstance(owner, dict) and isinstance(owner.get("pid"), int)],
            is_open=any(trial.state.name == "RUNNING" for trial in trials),
            changed=max(moments, default=0.0),
        )


def _record(study: Study, base: Config, document: Mapping[str, Any]) -> dict[str, Any]:
    from gymnasium_solver.verify.objective import UNITS
    from gymnasium_solver.verify.sweeping import report

    best, confirmation = document["best"], document["confirmation"] or {}
    fresh = [value for side in ("base", "best") for value in confirmation.get(side, ())]
    return {
        "asked": {"source": study.ref, "overrides": list(study.overrides), "seeds": study.seeds},
        "source": study.ref,
        "env_id": base.env_id,
        "algo_id": base.algo_id,
        "aim": UNITS[study.objective],
        "verdict": " ".join(report.summary(document)[1:]),
        "winner": f"trial {best['number']}" if best and best["set"] else None,
        "trainings": sum(len(row["runs"]) for row in document["trials"]) + len(fresh),
        **{name: document[name] for name in SHOWN},
    }


def _times(spans: Sequence[tuple[Any, Any]], moments: Sequence[float]) -> dict[str, Any]:
    """`duration_s` counts when a trial was under way: several may be at once, and a sweep that goes on has rested."""
    total, latest = 0.0, None
    for began, ended in sorted((began, ended) for began, ended in spans if began and ended):
        start = began if latest is None else max(began, latest)
        total += max((ended - start).total_seconds(), 0.0)
        latest = ended if latest is None else max(latest, ended)
    return {"started_at": layout.iso_utc(min(moments)) if moments else None, "duration_s": total}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Study]:
    from gymnasium_solver.verify.sweeping.storage import reaching, require_optuna
    from gymnasium_solver.verify.sweeping.studies import SETTINGS, Study

    optuna = require_optuna()
    from sqlalchemy.pool import NullPool

    with reaching(str(path)):
        # A connection of our own, because addresses of databases say "read only" each in another way.
        storage = optuna.storages.RDBStorage(
            "sqlite://",
            engine_kwargs={"creator": lambda: _connected(path), "poolclass": NullPool},
            skip_compatibility_check=True,
            skip_table_creation=True,
        )
        try:
            names = [study.study_name for study in storage.get_all_studies()]
            name = path.name if path.name in names else names[0] if names else ""  # the directory may have been moved
            found = optuna.load_study(study_name=name, storage=storage) if name else None
            if not found or not found.user_attrs.get(SETTINGS):
                raise ConfigError(f"the study in {path} was not created by gsolve sweep, so it cannot be shown")
            yield Study.of(found, path.name, path)
        finally:
            storage.remove_session()
            storage.engine.dispose()


def _connected(path: Path) -> sqlite3.Connection:
    """Without a log beside it nobody has it open, and it is read as it is; to read along with others, SQLite needs
    their log."""
    how = "mode=ro" if (path / f"{STUDY}-wal").exists() else "immutable=1"
    place = quote(str(path.resolve() / STUDY))
    return sqlite3.connect(f"file:{place}?{how}", uri=True, check_same_thread=False, timeout=PATIENCE)


def _base(study: Study, path: Path) -> tuple[Config, bool]:
    """What the search started from. Where only a file that is gone, or code of the user's, would tell: what one of its
    trials was trained with."""
    from gymnasium_solver.config.load import build_config, load_config

    if not requires_import(study.ref):
        with contextlib.suppress(SolverError):
            return load_config(study.ref, study.overrides), True
    for run_id in (Path(name).name for trial in study.trials for name in trial.user_attrs.get("runs", ())):
        if fields := layout.read_json(path.parent / run_id / layout.CONFIG):
            with contextlib.suppress(SolverError):
                return build_config(fields, run_id), False
    raise NotFoundError(f"the configuration {study.ref} that the sweep {path.name} is about is not known here any more")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
