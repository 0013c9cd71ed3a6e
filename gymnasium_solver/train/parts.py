"""The parts of a training: where experience comes from, how it becomes batches, and how good the policy is.

A new kind of training is a new part, not a branch in the loop (`loop.py`), which drives them with an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from gymnasium_solver.envs.spec import EnvSpec

State = Any
Numbers = dict[str, float]
Arrays = dict[str, np.ndarray]
Columns = dict[str, np.ndarray]


class Clock(NamedTuple):
    """How far a training is. Its config names the count that ends it, drives schedules and is the x axis of curves."""

    env_steps: int = 0
    updates: int = 0  # gradient steps


class Episode(NamedTuple):
    return_: float
    length: int


class Chunk(NamedTuple):
    """Rows start … stop-1 of columns [T, N, …], with the observation and the action mask that follow them."""

    columns: Columns
    start: int
    stop: int
    next_mask: np.ndarray | None

    @property
    def env_steps(self) -> int:
        return int(self.columns["valid"][self.start : self.stop].sum())


class Source(Protocol):
    """Where experience comes from. `columns` holds the steps of one row of metrics; the next row overwrites them."""

    spec: EnvSpec
    columns: Columns
    restart_every: int | None  # rows of metrics between fresh starts, where only those make a resumed run exact

    def ended(self) -> list[Episode]:
        """Episodes that ended in `columns`; asked once, when all of its rows are filled."""
        ...

    def keep(self) -> None:
        """The columns were learnt from: they are part of the way to here, which a snapshot holds."""
        ...

    def restart(self, seed: int) -> None: ...
    def snapshot(self) -> Arrays: ...
    def restore(self, arrays: Arrays) -> str | None: ...
    def close(self) -> None: ...


class SteppedSource(Source, Protocol):
    """One that is asked for its steps, a chunk at a time."""

    def advance(self, actor: Any, noise: np.ndarray, start: int, stop: int) -> Chunk: ...


class Feed(Protocol):
    """How experience becomes batches."""

    scheduled: tuple[str, ...]  # config fields that it takes as values in force
    notes: list[str]  # for the log, before training begins
    chunk: int  # steps of each environment between requests for a batch
    epochs: int  # of a row of metrics
    row_length: int  # of a row of metrics, on the config's clock

    def random_rows(self, clock: Clock) -> int:
        """Steps of the coming row of metrics in which actions are drawn at random."""
        ...

    def add(self, chunk: Chunk, clock: Clock) -> None:
        """The clock stands where it did before these steps."""
        ...

    def next(self, rng: np.random.Generator, hp: Numbers) -> tuple[Any, Numbers] | None:
        """A batch and further inputs of the update; None: collect more first."""
        ...

    def learnt(self, batch: Any, outcome: Any) -> None:
        """What the update of this batch found: errors of the minibatches, or estimates of the rollout."""
        ...

    def example(self) -> tuple[Any, Numbers]:
        """A batch of the right shapes and types, for compilation."""
        ...

    def rows(self, batch: Any) -> Mapping[str, Any]:
        """What the algorithm is given of a batch; runs inside the compiled update."""
        ...

    def sample(self) -> Mapping[str, Any]:
        """A minibatch to report on, of those that were learnt from last."""
        ...

    def metrics(self) -> Numbers:
        """Of the row of metrics that ends now."""
        ...

    def cut_episodes(self) -> None:
        """Environments begin anew, or a row broke off: the next step does not follow from the last."""
        ...

    def snapshot(self) -> Arrays: ...
    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray: ...
    def restore(self, arrays: Arrays) -> None: ...


class Judge(Protocol):
    """How good a policy is now."""

    def evaluate(self, actor: Any, purpose: str, index: int, hp: Numbers, stop: Callable[[], bool]) -> Any: ...
    def close(self) -> None: ...


def as_inputs(hp: Mapping[str, float]) -> dict[str, np.float32]:
    return {name: np.float32(value) for name, value in hp.items()}
