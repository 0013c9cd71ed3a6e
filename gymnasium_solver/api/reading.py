"""The verbs that read what is there, as Python functions; the package has them beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from gymnasium_solver.api.lookup import as_path, find_either, load_run

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.runs.index.rows import Mark, NewRows
    from gymnasium_solver.runs.reader import Run


def runs(*, group: str | None = None, runs_dir: str | Path | None = None) -> list[Run]:
    """All runs, or those of a group of seeds, newest first."""
    from gymnasium_solver.runs.reader import list_runs

    found = list_runs(as_path(runs_dir))
    return found if group is None else [run for run in found if run.status.get("group") == group]


@overload
def status(run: Run | Group | str, *, runs_dir: str | Path | None = None) -> dict[str, Any]: ...
@overload
def status(run: None = None, *, runs_dir: str | Path | None = None) -> list[dict[str, Any]]: ...
def status(
    run: Run | Group | str | None = None, *, runs_dir: str | Path | None = None
) -> dict[str, Any] | list[dict[str, Any]]:
    """How far a run, or a group of seeds, is; without one, a list of all runs in progress."""
    from gymnasium_solver.runs.reader import Run

    if run is None:
        return [status(found) for found in runs(runs_dir=runs_dir) if found.status["status"] == "running"]
    found = find_either(run, runs_dir)
    return {"run_id": found.run_id, **found.status, **found.summary()} if isinstance(found, Run) else found.status()


def show(run: Run | Group | str, *, runs_dir: str | Path | None = None) -> dict[str, Any]:
    """All about a run: `summary`, `config`, the last value of its `metrics`, `checkpoints`, `warnings`; of a group how
    its seeds did."""
    from gymnasium_solver.runs.reader import Run

    found = find_either(run, runs_dir)
    if not isinstance(found, Run):
        return found.status()
    return {
        "summary": found.summary(),
        "path": found.path,
        "report": found.report_path,
        "config": found.config,
        "metrics": {name: found.metrics.last(name) for name in found.metrics.names},
        "checkpoints": found.checkpoints(),
        "warnings": [entry["message"] for entry in log_entries(found.log_lines()) if entry["level"] == "WARNING"],
    }


def logs(run: Run | str, n: int | None = None, *, runs_dir: str | Path | None = None) -> list[str]:
    """The lines of a run's log, or only the last n."""
    lines = load_run(run, runs_dir=runs_dir).log_lines()
    return lines if n is None else lines[max(len(lines) - n, 0) :]


def checkpoints(run: Run | str, *, runs_dir: str | Path | None = None) -> list[str]:
    """Names of a run's checkpoints: last, best, then the newest epoch first."""
    return load_run(run, runs_dir=runs_dir).checkpoints()


def new_rows(run: Run, names: Sequence[str], since: Mark | None) -> NewRows:
    """A context manager over the rows of metrics.csv that were written since the mark."""
    from gymnasium_solver.runs import layout
    from gymnasium_solver.runs.index.rows import NewRows

    return NewRows(run.path / layout.METRICS, names, since)


def source_of(run: Run) -> dict[str, Any]:
    """Of a run that another library trained: `library`, what was `missing`, `notes`; else empty."""
    from gymnasium_solver.runs import layout

    return layout.read_json(run.path / layout.SOURCE)


def log_entries(lines: list[str]) -> list[dict[str, str]]:
    """Lines of run.log, `TIME LEVEL message`, as objects; indented ones belong to the message before them."""
    found: list[tuple[str, str, list[str]]] = []  # a message of many lines is put together once
    for line in lines:
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1].isupper() and not line.startswith(" "):
            found.append((parts[0], parts[1], [parts[2]]))
        elif found:
            found[-1][2].append(line.removeprefix("    "))
        else:
            found.append(("", "", [line]))
    return [{"time": time, "level": level, "message": "\n".join(message)} for time, level, message in found]
