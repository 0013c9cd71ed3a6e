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

    def value(self, *observations: float) -> np.ndarray:
        return np.asarray(self.algorithm.value(self.state, np.array(observations, np.float32)[:, None]))

    def greedy(self, *observations: float, mask: np.ndarray | None = None) -> np.ndarray:
        obs = np.array(observations, np.float32)[:, None]
        return np.asarray(self.algorithm.act_greedy(self.algorithm.actor(self.state), obs, mask))


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
        algorithm = make_algorithm(config, describe(config))
        arrays, _ = run.read_checkpoint("last")
        return Fitted(run, algorithm, from_arrays(algorithm.init(np.random.default_rng(0)), arrays, "last"))

    return fit
