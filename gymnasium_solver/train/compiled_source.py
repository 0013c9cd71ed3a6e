"""Experience from environments that are compiled with the learner: only where they stand is kept here."""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.parts import Arrays, Columns, Episode
from gymnasium_solver.train.source import Tally, require_finite

_PREFIX = "environments/"  # begins the names of the arrays that say where the environments stand


class CompiledSource:
    restart_every: int | None = None  # a checkpoint holds where they stand: there is nothing to replay

    def __init__(self, engine: CompiledEngine, algorithm: Algorithm) -> None:
        self.engine, self.spec = engine, engine.spec
        self._memory_of = algorithm.begin
        self.columns: Columns = {}
        self.restart()

    def restart(self, seed: int = 0) -> None:
        """No seed is needed: all randomness comes with the steps."""
        self.environments: Any = self.engine.begin()
        self.memory = self._memory_of(self.engine.n_envs)
        self._tally = Tally(self.engine.n_envs)
        self.keep()

    def arrived(self, environments: Any, memory: Any, columns: Columns) -> EnvironmentFault | None:
        """A row of metrics led here; the fault is something in it that is no number."""
        if np.all(self.environments.ended) and not np.any(self.environments.steps):
            columns["obs"][0] = columns["obs"][1]  # before the first reset there is nothing to see
        self.environments, self.memory, self.columns = environments, memory, columns
        try:
            for name in ("obs", "reward"):
                require_finite(name, columns[name], self.spec.env_id)
        except EnvironmentFault as fault:
            return fault
        return None

    def ended(self) -> list[Episode]:
        return self._tally.ended(self.columns, self.columns["reward"])

    def keep(self) -> None:
        self._kept = self._standing()

    def _standing(self) -> dict[str, Any]:
        tally = {"returns": self._tally.returns, "lengths": self._tally.lengths}
        return {"now": self.environments, "memory": self.memory, "tally": tally}

    def snapshot(self) -> Arrays:
        return {f"{_PREFIX}{name}": array for name, array in to_arrays(self._kept).items()}

    @staticmethod
    def can_resume(arrays: Arrays) -> bool:
        return any(name.startswith(_PREFIX) for name in arrays)

    def restore(self, arrays: Arrays) -> str | None:
        if not self.can_resume(arrays):
            return None
        own = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        standing = from_arrays(self._standing(), own, "the checkpoint's environments")
        self.environments, self.memory = standing["now"], standing["memory"]
        self._tally.returns, self._tally.lengths = (standing["tally"][name] for name in ("returns", "lengths"))
        self.keep()
        return None

    def close(self) -> None:
        self.engine.close()
