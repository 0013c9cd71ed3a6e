"""What the return of an episode can be, where an environment's rules say so: intervals of returns end there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

ANYTHING = (-math.inf, math.inf)
# From the rewards and time limits that the environments document.
BY_ENVIRONMENT = {
    "ALE/Pong-v5": (-21.0, 21.0),
    "Acrobot-v1": (-500.0, 0.0),
    "CartPole-v0": (0.0, 200.0),
    "CartPole-v1": (0.0, 500.0),
    "CliffWalking-v1": (-math.inf, -13.0),
    "FrozenLake-v1": (0.0, 1.0),
    "FrozenLake8x8-v1": (0.0, 1.0),
    "MountainCar-v0": (-200.0, 0.0),
    "MountainCarContinuous-v0": (-99.9, 100.0),
    "Pendulum-v1": (-200 * (math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2), 0.0),
}
CHANGES_IT = ("env_kwargs", "env_wrappers", "max_episode_steps", "reward")


def possible_returns(config: Mapping[str, Any]) -> tuple[float, float]:
    """Without bounds where nothing is known, or where the config may have changed rewards or the time limit."""
    if any(config.get(name) for name in CHANGES_IT):
        return ANYTHING
    return BY_ENVIRONMENT.get(str(config.get("env_id")), ANYTHING)
