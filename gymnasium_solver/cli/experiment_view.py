"""How an experiment looks while it runs: what is done above, what is running below."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gymnasium_solver.cli import output
from gymnasium_solver.metrics.clocks import clock_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from gymnasium_solver.verify.trials import Notice, Training

PLAIN_SECONDS = 10.0
LIVE_SECONDS = 0.25


class ExperimentView:
    """Lines as they come; on a terminal the trainings under way stand below them, else they are told now and then."""

    def __init__(self, live: Live | None) -> None:
        self._live = live
        self._running: dict[int, tuple[Training, dict[str, float | None], float]] = {}
        self._due = time.monotonic() + PLAIN_SECONDS

    def say(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(line, soft_wrap=True)
        else:
            output.message(line)

    def watch(self, notice: Notice) -> None:
        key = id(notice.training)
        if notice.kind == "done":
            self._running.pop(key, None)
        else:
            _, seen, begun = self._running.get(key, (notice.training, {}, time.monotonic()))
            if notice.kind == "epoch":
                seen |= {"steps": notice.data["steps"], "reward": notice.data["reward"]}
            elif notice.kind == "evaluated":
                seen["eval"] = notice.data["reward"]
            self._running[key] = (notice.training, seen, begun)
        if self._live is not None:
            if time.monotonic() >= self._due or notice.kind == "done":
                self._due = time.monotonic() + LIVE_SECONDS
                self._live.update(self._table(), refresh=True)
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + PLAIN_SECONDS
            for row, (training, *_) in zip(self._rows(), self._running.values(), strict=True):
                steps = f"{row[1]} {clock_of(training.fields).words}"
                output.message(f"  running: {row[0]}, {steps}, return {row[2]}, evaluated {row[3]}, {row[4]}")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{training.label}, seed {training.seed}",
                output.number(seen.get("steps")),
                output.number(seen.get("reward")),
                output.number(seen.get("eval")),
                f"{time.monotonic() - begun:.0f} s",
            )
            for training, seen, begun in self._running.values()
        ]

    def _table(self) -> RenderableType:
        return output.table(
            ("RUNNING", "STEPS", "RETURN", "EVALUATED", "TIME"), self._rows(), ("STEPS", "RETURN", "EVALUATED", "TIME")
        )


@contextmanager
def experiment_view(quiet: bool) -> Iterator[ExperimentView]:
    if quiet or not output.is_terminal(sys.stderr):
        yield ExperimentView(None) if not quiet else _Silent(None)
        return
    from rich.live import Live

    with Live(console=output.console(sys.stderr), auto_refresh=False, transient=True) as live:
        yield ExperimentView(live)


class _Silent(ExperimentView):
    def say(self, line: str) -> None:
        pass

    def watch(self, notice: Notice) -> None:
        pass
