"""A small environment that is sound unless told otherwise: a point on a line, pushed left or right."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

LIMIT = 30


class Line(gym.Env):
    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, fault: str = "none") -> None:
        self.fault = fault

    def _seen(self) -> np.ndarray:
        seen = np.array([self.x, self.v, self.x * self.v], np.float32)
        if self.fault == "blind":
            seen[:] = 0.0
        if self.fault == "half-blind":
            seen[1] = 0.0
        if self.fault == "noise":
            seen += self.np_random.normal(0.0, 5.0, 3)
        if self.fault == "unseeded":
            seen += np.random.default_rng().normal(0.0, 0.01, 3)
        if self.fault == "large":
            seen *= 1e4
        if self.fault == "nan" and self.time > 3:
            seen[0] = np.nan
        return seen.astype(np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        self.x, self.v = (0.0, 0.1) if self.fault == "always-alike" else self.np_random.uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self.fault == "raises" and self.time == 25:
            raise RuntimeError("contact buffer is full")
        push = self.np_random.uniform(-1, 1) if self.fault == "deaf" else 2.0 * int(action) - 1.0
        self.time += 1
        self.v += 0.1 * push
        self.x += 0.1 * self.v
        reward = 1.0 + 0.1 * float(np.tanh(self.x))
        reward *= {"unpaid": 0.0, "opposed": -1.0, "rich": 1000.0}.get(self.fault, 1.0)
        over = self.time >= LIMIT
        ends_itself = self.fault == "no-truncation"
        return self._seen(), reward, over and ends_itself, over and not ends_itself, {}
