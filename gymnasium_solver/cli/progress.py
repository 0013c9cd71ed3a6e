"""What is known about a training so far, from its events, and the ways to tell it without a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol, Self

from gymnasium_solver.cli.output import message, number, plain
from gymnasium_solver.cli.sparkline import Curve
from gymnasium_solver.metrics.clocks import ENV_STEPS, clock_of
from gymnasium_solver.plain import duration

if TYPE_CHECKING:
    from gymnasium_solver.train.session import Event

TRAIN_REWARD = "train/roll/ep_rew_mean"
EVAL_REWARD = "val/roll/ep_rew_mean"
# In the order shown; an algorithm that does not report one has no row for it.
SHOWN = {
    TRAIN_REWARD: "train reward",
    EVAL_REWARD: "eval reward",
    "train/roll/ep_len_mean": "episode length",
    "train/metrics/kl_divergence": "KL divergence",
    "train/metrics/clip_fraction": "clip fraction",
    "train/metrics/entropy": "entropy",
    "train/metrics/explained_variance": "explained variance",
    "train/metrics/q_mean": "Q mean",
    "train/metrics/td_error": "TD error",
    "train/metrics/alpha": "temperature",
    "train/loss/policy": "policy loss",
    "train/loss/value": "value loss",
}


class View(Protocol):
    """Something that listens to a training."""

    def __call__(self, event: Event) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class Progress:
    """The state that every view draws."""

    def __init__(self) -> None:
        self.run_id = ""
        self.path = ""
        self.env_id = ""
        self.algo_id = ""
        self.seed: int | None = None
        self.engine = ""
        self.reason = ""
        self.notes: list[str] = []
        self.threshold: float | None = None
        self.clock = ENV_STEPS
        self.budget = 0.0
        self.phase = "starting"
        self.steps = 0  # on the clock
        self.best_eval: float | None = None
        self.curves: dict[str, Curve] = {}
        self.warnings: deque[str] = deque(maxlen=5)
        self.warning_count = 0
        self._began = time.perf_counter()
        self._first: tuple[float, int] | None = None
        self._latest: tuple[float, int] | None = None

    def feed(self, kind: str, run: str, data: dict[str, Any]) -> None:
        self.run_id = run or self.run_id
        if kind == "started":
            config = data.get("config", {})
            self.path = str(data.get("path", ""))
            self.env_id, self.algo_id = str(config.get("env_id", "")), str(config.get("algo_id", ""))
            self.seed = config.get("seed")
            self.engine, self.reason = str(data.get("engine", "")), str(data.get("reason", ""))
            self.notes = [str(note) for note in data.get("notes", ())]
            self.threshold = data.get("threshold")
            self.clock = clock_of(config)
            self.budget = self.clock.budget_of(data, config) or 0.0
            self.phase = "compiling"
        elif kind == "compiled":
            self.phase = "training"
        elif kind == "epoch":
            self._epoch(data["metrics"])
        elif kind == "evaluated":
            self._curve(EVAL_REWARD).add(data["ep_rew_mean"])
            if self.best_eval is None or data["ep_rew_mean"] > self.best_eval:
                self.best_eval = data["ep_rew_mean"]
        elif kind == "warning":
            self.warnings.append(" ".join(str(data["message"]).split()))
            self.warning_count += 1
        elif kind == "finished":
            self.phase = str(data["summary"]["status"])

    def _epoch(self, metrics: dict[str, float]) -> None:
        self.phase = "training"
        self.steps = int(metrics.get(self.clock.column, self.steps))
        self._latest = (time.perf_counter(), self.steps)
        self._first = self._first or self._latest
        for name in SHOWN:
            if name in metrics and name != EVAL_REWARD:
                self._curve(name).add(metrics[name])

    def _curve(self, name: str) -> Curve:
        if name not in self.curves:
            self.curves[name] = Curve()
        return self.curves[name]

    def last(self, name: str) -> float | None:
        return self.curves[name].last if name in self.curves else None

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    @property
    def fps(self) -> float | None:
        """Steps per second since the first update, so that neither compilation nor a resumed past counts."""
        if self._first is None or self._latest is None or self._latest[0] <= self._first[0]:
            return None
        return (self._latest[1] - self._first[1]) / (self._latest[0] - self._first[0])

    @property
    def eta(self) -> float | None:
        """Seconds to the end of the budget; a run that reaches its threshold ends sooner."""
        if self.phase != "training" or not self.fps:
            return None
        return max(self.budget - self.steps, 0) / self.fps

    @property
    def fraction(self) -> float:
        return min(self.steps / self.budget, 1.0) if self.budget else 0.0


class Silent:
    """No progress at all."""

    def __call__(self, event: Event) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class PlainLines(Silent):
    """For logs and pipes: a line every few seconds, warnings as they appear, no control characters."""

    def __init__(self, interval: float = 5.0) -> None:
        self.progress = Progress()
        self._interval = interval
        self._due = 0.0

    def __call__(self, event: Event) -> None:
        progress = self.progress
        progress.feed(event.kind, event.run, event.data)
        if event.kind == "started":
            message(f"run {progress.run_id}: {progress.env_id} {progress.algo_id} seed {progress.seed}")
            message(f"engine {progress.engine} ({progress.reason})")
            for note in (*event.data.get("notes", ()), *event.data.get("init", ())):
                message(note)
            self._due = progress.elapsed + self._interval
        elif event.kind == "warning":
            message(f"warning: {progress.warnings[-1]}")
        elif event.kind == "epoch" and progress.elapsed >= self._due:
            self._due = progress.elapsed + self._interval
            message(progress_line(progress))


class EventLines(Silent):
    """For a parent process: events as JSON lines on stderr, updates at most four a second."""

    def __init__(self) -> None:
        self._due = 0.0

    def __call__(self, event: Event) -> None:
        if event.kind == "epoch":
            now = time.perf_counter()
            if now < self._due:
                return
            self._due = now + 0.25
        line = json.dumps({"event": event.kind, "run": event.run, "data": plain(event.data)})
        print(line, file=sys.stderr, flush=True)


def progress_line(progress: Progress) -> str:
    parts = [
        f"{number(progress.steps)}/{number(progress.budget)} {progress.clock.unit} ({progress.fraction:.0%})",
        f"{number(progress.fps, 3)} {progress.clock.unit}/s",
        f"reward {number(progress.last(TRAIN_REWARD))}",
    ]
    if EVAL_REWARD in progress.curves:
        goal = f" of {number(progress.threshold)}" if progress.threshold is not None else ""
        parts.append(f"eval {number(progress.last(EVAL_REWARD))}{goal}")
    parts += [duration(progress.elapsed), f"ETA {duration(progress.eta)}"]
    return ", ".join(parts)
