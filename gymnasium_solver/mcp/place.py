"""The runs directory as the server sees it: what a `run_id` may mean, and that nothing outside is reached."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api import configs, served
from gymnasium_solver.api.lookup import runs_directory, telling_run
from gymnasium_solver.api.store import Store, written_at
from gymnasium_solver.errors import ConfigError, NotFoundError, TrustError
from gymnasium_solver.trust import names_in, require

if TYPE_CHECKING:
    from gymnasium_solver.api.groups import Group
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.metrics_reader import Metrics
    from gymnasium_solver.runs.reader import Run

KEPT = 64  # runs whose metrics stay parsed between calls

Summary = dict[str, Any]


class Place:
    """All that the tools share. Whatever takes a run looks it up here."""

    def __init__(self, runs_dir: Path | None = None, modules: Sequence[str] = ()) -> None:
        """`modules`: all that may be imported of what runs and requests name."""
        self.modules = tuple(modules)
        self.runs_dir = runs_directory(runs_dir).resolve()
        self._kept: dict[tuple[Path, int | None], Run] = {}
        self._last: dict[Path, tuple[Metrics, dict[str, float]]] = {}
        self._store: Store | None = None
        self._lock = threading.Lock()  # tools run in threads

    @contextlib.contextmanager
    def reading(self, run_id: str) -> Iterator[Run]:
        """The run, for as long as it is there: one that is deleted meanwhile is an error, not half an answer."""
        run = self.run(run_id)
        with served.still_there(run, "; call list_runs"):
            yield run

    @contextlib.contextmanager
    def reading_telling(self, run_id: str) -> Iterator[Run]:
        """As `reading`; of a group, the run that says what is wrong with it."""
        with next_call("list_runs"):
            run = telling_run(self.run_or_group(run_id))
        with self.reading(run.run_id) as found:
            yield found

    def run(self, run_id: str) -> Run:
        """By id, unique prefix, or `@last`."""
        with next_call("list_runs"):
            return self._remembered(served.run(run_id.strip(), self.runs_dir))

    def run_or_group(self, run_id: str) -> Run | Group:
        with next_call("list_runs"):
            return served.run_or_group(run_id.strip(), self.runs_dir)

    def checkpoint(self, ref: str) -> str:
        """`RUN`, `RUN/@best`, `RUN/epoch=N` with the whole run id in place of what stood for it."""
        with next_call("list_runs"):
            run, name = served.run_and_checkpoint(ref, self.runs_dir)
        if name is None:
            return run.run_id
        with next_call("list_checkpoints"):
            return str(run.describe_checkpoint(run.require_checkpoint(name))["ref"])

    def summaries(
        self, env_filter: str = "", limit: int | None = None, *, status: str = "", group: str = ""
    ) -> tuple[int, list[Summary]]:
        """How many runs match, and their summaries, newest first, from the index of the directory."""
        with self._lock:
            if self._store is None and self.runs_dir.is_dir():
                self._store = Store(self.runs_dir)
        if self._store is None:
            return 0, []
        index = self._store.index
        index.refresh()
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

    def config(self, config_id: str, overrides: Mapping[str, Any] | None = None) -> Config:
        """Resolved and checked. Not where that would run code: whoever asks a server may not choose it."""
        if configs.requires_import(config_id):
            raise TrustError(f"{config_id!r} names code that this server does not import; list_environments has others")
        with next_call("list_environments", "get_config without overrides for its fields"):
            return configs.resolved(config_id, overrides or {})

    def check(self, config_id: str, overrides: Mapping[str, Any] | None = None) -> None:
        """Before anything is started: a valid configuration that names no code but what the server was started with.
        Where checking would run such code, the process that is started will judge it."""
        named = [{**(overrides or {}), "env_id": config_id.rpartition(":")[0]}]
        if not configs.requires_import(config_id):
            named.append(configs.as_document(self.config(config_id, overrides))["config"])
        for name in [name for fields in named for name in names_in(fields)]:
            require(name, "config_id")

    def experiments(self) -> list[Group]:
        """What verify, optimize, solve and sweep left beside the runs, newest first."""
        return served.experiments(self.runs_dir)

    def experiment(self, experiment_id: str) -> Group:
        """By id or unique prefix."""
        with next_call("list_experiments"):
            return served.experiment(experiment_id, self.runs_dir)

    def standing(self, group: Group) -> str:
        """Its status, where one that says it is running but is not has crashed."""
        return group.standing(lambda: self.summaries(limit=0, group=group.group_id, status="running")[0] > 0)

    def _remembered(self, run: Run) -> Run:
        """The same object as before, with the metrics it has parsed, unless its configuration was written again."""
        key = (run.path, written_at(run))
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
    except TrustError:  # no other call helps
        raise
    except (NotFoundError, ConfigError) as error:
        tool = if_not_found if isinstance(error, NotFoundError) else if_wrong or if_not_found
        raise type(error)(f"{error}; call {tool}") from error
