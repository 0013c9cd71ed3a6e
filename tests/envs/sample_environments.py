"""Small environments for the tests: every space, a known clock, and misbehaviour on demand."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

SPACES: dict[str, spaces.Space] = {
    "vector": spaces.Box(-1, 1, (3,), np.float32),
    "double": spaces.Box(-1, 1, (3,), np.float64),
    "scalar": spaces.Box(-1, 1, (), np.float32),
    "matrix": spaces.Box(-1, 1, (2, 3), np.float32),
    "integers": spaces.Box(0, 9, (4,), np.int64),
    "ram": spaces.Box(0, 255, (128,), np.uint8),
    "grid": spaces.Box(0, 10, (7, 7, 3), np.uint8),
    "image": spaces.Box(0, 255, (30, 24, 3), np.uint8),
    "grey": spaces.Box(0, 255, (30, 24), np.uint8),
    "channels_first": spaces.Box(0, 255, (3, 30, 24), np.uint8),
    "stacked": spaces.Box(0, 255, (4, 30, 24, 3), np.uint8),
    "discrete": spaces.Discrete(5, start=-2),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi_binary": spaces.MultiBinary(6),
    "dict": spaces.Dict({"where": spaces.Discrete(3), "what": spaces.Box(0, 255, (2, 2), np.uint8)}),
    "tuple": spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Dict({"deep": spaces.MultiBinary(2)}))),
    "mission": spaces.Dict({"image": spaces.Box(0, 255, (30, 24, 3), np.uint8), "mission": spaces.Text(9)}),
    "text": spaces.Text(5),
    "sequence": spaces.Sequence(spaces.Discrete(2)),
}

ACTIONS: dict[str, spaces.Space] = {
    "discrete": spaces.Discrete(3, start=5),
    "multi_discrete": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "multi_binary": spaces.MultiBinary(3),
    "box": spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32)),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "half_bounded": spaces.Box(np.array([0, -1], np.float32), np.array([np.inf, 1], np.float32)),
    "square": spaces.Box(-1, 1, (2, 2), np.float64),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([3, 4]))),
    "dict": spaces.Dict({"a": spaces.Box(-1, 1, (1,)), "b": spaces.Box(0, 4, (2,))}),
    "mixed": spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (1,)))),
    "text": spaces.Text(3),
}


class AnySpace(gym.Env):
    """Samples its observation space, refuses actions outside its action space; five steps, then terminated."""

    def __init__(self, observation: str = "vector", action: str = "discrete") -> None:
        self.observation_space = SPACES[observation]
        self.action_space = ACTIONS[action]
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is not in {self.action_space}")
        self.taken.append(action)
        self.time += 1
        return self.observation_space.sample(), 1.0, self.time == 5, False, {}


class Clock(gym.Env):
    """Observes (episode, step of the episode, random number, last action); ends after `length` steps.

    Odd episodes are cut (truncated), even ones terminate. The reward is the step's number.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, length: int = 4, seconds: float = 0.0) -> None:
        self.length, self.seconds = length, seconds
        self.episode = -1

    def _seen(self, action: float) -> np.ndarray:
        return np.array([self.episode, self.time, self.np_random.random(), action], np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1  # on purpose not put back by the seed: only a new object starts from nothing
        self.time = 0
        return self._seen(-1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.time < self.length, "stepped after the end"
        time.sleep(self.seconds)
        self.time += 1
        over = self.time == self.length
        return (
            self._seen(float(action)),
            float(self.time),
            over and self.episode % 2 == 0,
            over and self.episode % 2 == 1,
            {},
        )


class Masked(gym.Env):
    """Two components of 2 and 3 choices; the mask allows choice `step % 3` of the second, and is missing on step 2."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.MultiDiscrete([2, 3])

    def _info(self) -> dict[str, Any]:
        if self.time == 2:
            return {}
        second = np.arange(3) == self.time % 3
        return {"action_mask": (np.ones(2, np.int8), second.astype(np.int8))}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return np.zeros(1, np.float32), 0.0, False, False, self._info()


class Faulty(gym.Env):
    """Goes wrong in the chosen way on its 60th step: after any trial run, in the middle of training."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, how: str) -> None:
        self.how = how

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.time += 1
        obs: Any = np.zeros(3, np.float32)
        reward: Any = 0.0
        if self.time == 60:
            if self.how == "raises":
                raise RuntimeError("the motor is on fire")
            if self.how == "dies":
                import os

                os._exit(7)
            obs = {"shape": np.zeros(4, np.float32), "scalar": 0.0, "type": np.array(["a", "b", "c"])}.get(
                self.how, obs
            )
            reward = "much" if self.how == "reward" else reward
        return obs, reward, False, False, {}


class NeedsArgument(gym.Wrapper):
    """A wrapper of the user's own, with an argument."""

    def __init__(self, env: gym.Env, bonus: float) -> None:
        super().__init__(env)
        self.bonus = bonus

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(reward) + self.bonus, terminated, truncated, info


NOT_AN_ENVIRONMENT = dict


class NoObservationSpace(gym.Env):
    """Forgot one of its spaces."""

    action_space = spaces.Discrete(2)


class NoActionSpace(gym.Env):
    """Has a number where a space belongs."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space: Any = 2
