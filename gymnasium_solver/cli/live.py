"""The live view of a training on a terminal.

Training runs in this process and thread, so drawing must cost next to nothing: frames are drawn from events (no
refresh thread that would fight for the interpreter), made of ready segments instead of Rich tables, at most eight a
second, and never so often that they take more than a hundredth of the time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from gymnasium_solver.cli.output import console, number
from gymnasium_solver.cli.progress import EVAL_REWARD, SHOWN, Progress
from gymnasium_solver.plain import duration

if TYPE_CHECKING:
    from gymnasium_solver.train.session import Event

BOLD, DIM, CYAN = Style(bold=True), Style(dim=True), Style(color="cyan")
GREEN, YELLOW = Style(color="green"), Style(color="yellow")
FASTEST = 1 / 8
SLOWEST = 1.0
SHARE = 0.01

Line = list[tuple[str, Style | None]]


class Throttle:
    """When the next frame is due, given what frames cost."""

    def __init__(self) -> None:
        self._due = 0.0

    def ready(self) -> bool:
        return time.perf_counter() >= self._due

    def drawn(self, cpu_seconds: float) -> None:
        """The cost is in processor time: a frame that only waited for a busy machine must not delay the next."""
        self._due = time.perf_counter() + min(max(FASTEST, cpu_seconds / SHARE), SLOWEST)


class LiveView:
    """Draws one training."""

    def __init__(self, target: Console | None = None) -> None:
        self.progress = Progress()
        self._live = Live(self, console=target or console(sys.stderr), auto_refresh=False)
        self._throttle = Throttle()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress.run_id:
            self._live.refresh()
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self.progress.feed(event.kind, event.run, event.data)
        rare = event.kind in ("started", "compiled", "warning", "finished")
        if rare or self._throttle.ready():
            began = time.thread_time()
            self._live.refresh()
            self._throttle.drawn(time.thread_time() - began)

    def __rich_console__(self, target: Console, options: ConsoleOptions) -> RenderResult:
        for line in frame(self.progress, options.max_width):
            yield from cropped(line, options.max_width)
            yield Segment.line()


def frame(progress: Progress, width: int) -> Iterator[Line]:
    if not progress.run_id:
        yield [("starting …", DIM)]
        return
    title = f"{progress.env_id} · {progress.algo_id} · seed {progress.seed}"
    yield [(title, BOLD), (f"   {progress.run_id}", DIM)]
    yield [(f"{progress.engine}: {progress.reason}", DIM)]
    for note in progress.notes:
        yield [(note, DIM)]
    yield bar(progress, width)
    label_width = max(len(label) for label in SHOWN.values())
    for name, label in SHOWN.items():
        if name not in progress.curves:
            continue
        curve = progress.curves[name]
        note, note_style = evaluation_note(progress) if name == EVAL_REWARD else ("", None)
        room = min(max(width - label_width - 16 - len(note), 0), 40)
        yield [
            (f"  {label:<{label_width}}  ", None),
            (f"{number(curve.last):>9}  ", BOLD),
            (f"{curve.sparkline(room) if room else '':<{room}}", CYAN),
            (note, note_style),
        ]
    if hidden := progress.warning_count - len(progress.warnings):
        yield [(f"  {hidden} earlier warnings in run.log", DIM)]
    for text in progress.warnings:
        yield [("  warning: ", YELLOW), (text, None)]


def bar(progress: Progress, width: int) -> Line:
    if progress.phase in ("starting", "compiling"):
        return [(f"  {progress.phase} …", DIM)]
    ending = progress.phase if progress.phase != "training" else f"ETA {duration(progress.eta)}"
    facts = "  ".join(
        (
            f"{progress.fraction:4.0%}",
            f"{number(progress.steps)}/{number(progress.budget)} {progress.clock.unit}",
            f"{number(round(progress.fps)) if progress.fps else '-'} {progress.clock.unit}/s",
            duration(progress.elapsed),
            ending,
        )
    )
    size = min(max(width - len(facts) - 4, 0), 40)
    filled = round(progress.fraction * size)
    return [("  ", None), ("━" * filled, GREEN), ("─" * (size - filled), DIM), (f" {facts}", None)]


def evaluation_note(progress: Progress) -> tuple[str, Style | None]:
    best = f"  best {number(progress.best_eval)}"
    if progress.threshold is None:
        return best, DIM
    last = progress.last(EVAL_REWARD)
    reached = last is not None and last >= progress.threshold
    return f"{best}  goal {number(progress.threshold)}", GREEN if reached else DIM


def cropped(line: Line, width: int) -> Iterator[Segment]:
    for text, style in line:
        if width <= 0:
            return
        yield Segment(text[:width], style)
        width -= len(text)
