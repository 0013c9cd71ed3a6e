"""A replay is in memory once, also while a run is taken up; who only acts does not read it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from gymnasium_solver.config.load import build_config, load_config
from gymnasium_solver.envs import make_engine
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.loop import Loop
from gymnasium_solver.train.policy import policy_of
from gymnasium_solver.train.replay_feed import ReplayFeed
from gymnasium_solver.train.session import _read_transfer, train

WIDTH = 5000  # numbers of an observation: 20 kB


class Wide(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (WIDTH,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._time = 0
        return self._see(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._time += 1
        return self._see(), 1.0, False, self._time == 50, {}

    def _see(self) -> np.ndarray:
        return np.full(WIDTH, self._time / 50, np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    fields = {"n_envs": 2, "n_steps": 100, "max_env_steps": 1000, "train_freq": 20, "update_to_data": 0.025}
    fields |= {"batch_size": 8, "learning_starts": 900, "hidden_dims": [4], "eval_episodes": 1, "buffer_size": 1000}
    config = load_config(f"{__name__}:Wide:dqn", fields)
    return train(config, runs_dir=tmp_path_factory.mktemp("wide"), command=[], report=False)


@contextmanager
def allocated() -> Iterator[dict[str, int]]:
    """`peak`: bytes that were allocated at most, beyond those at the start."""
    found: dict[str, int] = {}
    tracemalloc.start()
    try:
        yield found
        found["peak"] = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.integration
def test_taking_up_a_run_needs_its_replay_once(run: Run) -> None:
    config = build_config(run.config, "test")
    engine = make_engine(config, config.n_envs)
    loop = Loop(config, engine.spec, engine)
    feed = loop.learner.feed
    assert isinstance(feed, ReplayFeed)
    replay = feed.layout.nbytes
    assert replay > 19_000_000
    with allocated() as memory:
        loop.restore(run)
    assert memory["peak"] < 0.2 * replay, "it lies in the memory that was set aside for it"
    saved = run.read_checkpoint("last")[0]
    np.testing.assert_array_equal(feed.replay.storage.arrays["obs"], saved["replay/obs"])
    assert feed.replay.count == saved["replay/numbers"][0] > 1000 // 2


@pytest.mark.integration
def test_acting_needs_no_replay(run: Run) -> None:
    size = (run.path / "checkpoints" / "last.safetensors").stat().st_size
    policy_of(run, "best")  # imports and compiles
    with allocated() as memory:
        policy = policy_of(run, "last")
        _read_transfer(f"{run.run_id}/@last", Path(run.path.parent))
    assert memory["peak"] < 0.2 * size
    assert policy(np.zeros((1, WIDTH), np.float32)).shape == (1,)
