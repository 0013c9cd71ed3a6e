"""Environments so small that the right answer is known: a learner that misses it has a bug, and mostly shows which.

Use as env_id, e.g. "gymnasium_solver.envs.probes:ConstantReward". Values are with discount gamma.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Observation = np.ndarray
Result = tuple[Observation, float, bool, bool, dict[str, Any]]


def _signal(value: float) -> Observation:
    return np.array([value], np.float32)


class _OneNumber(gym.Env):
    """A single number observed, in [-1, 1]."""

    observation_space: spaces.Space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)

    is_signed = False  # whether -1 or +1 is shown, drawn at random; else 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        super().reset(seed=seed)
        self._time, self._shown = 0, 0.0
        if self.is_signed:
            self._shown = 1.0 if self.np_random.random() < 0.5 else -1.0
        return _signal(self._shown), self._info()

    def _info(self) -> dict[str, Any]:
        return {}


class ConstantReward(_OneNumber):
    """One step, reward 1. Answer: V(0) = 1. Wrong: the value loss or its optimiser."""

    def step(self, action: Any) -> Result:
        return _signal(0), 1.0, True, False, {}


class ObservationReward(_OneNumber):
    """One step, reward equal to the observation, -1 or +1. Answer: V(-1) = -1, V(1) = 1. Wrong: backpropagation."""

    is_signed = True

    def step(self, action: Any) -> Result:
        return _signal(self._shown), self._shown, True, False, {}


class DelayedReward(_OneNumber):
    """Two steps, observations 0 then 1, reward 0 then 1. Answer: V(0) = gamma, V(1) = 1. Wrong: the discount."""

    def step(self, action: Any) -> Result:
        self._time += 1
        last = self._time == 2
        return _signal(1), float(last), last, False, {}


class ActionReward(_OneNumber):
    """One step, reward +1 for action 1 and -1 for action 0. Answer: policy takes 1, V(0) = 1. Wrong: its gradient."""

    def step(self, action: Any) -> Result:
        return _signal(0), 1.0 if int(action) == 1 else -1.0, True, False, {}


class ObservationActionReward(_OneNumber):
    """One step, reward +1 when the action (0, 1) matches the sign shown (-1, +1), else -1.

    Answer: policy takes 0 at -1 and 1 at +1, V(-1) = V(1) = 1. Wrong: observations and actions are paired up wrongly.
    """

    is_signed = True

    def step(self, action: Any) -> Result:
        matches = (int(action) == 1) == (self._shown > 0)
        return _signal(self._shown), 1.0 if matches else -1.0, True, False, {}


class EndlessReward(_OneNumber):
    """Reward 1 for ever, the episode only cut off (truncated) after `limit` steps.

    Answer: V(0) = 1 / (1 - gamma), since a cut is no ending. Taking truncation for termination gives far less:
    about the mean of (1 - gamma^k) / (1 - gamma) over k = 1 … limit. Autoreset rows that are learned from pull it down.
    """

    def __init__(self, limit: int = 10) -> None:
        self.limit = limit

    def step(self, action: Any) -> Result:
        self._time += 1
        return _signal(0), 1.0, False, self._time == self.limit, {}


class ContinuousAction(_OneNumber):
    """One step, reward 1 - (a - 0.5)^2 for an action a in [-1, 1].

    Answer: the mean action is 0.5; V(0) = 1 - the variance of the policy around it. Wrong: its log-probabilities.
    """

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: Any) -> Result:
        return _signal(0), 1.0 - float(action[0] - 0.5) ** 2, True, False, {}


class ContinuousObservationAction(_OneNumber):
    """One step, reward 1 - (a - s)^2 for an action a in [-2, 2] and a shown s of -1 or +1.

    Answer: the mean action is s (-0.5 and 0.5 before scaling to the bounds). Wrong: pairing or action scaling.
    """

    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)
    is_signed = True

    def step(self, action: Any) -> Result:
        return _signal(self._shown), 1.0 - float(action[0] - self._shown) ** 2, True, False, {}


class MaskedAction(_OneNumber):
    """One step, four actions, reward = action, but `info["action_mask"]` forbids action 3 (which would raise).

    Answer: policy takes 2 and never 3, V(0) = 2. Wrong: masks are lost or applied after the softmax.
    """

    action_space = spaces.Discrete(4)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": np.array([1, 1, 1, 0], np.int8)}

    def step(self, action: Any) -> Result:
        if int(action) == 3:
            raise ValueError("action 3 is forbidden by the action mask")
        return _signal(0), float(action), True, False, self._info()


class Bandit(gym.Env):
    """One step, three arms that pay 0.2, 0.8 and 0.5 on average, with noise. There is one thing to observe.

    Answer: the second arm, and its mean as its value. Wrong: exploration that stops at the first arm that pays.
    """

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(3)
    means = (0.2, 0.8, 0.5)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, self.means[int(action)] + 0.3 * float(self.np_random.standard_normal()), True, False, {}
