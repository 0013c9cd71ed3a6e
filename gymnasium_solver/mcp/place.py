"""The runs directory as the server sees it: what a `run_id` may mean, and that nothing outside is reached."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gymnasium_solver.api.groups import EXPERIMENT, Group, find
from gymnasium_solver.api.guards import requires_import
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.inside import is_inside, leads_outside
from gymnasium_solver.runs.reader import Run, default_runs_dir, find_run, split_checkpoint_ref

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.index import Index
    from gymnasium_solver.runs.metrics_reader import Metrics

KEPT = 64  # runs whose metrics stay parsed between calls

Summary = dict[str, Any]
Found = TypeVar("Found", bound=Run | Group)


class Place:
    """All that the tools share. Whatever takes a run looks it up here."""

    def __init__(self, runs_dir: Path | None = None) -> None:
        self.runs_dir = default_runs_dir(runs_dir).resolve()
        self._kept: dict[tuple[Path, int], Run] = {}
        self._last: dict[Path, tuple[Metrics, dict[str, float]]] = {}
        self._index: Index | None = None
        self._lock = threading.Lock()  # tools run in threads

    @contextlib.contextmanager
    def reading(self, run_id: str) -> Iterator[Run]:
        """The run, for as long as it is there: one that is deleted meanwhile is an error, not half an answer."""
        run = self.run(run_id)
        try:
            yield run
        except (OSError, SolverError):
            if run.path.joinpath(layout.CONFIG).exists():
                raise
        if not run.path.joinpath(layout.CONFIG).exists():
            raise NotFoundError(f"run {run.run_id} was deleted while it was read; call list_runs")

    def run(self, run_id: str) -> Run:
        """By id, unique prefix, or `@last`."""
        name = self._name(run_id)
        with next_call("list_runs"):
            found = find_run(name, self.runs_dir)
        return self._remembered(self._inside(found, run_id))

    def run_or_group(self, run_id: str) -> Run | Group:
        name = self._name(run_id)
        with next_call("list_runs"):
            found = find(name, self.runs_dir)
        return self._inside(found, run_id)

    def checkpoint(self, ref: str) -> str:
        """`RUN`, `RUN/@best`, `RUN/epoch=N` with the whole run id in place of what stood for it."""
        run, name = split_checkpoint_ref(ref)
        found = self.run(run)
        if name is None:
            return found.run_id
        if name not in found.checkpoints():
            raise NotFoundError(f"run {found.run_id} has no checkpoint {name!r}; call list_checkpoints")
        return f"{found.run_id}/{name if '=' in name else f'@{name}'}"

    def summaries(
        self, env_filter: str = "", limit: int | None = None, *, status: str = "", group: str = ""
    ) -> tuple[int, list[Summary]]:
        """How many runs match, and their summaries, newest first, from the index of the directory."""
        index = self._up_to_date_index()
        if index is None:
            return 0, []
        if not env_filter:
            return index.find(status=status or None, group=group or None, limit=limit)
        _, near = index.find(env_filter, status=status or None, group=group or None)
        found = [run for run in near if env_filter.lower() in str(run["env_id"] or "").lower()]
        return len(found), found[:limit]

    def last_values(self, run: Run) -> dict[str, float]:
        """Of every metric, NaN where there is none. Of a file too large to parse whole, its end is looked at."""
        metrics = run.metrics
        known, values = self._last.get(run.path, (None, {}))
        if known is not metrics:
            measured = {name: column.values[column.recorded] for name, column in metrics.overview().items()}
            values = {name: float(found[-1]) if found.size else math.nan for name, found in measured.items()}
            with self._lock:
                self._last[run.path] = (metrics, values)
                while len(self._last) > KEPT:
                    del self._last[next(iter(self._last))]
        return values

    def _up_to_date_index(self) -> Index | None:
        from gymnasium_solver.runs.index import Index

        with self._lock:
            if self._index is None and self.runs_dir.is_dir():
                self._index = Index.open(self.runs_dir)
        if self._index is not None:
            self._index.refresh()
        return self._index

    def config(self, config_id: str, overrides: Mapping[str, Any] | None = None) -> Config:
        """Resolved and checked. Not where that would run code: whoever asks a server may not choose it."""
        from gymnasium_solver.config.load import load_config

        if requires_import(config_id):
            raise ConfigError(
                f"{config_id!r} names code that this server does not import; write it into a file of "
                "config/environments, or train it with start_training"
            )
        with next_call("list_environments", "get_config without overrides for its fields"):
            return load_config(config_id, overrides or {})

    def check(self, config_id: str, overrides: Mapping[str, Any] | None = None) -> None:
        """Before anything is started; where that would run code, the process that is started will judge it."""
        if not requires_import(config_id):
            self.config(config_id, overrides)

    def experiments(self) -> list[Group]:
        """What verify, optimize and solve left beside the runs, newest first."""
        records = self.runs_dir.glob(f"*/{EXPERIMENT}")
        return [Group(path.parent) for path in sorted(records, reverse=True) if is_inside(self.runs_dir, path)]

    def experiment(self, experiment_id: str) -> Group:
        """By id or unique prefix."""
        found = [one for one in self.experiments() if one.group_id.startswith(experiment_id)]
        exact = [one for one in found if one.group_id == experiment_id]
        if len(exact or found) != 1 or not experiment_id:
            how_many = f"{len(found)} experiments begin with" if found else "there is no experiment"
            raise NotFoundError(f"{how_many} {experiment_id!r}; call list_experiments")
        return (exact or found)[0]

    def _name(self, run_id: str) -> str:
        name = run_id.strip()
        if not name or name in (".", "..") or any(mark in name for mark in "/\\\0~"):
            raise ConfigError(
                f"run_id {run_id!r} is not a run of this server; give an id, the beginning of one, or @last: call "
                "list_runs"
            )
        return name

    def _inside(self, found: Found, run_id: str) -> Found:
        """Neither a directory beside the runs nor a link that leads out of them."""
        path = found.path.resolve()
        if path.parent != self.runs_dir or leads_outside(path):
            raise NotFoundError(f"{run_id!r} leads out of the runs directory; call list_runs")
        return found

    def _remembered(self, run: Run) -> Run:
        """The same object as before, with the metrics it has parsed, unless its configuration was written again."""
        try:
            key = (run.path, (run.path / layout.CONFIG).stat().st_mtime_ns)
        except OSError:
            return run
        with self._lock:
            kept = self._kept.pop(key, run)
            self._kept[key] = kept
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return kept


@contextlib.contextmanager
def next_call(if_not_found: str, if_wrong: str = "") -> Iterator[None]:
    """Errors name the tool that helps."""
    try:
        yield
    except (NotFoundError, ConfigError) as error:
        tool = if_not_found if isinstance(error, NotFoundError) else if_wrong or if_not_found
        raise type(error)(f"{error}; call {tool}") from error
