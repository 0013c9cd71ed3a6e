"""What several rooms' tests share: quick trainings into a temporary directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

PROBES = "gymnasium_solver.envs.probes"


class Fitted(NamedTuple):
    run: Any
    algorithm: Any
    state: Any

    obs_sizes: tuple[int, ...]

    def value(self, *observations: float) -> np.ndarray:
        return np.asarray(self.algorithm.value(self.state, self._seen(observations)))

    def greedy(self, *observations: float, mask: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(self.algorithm.act_greedy(self.algorithm.actor(self.state), self._seen(observations), mask))

    def _seen(self, observations: tuple[float, ...]) -> np.ndarray:
        """A probe's numbers as the policy gets them: as they are, or -1, 0, 1 as one of three kinds."""
        numbers = np.array(observations, np.float32)
        return np.eye(3, dtype=np.float32)[(numbers + 1).astype(int)] if self.obs_sizes else numbers[:, None]


@pytest.fixture
def fit(tmp_path: Path) -> Callable[..., Fitted]:
    """Train `ENV:VARIANT` with overrides and hand back the run, the algorithm and its final state."""

    def fit(ref: str, **overrides: Any) -> Fitted:
        from gymnasium_solver.algorithms import make_algorithm
        from gymnasium_solver.config.load import load_config
        from gymnasium_solver.envs import describe
        from gymnasium_solver.train.checkpoint import from_arrays
        from gymnasium_solver.train.loop import train

        config = load_config(ref, overrides)
        run = train(config, runs_dir=tmp_path / "runs", command=["test"])
        spec = describe(config)
        algorithm = make_algorithm(config, spec)
        arrays, _ = run.read_checkpoint("last")
        state = from_arrays(algorithm.init(np.random.default_rng(0)), arrays, "last")
        return Fitted(run, algorithm, state, spec.obs_sizes)

    return fit
