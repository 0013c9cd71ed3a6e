"""Environments with something wrong: each wrapper is one fault of an observation, a reward, an action or an ending."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class ConstantObservation(gym.ObservationWrapper):
    """The sensor is not connected."""

    def observation(self, observation: Any) -> Any:
        return 0 * observation


class MaskedObservation(gym.ObservationWrapper):
    """Some components are missing (velocities, where they are named so)."""

    def __init__(self, env: gym.Env, dims: tuple[int, ...]) -> None:
        super().__init__(env)
        self._dims = list(dims)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        seen = observation.copy()
        seen[self._dims] = 0.0
        return seen


class NoisyObservation(gym.ObservationWrapper):
    """Fresh Gaussian noise on every component."""

    def __init__(self, env: gym.Env, std: float) -> None:
        super().__init__(env)
        self._std = std

    def observation(self, observation: np.ndarray) -> np.ndarray:
        noise = self.np_random.normal(0.0, self._std, observation.shape)
        return (observation + noise).astype(observation.dtype)


class ScaledObservation(gym.ObservationWrapper):
    """Millimetres instead of metres."""

    def __init__(self, env: gym.Env, factor: float) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Box)
        self._factor = factor
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, space.shape, np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return (self._factor * observation).astype(np.float32)


class ShuffledObservation(gym.ObservationWrapper):
    """A discrete observation that says nothing of the state."""

    def observation(self, observation: Any) -> int:
        assert isinstance(self.observation_space, gym.spaces.Discrete)
        return int(self.np_random.integers(self.observation_space.n))


class ScaledReward(gym.RewardWrapper):
    def __init__(self, env: gym.Env, factor: float) -> None:
        super().__init__(env)
        self._factor = factor

    def reward(self, reward: Any) -> float:
        return self._factor * float(reward)


class ConstantReward(gym.RewardWrapper):
    def __init__(self, env: gym.Env, value: float = 0.0) -> None:
        super().__init__(env)
        self._value = value

    def reward(self, reward: Any) -> float:
        return self._value


class SparseReward(gym.Wrapper):
    """Nothing until the episode has lasted so many steps; then what it would have got all the time."""

    def __init__(self, env: gym.Env, from_step: int) -> None:
        super().__init__(env)
        self._from, self._taken = from_step, 0

    def reset(self, **arguments: Any) -> Any:
        self._taken = 0
        return self.env.reset(**arguments)

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._taken += 1
        return obs, float(reward) if self._taken > self._from else 0.0, terminated, truncated, info


class IgnoredAction(gym.Wrapper):
    """What is done is chance, whatever the policy chose."""

    def step(self, action: Any) -> Step:
        space = self.action_space
        if isinstance(space, gym.spaces.Discrete):
            chosen: Any = int(self.np_random.integers(space.n))
        else:
            assert isinstance(space, gym.spaces.Box)
            chosen = self.np_random.uniform(space.low, space.high).astype(space.dtype)
        return self.env.step(chosen)  # type: ignore[return-value]


class ScaledAction(gym.ActionWrapper):
    """A gain between policy and actuator that nobody knows of."""

    def __init__(self, env: gym.Env, factor: float) -> None:
        super().__init__(env)
        self._factor = factor

    def action(self, action: Any) -> Any:
        return self._factor * action


class TerminatingTimeLimit(gym.Wrapper):
    """The time limit says `terminated`, as environments did before Gymnasium told the two apart."""

    def __init__(self, env: gym.Env, steps: int) -> None:
        super().__init__(env)
        self._limit, self._taken = steps, 0

    def reset(self, **arguments: Any) -> Any:
        self._taken = 0
        return self.env.reset(**arguments)

    def step(self, action: Any) -> Step:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._taken += 1
        return obs, float(reward), terminated or self._taken >= self._limit, truncated, info


class FailingEnvironment(gym.Wrapper):
    """Raises in the midst of training, as simulators do."""

    def __init__(self, env: gym.Env, after_steps: int) -> None:
        super().__init__(env)
        self._left = after_steps

    def step(self, action: Any) -> Step:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("simulator: contact buffer is full")
        return self.env.step(action)  # type: ignore[return-value]


class BrokenSensor(gym.ObservationWrapper):
    """Not a number, now and then."""

    def __init__(self, env: gym.Env, after_steps: int) -> None:
        super().__init__(env)
        self._left = after_steps

    def observation(self, observation: np.ndarray) -> np.ndarray:
        self._left -= 1
        return observation if self._left > 0 else np.full_like(observation, np.nan)
