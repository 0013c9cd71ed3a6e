"""Trainings of an experiment, side by side: workers with a core each, and what every training brought."""

from __future__ import annotations

import json
import queue
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gymnasium_solver.data.memory import shared_by
from gymnasium_solver.errors import SolverError
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.processes import Child, module, shares
from gymnasium_solver.runs.reader import default_runs_dir

CLOSING_SECONDS = 20.0  # for a worker to save what it is at


@dataclass(frozen=True)
class Training:
    """What is to be trained: a whole config."""

    label: str
    fields: Mapping[str, Any]
    cap: int | None = None  # env steps after which it is stopped; its schedules are as long as ever
    stop_on: str | None = None  # severity of a finding that ends it

    @property
    def seed(self) -> int:
        return int(self.fields["seed"])


@dataclass(frozen=True)
class Trained:
    """What a training brought; None where it brought nothing."""

    label: str
    seed: int
    status: str  # completed, interrupted (stopped at its cap, or asked to), diverged, failed
    error: str = ""
    path: str = ""
    seconds: float = 0.0
    clock: str = ENV_STEPS.name
    env_steps: int = 0  # on that clock
    solved: bool = False
    final_reward: float | None = None
    best_reward: float | None = None
    steps_to_threshold: float | None = None
    seconds_to_threshold: float | None = None
    threshold: float | None = None

    @property
    def run_id(self) -> str:
        return Path(self.path).name


@dataclass(frozen=True)
class Notice:
    """Something that happened in a training; `trained` once it is over."""

    training: Training
    kind: Literal["started", "epoch", "evaluated", "done"]
    data: Mapping[str, Any]
    trained: Trained | None = None


class Workers(AbstractContextManager["Workers"]):
    """At most `count` trainings at a time (one per core). A context manager: leaving it stops what is still running."""

    def __init__(self, count: int | None = None, *, runs_dir: Path | None = None, group: str | None = None) -> None:
        self._cores = shares(count)
        self.count = len(self._cores)
        self._directory, self._group = default_runs_dir(runs_dir), group
        self._waiting: deque[Training] = deque()
        self._messages: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self._workers: list[_Worker | None] = [None] * self.count
        self._environment = shared_by(self.count)

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        workers = [worker for worker in self._workers if worker is not None]
        for worker in workers:
            worker.process.dismiss()
        for worker in workers:
            worker.process.wait(CLOSING_SECONDS)

    @property
    def running(self) -> list[Training]:
        return [worker.training for worker in self._workers if worker is not None and worker.training is not None]

    @property
    def free(self) -> int:
        """Trainings that would start at once."""
        return max(0, self.count - len(self.running) - len(self._waiting))

    @property
    def is_busy(self) -> bool:
        return bool(self.running or self._waiting)

    def submit(self, training: Training) -> None:
        self._waiting.append(training)
        self._assign()

    def stop(self, training: Training, why: str = "budget") -> None:
        """Not started: never will be, and brings nothing. Running: it saves and ends, and its notice comes; `why` is in
        its status.json."""
        if training in self._waiting:
            self._waiting.remove(training)
        for worker in self._workers:
            if worker is not None and worker.training is training:
                worker.say({"stop": why})

    def notices(self, timeout: float | None = None) -> Iterator[Notice]:
        """What happens, as it happens, until no training is left or nothing has happened for `timeout` seconds."""
        while self.is_busy:
            try:
                worker, message = self._messages.get(timeout=timeout)
            except queue.Empty:
                return
            training = worker.training
            if message is None:
                self._workers[self._workers.index(worker)] = None
                if training is not None:
                    worker.training = None
                    yield self._ended(training, {"status": "failed", "error": worker.last_words()})
            elif training is not None and "done" in message:
                worker.training = None
                yield self._ended(training, message["done"])
            elif training is not None:
                yield Notice(training, message["kind"], message["data"])
            self._assign()

    def results(self, trainings: Sequence[Training]) -> Iterator[Trained]:
        """Run them all; each result when it is there."""
        for training in trainings:
            self.submit(training)
        for notice in self.notices():
            if notice.trained is not None:
                yield notice.trained

    def _ended(self, training: Training, done: Mapping[str, Any]) -> Notice:
        return Notice(training, "done", done, Trained(label=training.label, seed=training.seed, **done))

    def _assign(self) -> None:
        for slot, worker in enumerate(self._workers):
            if not self._waiting:
                return
            if worker is None:
                worker = self._workers[slot] = _Worker(self._messages, self._cores[slot], self._environment)
            if worker.training is None:
                worker.take(self._waiting.popleft(), self._directory, self._group)


class _Worker:
    def __init__(
        self,
        messages: queue.Queue[tuple[_Worker, dict[str, Any] | None]],
        cores: Sequence[int],
        environment: Mapping[str, str],
    ) -> None:
        self.training: Training | None = None
        self.process = Child(
            module("gymnasium_solver.verify.worker"),
            "stdout",
            lambda line: messages.put((self, None if line is None else json.loads(line))),
            takes_orders=True,
            environment=environment,
            cores=cores,
        )

    def take(self, training: Training, directory: Path, group: str | None) -> None:
        self.training = training
        order: dict[str, Any] = {"label": training.label, "fields": dict(training.fields), "cap": training.cap}
        order |= {"stop_on": training.stop_on, "runs_dir": str(directory), "group": group, "command": list(sys.argv)}
        self.say(order)

    def say(self, order: Mapping[str, Any]) -> None:
        self.process.say(json.dumps(order))

    def last_words(self) -> str:
        code, complaints = self.process.wait()
        lines = [line for line in complaints.splitlines() if line.strip()]
        said = f": {lines[-1]}" if lines else ""
        return f"the training process ended with exit code {code}{said}"


def require_success(results: Sequence[Trained], what: str) -> None:
    """An experiment in which nothing could be trained has one reason, not many results."""
    if results and all(result.status == "failed" for result in results):
        raise SolverError(f"{what}: {results[0].error}")
