"""A run of another library, read: its curves and settings under its own names, and what they are called here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.limits import parse_json, read_end
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.runs.foreign import names
from gymnasium_solver.runs.foreign.csv_tables import read_csv
from gymnasium_solver.runs.foreign.evaluation_files import read_evaluations
from gymnasium_solver.runs.foreign.event_files import read_events
from gymnasium_solver.runs.foreign.json_tables import read_json
from gymnasium_solver.runs.foreign.locate import Files
from gymnasium_solver.runs.foreign.series import Series
from gymnasium_solver.runs.foreign.settings_files import read_model_zip, read_settings, settings_in_text
from gymnasium_solver.runs.foreign.tables import WANDB_COLUMNS, Table

# Absent, not wrong: no episode ended yet, or returns that do not vary.
ABSENT_IF_NAN = ("rew", "len", "return", "explained", "episode")


@dataclass
class Logs:
    """Everything that was found on disk, under the names it has there."""

    series: dict[str, Series] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    system: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    format: str = ""
    error: str | None = None
    started: float | None = None
    seconds: float | None = None

    def add(self, name: str, series: Series) -> None:
        """The first source of a name counts: loggers write the same values to several files."""
        if len(series):
            self.series.setdefault(name, series)


def read_logs(files: Files, source: str | None, mapping: Mapping[str, str]) -> Logs:
    logs = Logs()
    for path in files.models:
        settings = read_model_zip(path, logs.notes)
        logs.system |= {x.removeprefix("system/"): y for x, y in settings.items() if x.startswith("system/")}
        logs.settings |= {x: y for x, y in settings.items() if not x.startswith("system/")}
    for path in files.settings:
        logs.settings = read_settings(path, logs.notes) | logs.settings
    results = [path for path in files.json if path.name == "result.json"]  # has all that RLlib's progress.csv lacks
    for path in [*results, *files.csv, *(path for path in files.json if path not in results)]:
        if not logs.series:
            table = read_csv(path) if path in files.csv else read_json(path, nan_is_absent=source == "wandb")
            _add_table(logs, table, "csv" if path in files.csv else "json", mapping)
    if files.events and not logs.series:
        _add_events(logs, files.events)
    if files.monitors:
        _add_monitors(logs, files.monitors)
    for path in files.evaluations:
        for name, series in read_evaluations(path, logs.notes).items():
            logs.add(name, series)
    if files.error is not None:
        lines = read_end(files.error).decode(errors="replace").strip().splitlines()
        logs.error = lines[-1][:500] if lines else "error.txt"
    logs.format = logs.format or ("zip" if files.models else "")
    return logs


def _add_table(logs: Logs, table: Table, kind: str, mapping: Mapping[str, str]) -> None:
    logs.notes += table.notes
    logs.settings = {**table.settings, **logs.settings}
    columns = {_known_name(name): name for name in reversed(table.columns)}
    if not columns or not len(table):
        return
    wandb = any(name in columns for name in WANDB_COLUMNS) or any(name.endswith("__MIN") for name in columns)
    logs.format = logs.format or ("wandb" if wandb else kind)
    steps = _steps(logs, {name: table.columns[theirs] for name, theirs in columns.items()}, mapping)
    times = _seconds(logs, columns, table)
    for name, theirs in reversed(columns.items()):
        values, there = table.columns[theirs], table.there[theirs]
        if name.startswith("config/"):
            if there.any():
                logs.settings.setdefault(name.removeprefix("config/"), float(values[there][-1]))
        elif name not in WANDB_COLUMNS and not name.endswith(("__MIN", "__MAX")):
            if any(word in name for word in ABSENT_IF_NAN):
                there = there & ~np.isnan(values)
            series = Series(steps, values, times)
            logs.add(name, series if there.all() else series.at(there))


def _known_name(name: str) -> str:
    """Without what loggers and exporters put in front: `ray/tune/`, and W&B's name of the run."""
    return name.removeprefix("ray/tune/").rsplit(" - ", 1)[-1].strip()


def _steps(logs: Logs, columns: Mapping[str, np.ndarray], mapping: Mapping[str, str]) -> np.ndarray:
    """The x axis of a table: environment steps, else what counts something, else the number of the row."""
    wanted = mapping.get(ENV_STEPS.column)
    by_common = {names.common_name(name): name for name in columns}
    candidates = [wanted] if wanted else []
    candidates += [name for library in names.STEPS.values() for name in library]
    candidates += [by_common[name] for name in names.COMMON_STEPS if name in by_common]
    counts = [by_common[name] for name in names.COUNTS_ONLY if name in by_common]
    for name in candidates + counts:
        if name in columns and np.isfinite(columns[name]).any():
            if name in counts:
                logs.notes.append(f"no column counts environment steps; {name} is used in its place")
            steps = columns[name].copy()
            break
    else:
        logs.notes.append("no column counts environment steps; the number of the row is used in its place")
        return np.arange(1.0, len(next(iter(columns.values()))) + 1)
    known = np.isfinite(steps)
    if not known.all():  # a row without a step belongs to the last one before it
        latest = np.maximum.accumulate(np.where(known, np.arange(len(steps)), -1))
        steps = np.where(latest >= 0, steps[latest], 0.0)
    if np.any(np.diff(steps) < 0):
        logs.notes.append("steps go backwards (a run that was continued or begun again); rows were put in their order")
    return steps


def _seconds(logs: Logs, columns: Mapping[str, str], table: Table) -> np.ndarray | None:
    """How long the run took and when it began, where the table says so."""
    for name in ("time/time_elapsed", "time_total_s", "_runtime"):
        if name in columns:
            values = table.columns[columns[name]]
            logs.seconds = float(np.nanmax(values)) if np.isfinite(values).any() else None
            break
    for name in ("_timestamp", "timestamp"):
        if name in columns:
            values = table.columns[columns[name]]
            if np.isfinite(values).any() and np.nanmin(values) > 1e8:
                logs.started = float(np.nanmin(values))
                return values
    return None


def _add_events(logs: Logs, paths: list[Path]) -> None:
    events = read_events(paths)
    logs.notes += events.notes
    logs.format = "tensorboard"
    for text in events.texts.values():
        logs.settings = {**settings_in_text(text), **logs.settings}
    scalars = {name.removeprefix("ray/tune/"): series for name, series in events.scalars.items()}
    clock = next((scalars[name] for name in names.STEPS["tianshou"] if name in scalars), None)
    for name, series in scalars.items():
        if clock is not None and name.startswith(("update/", "info/")):
            series = _at_env_steps(series, clock)  # Tianshou counts updates and epochs there
        logs.add(name, series)
    if "global_step" in scalars:  # logged beside values whose own step counts something else
        logs.notes.append("global_step is logged as a value; the steps of the events were kept")
    times = [x.times for x in scalars.values() if x.times is not None and len(x.times)]
    if times:
        logs.started = min(float(x.min()) for x in times)
        logs.seconds = max(float(x.max()) for x in times) - logs.started


def _at_env_steps(series: Series, clock: Series) -> Series:
    """Values that were logged against another counter, put where the environment steps were at that moment."""
    if series.times is None or clock.times is None:
        return series
    order = np.argsort(clock.times, kind="stable")
    steps = np.interp(series.times, clock.times[order], clock.values[order])
    return Series(np.round(steps), series.values, series.times)


def _add_monitors(logs: Logs, paths: list[Path]) -> None:
    """Episodes of all environments in the order in which they ended; their lengths add up to the steps."""
    parts = []
    for path in paths:
        table = read_csv(path)
        logs.notes += table.notes
        if not {"r", "l"} <= set(table.columns):
            if not table.notes:
                logs.notes.append(f"{path.name} is no monitor file: it has no columns r and l")
            continue
        begin = _monitor_header(logs, table.comment)
        seconds = table.columns.get("t", np.zeros(len(table)))
        parts.append((table.columns["r"], table.columns["l"], np.nan_to_num(seconds) + begin))
    if not parts:
        return
    logs.format = logs.format or "monitor"
    returns, lengths, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(times, kind="stable")
    steps = np.cumsum(np.nan_to_num(lengths[order]))
    logs.add("monitor/r", Series(steps, returns[order], times[order]).finite())
    logs.add("monitor/l", Series(steps, lengths[order], times[order]).finite())
    if len(times):
        begin = logs.started or float(times.min())
        logs.started = begin if begin > 1e8 else None
        logs.seconds = logs.seconds or float(times.max()) - begin


def _monitor_header(logs: Logs, comment: str) -> float:
    try:
        header = parse_json(comment.encode() or b"{}")
        begin = float(header.get("t_start") or 0.0)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return 0.0
    if isinstance(header.get("env_id"), str):
        logs.settings.setdefault("env_id", header["env_id"])
    logs.started = min(logs.started or begin, begin) or None
    return begin


def recognise(logs: Logs, files: Files, source: str | None) -> str:
    """The library whose names these are; where they are nobody's, the format."""
    if source in names.LIBRARIES:
        return str(source)
    scores = {library: names.matches(library, logs.series) for library in names.LIBRARIES}
    best = max(scores, key=lambda library: scores[library])
    if scores[best] >= 2 or (scores[best] and scores[best] >= 0.5 * len(logs.series)):
        return best
    if files.monitors or files.models or files.evaluations:
        return "sb3"
    if any(path.name in ("params.json", "result.json") for path in files.all()):
        return "rllib"
    return source or logs.format or "csv"


def environment_named(files: Files, settings: Mapping[str, Any]) -> str | None:
    """By the settings, else by the name of the directory: `CartPole-v1__ppo__1__1700000000`, `PPO_CartPole-v1_…`."""
    for name in ("env_id", "env", "task", "env_name", "environment"):
        if isinstance(settings.get(name), str) and settings[name]:
            return str(settings[name])
    for part in (files.root.name, files.root.parent.name):
        if found := re.search(r"(?:^|_)((?:[A-Za-z0-9.-]+/)?[A-Z][A-Za-z0-9.]*(?:-[A-Za-z0-9.]+)*-v\d+)(?:_|$)", part):
            return found[1]
    return None
