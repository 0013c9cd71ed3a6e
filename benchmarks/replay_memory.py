"""Memory that a process grows by when it fills a replay; one JSON line on stdout.

python benchmarks/replay_memory.py cartpole 1000000
python benchmarks/replay_memory.py frames 100000
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import gymnasium as gym
import numpy as np
from processes import resident_mb

CONFIGS: dict[str, dict[str, Any]] = {
    "cartpole": {"env_id": "CartPole-v1"},
    "frames": {"env_id": "replay_memory:Frames", "frame_stack": 4},
}
FRAME = (84, 84)
EPOCH = 1000  # steps between writes, as in training


class Frames(gym.Env):
    """The spaces of an Atari game after the usual preprocessing."""

    observation_space = gym.spaces.Box(0, 255, (*FRAME, 1), np.uint8)
    action_space = gym.spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return np.zeros((*FRAME, 1), np.uint8), {}

    def step(self, action: Any) -> Any:
        return np.zeros((*FRAME, 1), np.uint8), 0.0, False, False, {}


def grown_mb(kind: str, transitions: int) -> dict[str, Any]:
    """A replay for the environment's spaces, laid out as training does it, is filled to the last row."""

    from gymnasium_solver import trust
    from gymnasium_solver.config.load import build_config
    from gymnasium_solver.data.layout import make_layout
    from gymnasium_solver.data.replay import Replay
    from gymnasium_solver.data.storage import HostStorage
    from gymnasium_solver.envs import describe
    from gymnasium_solver.train.source import empty_columns

    trust.allow(trust.names_in(CONFIGS[kind]))
    config = build_config({"algo_id": "dqn", "n_envs": 1, **CONFIGS[kind]}, kind)
    spec = describe(config)
    layout = make_layout(spec, rows=transitions, n_envs=1, frame_stack=config.frame_stack, n_step=1, gamma=config.gamma)
    batch = empty_columns(spec, {}, 1, EPOCH)
    batch["obs"][:] = np.random.default_rng(0).integers(0, 256, batch["obs"].shape)
    batch["valid"][:] = True

    # What the first writes need for themselves is not the replay's: a small one takes them, and stays.
    small = layout._replace(rows=2 * EPOCH)
    other = Replay(small, HostStorage(small))
    other.add(batch, 0, EPOCH, None)

    before = resident_mb(os.getpid())
    replay = Replay(layout, HostStorage(layout))
    while replay.count < transitions:
        replay.add(batch, 0, EPOCH, None)
    after = resident_mb(os.getpid())
    frames = transitions * int(np.prod(FRAME)) / 2**20 if kind == "frames" else None
    return {"transitions": replay.count, "grown_mb": round(after - before, 2), "frames_mb": frames}


if __name__ == "__main__":
    print(json.dumps(grown_mb(sys.argv[1], int(sys.argv[2]))), flush=True)
