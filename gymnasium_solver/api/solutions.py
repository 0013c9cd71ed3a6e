"""What a group of seeds or an experiment came to: the run that stands for its configuration, beside its other seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.api.groups import Group
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.reader import Run


def solution_of(group: Group) -> Run:
    """A run with a policy; of an experiment, one of the configuration it chose: the tuned one if there is one, else
    what it started from. All its seeds are alike but for the seed, so any of them will do."""
    runs = [run for run in (_chosen(group) if group.is_experiment else group.runs()) if run.checkpoints()]
    if runs:  # one that was cut short says less
        return next((run for run in runs if run.status["status"] == "completed"), runs[0])
    status = group.standing(lambda: False)
    what = f"the experiment {group.group_id} ({status}) has chosen no configuration" if group.is_experiment else ""
    raise NotFoundError(
        f"{what or f'no run of the group {group.group_id} has a checkpoint'}; name one of its runs, which gsolve show "
        f"{group.group_id} lists"
    )


def chosen_by_seeds(found: Run | Group) -> str:
    """Trials of an experiment are no fair sample: some of their seeds decided who went on."""
    if not isinstance(found, Group) or found.record.get("kind") not in ("optimize", "solve", "sweep"):
        return ""
    verdict = found.record.get("verdict") or "it has none yet"
    return f"{found.group_id} chose among these by some of their seeds; what it says of fresh ones: {verdict}"


def _chosen(group: Group) -> Iterator[Run]:
    for name in filter(None, map(str, _names(group))):
        path = group.path.parent / Path(name).name  # where it was trained may be another place by now
        if (path / layout.CONFIG).is_file():
            yield Run(path)


def _names(group: Group) -> list[Any]:
    """Of the runs of the configuration it chose."""
    record = group.record
    kind = record.get("kind")
    if kind == "solve":
        return [(record.get("solution") or {}).get("run", "")]
    if kind == "sweep":
        return list((_best_of_sweep(record) or {}).get("runs", ()))
    if (label := _label(record)) is None:
        return []
    return [trial["path"] for trial in group.trials() if trial.get("label") == label and trial.get("path")]


def _best_of_sweep(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The winner, unless fresh seeds have shown it to be worse than what the search started from."""
    is_refuted = (record.get("confirmation") or {}).get("verdict") == "worse"
    return (record.get("base") if is_refuted else None) or record.get("best")


def _label(record: Mapping[str, Any]) -> str | None:
    """As its trials are labelled; none while there is no verdict."""
    from gymnasium_solver.verify.experiments.change_test import CHANGED
    from gymnasium_solver.verify.experiments.race import BASELINE

    if record.get("kind") == "optimize" and "winner" in record:
        return record["winner"] or BASELINE
    if record.get("kind") == "verify" and "comparison" in record:
        is_better = record["comparison"]["verdict"]["outcome"] == "better" and record.get("status") == "completed"
        return CHANGED if is_better else BASELINE
    return None
