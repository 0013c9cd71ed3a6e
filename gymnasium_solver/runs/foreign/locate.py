"""Which files under a path are a run of another library."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.plain import listed
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.foreign.settings_files import is_model_zip

SOURCES = ("sb3", "cleanrl", "rllib", "tianshou", "tensorboard", "wandb", "csv", "json")
DEPTH = 6
MAX_FILES = 20_000
SHOWN = 5
SETTINGS = ("params.json", "args.yml", "config.yml", "config.yaml", "config.json", "wandb-metadata.json")
LOGS = {"progress.csv": "csv", "progress.json": "json", "result.json": "json", "evaluations.npz": "evaluations"}
SET_ASIDE = {
    "tensorboard": ("csv", "json", "monitors", "evaluations"),
    "csv": ("json", "events", "monitors", "evaluations"),
    "json": ("csv", "events", "monitors", "evaluations"),
}
LIKELY = ("history", "progress", "metrics", "log", "results", "train")


@dataclass
class Files:
    """The files of one run by what they are."""

    root: Path
    csv: list[Path] = field(default_factory=list)
    json: list[Path] = field(default_factory=list)
    events: list[Path] = field(default_factory=list)
    monitors: list[Path] = field(default_factory=list)
    evaluations: list[Path] = field(default_factory=list)
    settings: list[Path] = field(default_factory=list)
    models: list[Path] = field(default_factory=list)
    error: Path | None = None

    def all(self) -> list[Path]:
        logs = (*self.csv, *self.json, *self.events, *self.monitors, *self.evaluations)
        return [*logs, *self.settings, *self.models, *([self.error] if self.error else [])]


def locate(path: Path, source: str | None = None) -> Files:
    if source is not None and source not in SOURCES:
        raise ConfigError(f"--as {source!r} is no format that can be imported; choose from {', '.join(SOURCES)}")
    try:
        is_file, is_directory = path.is_file(), path.is_dir()
    except (OSError, ValueError):
        is_file = is_directory = False
    if is_file:
        files = _one_file(path, source)
    elif is_directory:
        files = _directory(path, source)
    else:
        raise ConfigError(f"there is no file or directory {str(path)!r} to import; check the path")
    for kind in SET_ASIDE.get(source or "", ()):
        setattr(files, kind, [])
    if not (files.csv or files.json or files.events or files.monitors or files.evaluations or files.models):
        wanted = f" as {source}" if source else ""
        raise ConfigError(
            f"{path} holds nothing that can be imported{wanted}: no progress.csv, result.json, monitor.csv, "
            "TensorBoard event file, model .zip, CSV or JSON; give the file itself with --as csv or --as json"
        )
    return files


def _one_file(path: Path, source: str | None) -> Files:
    """The file, and settings that lie beside it."""
    files = Files(path.parent)
    told = {"csv": "csv", "wandb": "csv", "json": "json", "tensorboard": "events"}
    kind = _kind(path) or told.get(source or "")
    if kind is None or kind == "error":
        raise ConfigError(
            f"{path} is no file that is known here by its name; say what it is with --as {'|'.join(SOURCES)}"
        )
    getattr(files, kind).append(path)
    if kind not in ("settings", "models"):
        for beside in sorted(path.parent.iterdir()):
            if beside.name in SETTINGS:
                files.settings.append(beside)
            elif beside.suffix == ".zip" and source in (None, "sb3") and is_model_zip(beside):
                files.models.append(beside)
    return files


def _directory(path: Path, source: str | None) -> Files:
    if _is_ours(path):
        raise ConfigError(f"{path} is a run of gymnasium-solver already; look at it with: gsolve show {path}")
    by_directory: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in _walk(path):
        if kind := _named_log(file):
            by_directory[file.parent][kind].append(file)
    roots = [x for x in by_directory if not any(other in x.parents for other in by_directory)]
    if not roots:
        return _plain_tables(path)
    if len(roots) > 1 and any(sum(kind in by_directory[x] for x in roots) > 1 for kind in ("csv", "json", "events")):
        names = listed(map(str, sorted(roots)), SHOWN)
        raise ConfigError(f"{path} holds {len(roots)} runs; import them one by one: {names}")
    files = Files(path if len(roots) > 1 else roots[0])
    for directory in sorted(by_directory):
        nested = directory not in roots
        for kind, found in by_directory[directory].items():
            if not nested or kind == "events" or (kind == "monitors" and "eval" not in directory.name.lower()):
                getattr(files, kind).extend(sorted(found))
    _add_settings(files, path)
    return files


def _plain_tables(path: Path) -> Files:
    """No log of a known name: the one table there is, or the one that is called like a log."""
    files = Files(path)
    _add_settings(files, path)
    tables = [x for x in _walk(path) if x.suffix in (".csv", ".json", ".jsonl", ".ndjson") and x not in files.settings]
    likely = [x for x in tables if any(word in x.name.lower() for word in LIKELY)] or tables
    if len(likely) > 1:
        names = ", ".join(str(x) for x in sorted(likely)[:SHOWN])
        raise ConfigError(f"{path} holds {len(likely)} tables, and no name says which is the log; give one: {names}")
    for table in likely:
        (files.csv if table.suffix == ".csv" else files.json).append(table)
    return files


def _add_settings(files: Files, path: Path) -> None:
    """Settings of the run's own directory and below it; with one run under the path, also of those in between."""
    for file in _walk(path):
        own = file.parent == files.root or files.root in file.parents or file.parent in files.root.parents
        if not own:
            continue
        if file.name in SETTINGS:
            files.settings.append(file)
        elif file.suffix == ".zip" and is_model_zip(file):
            files.models.append(file)
        elif file.name == "error.txt":
            files.error = file
    files.models.sort(key=lambda x: (x.name.startswith("best"), x.stat().st_mtime))


def _named_log(path: Path) -> str | None:
    if "tfevents" in path.name:
        return "events"
    return "monitors" if path.name.endswith("monitor.csv") else LOGS.get(path.name)


def _kind(path: Path) -> str | None:
    """Of a file that was named outright."""
    if kind := _named_log(path):
        return kind
    if path.name in SETTINGS:
        return "settings"
    kinds = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".zip": "models"}
    return kinds.get(path.suffix.lower())


def _walk(path: Path) -> Iterator[Path]:
    count = 0
    for name, directories, files in os.walk(path):
        directory = Path(name)
        directories[:] = sorted(x for x in directories if not x.startswith(".") and not _is_ours(directory / x))
        if len(directory.relative_to(path).parts) >= DEPTH:
            directories.clear()
        for file in sorted(files):
            count += 1
            if count > MAX_FILES:
                raise ConfigError(f"{path} holds more than {MAX_FILES} files; give the directory of one run")
            yield directory / file


def _is_ours(path: Path) -> bool:
    return all((path / name).is_file() for name in (layout.CONFIG, layout.METRICS, layout.STATUS))
