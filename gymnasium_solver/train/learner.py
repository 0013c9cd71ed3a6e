"""One epoch of a kind of learning: what the trainer asks of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import numpy as np

from gymnasium_solver.train.collect import Batch, Collector

State = dict[str, Any]
Numbers = dict[str, float]


class Epoch(NamedTuple):
    """n_steps of every environment, and what was learnt from or after them."""

    batch: Batch  # the rollout; the next epoch overwrites it
    ended: list[tuple[float, int]]  # return and length of the episodes that ended
    metrics: Numbers
    gradient_steps: int
    time_rollout: float
    time_update: float


class Learner(Protocol):
    state: State  # of the algorithm
    scheduled: tuple[str, ...]  # config fields that it takes as numbers in force, beyond the algorithm's
    notes: list[str]  # what to tell before training begins

    def compile(self, hp: Numbers) -> Any:
        """The update, compiled; in a thread of its own, beside the first steps of the environments."""
        ...

    def epoch(
        self, collector: Collector, update: Future[Any], rng: np.random.Generator, hp: Numbers, env_steps: int
    ) -> Epoch: ...

    def cut_episodes(self) -> None:
        """Environments begin anew, or an epoch broke off: the next step does not follow from the last."""
        ...

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What only a run that goes on needs, beyond the state."""
        ...

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Memory to read an array of a checkpoint into, before it is loaded."""
        ...

    def load(self, arrays: dict[str, np.ndarray]) -> None: ...


def as_inputs(hp: Numbers) -> dict[str, np.float32]:
    return {name: np.float32(value) for name, value in hp.items()}
