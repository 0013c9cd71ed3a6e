"""Fresh rollouts: n_steps of every environment are one batch, learnt from once and forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.runs.checkpoints import new_array
from gymnasium_solver.train.parts import Arrays, Chunk, Clock, Columns, Numbers
from gymnasium_solver.train.signals import estimate_signals
from gymnasium_solver.train.source import empty_columns


class RolloutFeed:
    epochs = 1  # of a row of metrics
    scheduled: tuple[str, ...] = ()

    def __init__(self, config: Config, spec: EnvSpec, algorithm: Algorithm) -> None:
        self.notes: list[str] = []
        self.chunk, self.row_length = config.n_steps, config.rollout
        self._example = lambda: empty_columns(spec, algorithm.columns, config.n_envs, config.n_steps)
        self._rollout: Columns | None = None
        self._metrics: Numbers = {}

    def random_rows(self, clock: Clock) -> int:
        return 0

    def add(self, chunk: Chunk, clock: Clock) -> None:
        self._rollout = chunk.columns

    def next(self, rng: np.random.Generator, hp: Numbers) -> tuple[Columns, Numbers] | None:
        rollout, self._rollout = self._rollout, None
        return None if rollout is None else (rollout, {})

    def learnt(self, batch: Columns, outcome: Any) -> None:
        self._metrics = estimate_signals(jax.device_get(outcome), batch["valid"])

    def example(self) -> tuple[Columns, Numbers]:
        return self._example(), {}

    def rows(self, batch: Columns) -> Mapping[str, Any]:
        return batch

    def sample(self) -> Mapping[str, Any]:
        raise AssertionError("algorithms that learn from rollouts report inside of their update")

    def metrics(self) -> Numbers:
        return self._metrics

    def cut_episodes(self) -> None:
        pass

    def snapshot(self) -> Arrays:
        return {}

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return new_array(name, shape, dtype)

    def restore(self, arrays: Arrays) -> None:
        pass
