"""Runs of other libraries, in the form of ours: read their logs and settings, map the names, write a run directory.

locate → foreign (event_files, tables, settings_files) → build (names, recover) → write
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gymnasium_solver.runs.foreign.build import Foreign, read_foreign
from gymnasium_solver.runs.foreign.write import told_before, write_run
from gymnasium_solver.runs.reader import Run

__all__ = ["Foreign", "import_run", "read_foreign"]


def import_run(
    path: str | Path,
    runs_dir: str | Path | None = None,
    source: str | None = None,
    mapping: Mapping[str, str] | None = None,
    env_id: str | None = None,
    algo_id: str | None = None,
) -> Run:
    """Write a run of another library into the runs directory; a second time refreshes it.

    What its files do not say has to be told only once: without options, those of the last import of this path hold.
    """
    directory = None if runs_dir is None else Path(runs_dir)
    before = told_before(Path(path), directory)
    told = {"env_id": env_id or before.get("env_id"), "algo_id": algo_id or before.get("algo_id")}
    told |= {"source": source or before.get("source")}
    told_mapping = mapping or (before.get("mapping") if source in (None, before.get("source")) else None) or {}
    foreign = read_foreign(path, mapping=told_mapping, **told)
    return write_run(foreign, directory, {**told, "mapping": dict(told_mapping)})
