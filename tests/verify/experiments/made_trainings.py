"""Worker processes that are none: what a training brings follows from its config, and its run is made up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.verify.trials import Notice, Trained, Training
from tests.made_runs import FAILING, HEALTHY, write_run

# Env steps to the threshold by config fields; None: never.
Steps = Callable[[dict[str, Any]], float | None]
REWARDS = {True: 500.0, False: 30.0}


class MadeWorkers:
    """One at a time, at once."""

    trained: list[Training]

    def __init__(self, runs_dir: Path, steps: Steps) -> None:
        self.count, self._runs_dir, self._steps = 1, runs_dir, steps
        self.trained = []
        self._waiting: deque[Training] = deque()
        self._asked: list[Training] = []

    def __enter__(self) -> MadeWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()

    @property
    def running(self) -> list[Training]:
        return list(self._waiting)

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def submit(self, training: Training) -> None:
        self._waiting.append(training)

    def stop(self, training: Training, why: str = "") -> None:
        self._asked.append(training)

    def notices(self, timeout: float | None = None) -> Iterator[Notice]:
        while self._waiting:
            training = self._waiting[0]
            fields = dict(training.fields)
            needed, limit = self._steps(fields), min(training.cap or 10**9, fields["max_env_steps"])
            solved = needed is not None and needed <= limit
            steps = int(needed if solved and needed is not None else limit)
            yield Notice(training, "started", {"path": ""})
            yield Notice(training, "epoch", {"steps": steps, "reward": REWARDS[solved]})
            curves = HEALTHY if solved else FAILING
            own = {name: value for name, value in fields.items() if name not in ("env_id", "algo_id")}
            run = write_run(self._runs_dir, curves, f"{fields['env_id']}:{fields['algo_id']}", solved=solved, **own)
            self._waiting.popleft()
            self.trained.append(training)
            cut = training in self._asked or (training.cap is not None and steps >= training.cap)
            yield Notice(
                training,
                "done",
                {},
                Trained(
                    training.label,
                    training.seed,
                    "interrupted" if cut else "completed",
                    path=str(run.path),
                    seconds=1.0,
                    env_steps=steps,
                    solved=solved,
                    final_reward=REWARDS[solved] + 0.01 * training.seed,
                    best_reward=REWARDS[solved],
                    steps_to_threshold=steps if solved else None,
                    seconds_to_threshold=0.5 if solved else None,
                    threshold=475.0,
                ),
            )


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Steps], list[MadeWorkers]]:
    """Put these in the place of processes; returns a list that fills with those in use."""

    def install(steps: Steps) -> list[MadeWorkers]:
        in_use: list[MadeWorkers] = []

        def build(count: int | None, *, runs_dir: Path, group: str) -> MadeWorkers:
            in_use.append(MadeWorkers(runs_dir, steps))
            return in_use[-1]

        monkeypatch.setattr("gymnasium_solver.verify.experiments.laboratory.Workers", build)
        return in_use

    return install
