"""Wrappers by the names used in `env_wrappers`: Gymnasium's own where it has one, two of ours where it has not."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces, wrappers

from gymnasium_solver.envs import named
from gymnasium_solver.errors import ConfigError, MissingExtraError


class FrameSkip(gym.Wrapper):
    """Repeat each action `skip` times, or until the episode ends; rewards are summed."""

    def __init__(self, env: gym.Env, skip: int) -> None:
        super().__init__(env)
        if skip < 1:
            raise ValueError(f"skip is {skip}, has to be at least 1")
        self.skip = skip

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        for _ in range(self.skip):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


class RewardRecord(gym.Wrapper):
    """Keeps the rewards as they are before built-in wrappers change them: returns are in the environment's own."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self._sum = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._sum = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        return obs, reward, terminated, truncated, info

    def take_reward(self) -> float:
        """The sum since the last time: a wrapper outside may take several steps at once."""
        taken, self._sum = self._sum, 0.0
        return taken


class ObservationNoise(gym.ObservationWrapper):
    """Add Gaussian noise drawn from the environment's own generator, so that its seed covers the noise too."""

    def __init__(self, env: gym.Env, std: float) -> None:
        super().__init__(env)
        if not isinstance(env.observation_space, spaces.Box):
            raise ValueError(f"observations are {type(env.observation_space).__name__}, noise needs Box")
        if std < 0:
            raise ValueError(f"std is {std}, has to be 0 or more")
        self.std = std
        self._dtype = env.observation_space.dtype
        if not np.issubdtype(self._dtype, np.integer):  # noise leaves the bounds; whole numbers are clipped to them
            self.observation_space = spaces.Box(-np.inf, np.inf, env.observation_space.shape, self._dtype.type)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        noisy = observation + self.std * self.np_random.standard_normal(observation.shape)
        if np.issubdtype(self._dtype, np.integer):
            bounds = np.iinfo(self._dtype)
            noisy = np.clip(np.rint(noisy), bounds.min, bounds.max)
        return noisy.astype(self._dtype)


def _frame_stack(env: gym.Env, frames: int) -> gym.Env:
    return wrappers.FrameStackObservation(env, stack_size=frames)


def _grey(env: gym.Env) -> gym.Env:
    return wrappers.GrayscaleObservation(env, keep_dim=False)


def _resize(env: gym.Env, height: int, width: int | None = None) -> gym.Env:
    return wrappers.ResizeObservation(env, (height, width or height))


def _sticky_actions(env: gym.Env, probability: float = 0.25) -> gym.Env:
    return wrappers.StickyAction(env, repeat_action_probability=probability)


def _time_limit(env: gym.Env, max_episode_steps: int) -> gym.Env:
    return wrappers.TimeLimit(env, max_episode_steps=max_episode_steps)


def _reward_scale(env: gym.Env, scale: float) -> gym.Env:
    return wrappers.TransformReward(env, lambda reward: scale * float(reward))


def _reward_clip(env: gym.Env, bound: float = 1.0, *, low: float | None = None, high: float | None = None) -> gym.Env:
    """Between -bound and bound; `low` and `high` where the two differ."""
    return wrappers.ClipReward(
        env, min_reward=-bound if low is None else low, max_reward=bound if high is None else high
    )


def _max_and_skip(env: gym.Env, skip: int = 4) -> gym.Env:
    return wrappers.MaxAndSkipObservation(env, skip=skip)


NAMED: dict[str, Callable[..., gym.Env]] = {
    "flatten": wrappers.FlattenObservation,
    "frame_skip": FrameSkip,
    "frame_stack": _frame_stack,
    "grey": _grey,
    "max_and_skip": _max_and_skip,
    "observation_noise": ObservationNoise,
    "resize": _resize,
    "reward_clip": _reward_clip,
    "reward_scale": _reward_scale,
    "sticky_actions": _sticky_actions,
    "time_aware": wrappers.TimeAwareObservation,
    "time_limit": _time_limit,
}


CHANGES_REWARD = ("reward_clip", "reward_scale")


def changes_reward(entry: str | dict[str, Any]) -> bool:
    """Whether it is one of ours that changes what is learnt from, not what the environment pays."""
    return _parse(entry)[0] in CHANGES_REWARD


def apply_wrapper(env: gym.Env, entry: str | dict[str, Any]) -> gym.Env:
    """Wrap as one entry of `env_wrappers` says: name, {name: {argument: value}}, {name: value}, or module:Class."""
    name, arguments = _parse(entry)
    factory = named.wrapper(name) if ":" in name else NAMED.get(name)
    if factory is None:
        nearest = difflib.get_close_matches(name, NAMED, n=1, cutoff=0)[0]
        raise ConfigError(
            f"env_wrappers: {name!r} is not a wrapper; nearest is {nearest!r} (there are {', '.join(NAMED)}; "
            "a class of your own is written module:Class)"
        )
    positional, keywords = ((), arguments) if isinstance(arguments, dict) else ((arguments,), {})
    try:
        inspect.signature(factory).bind(env, *positional, **keywords)
    except TypeError as error:
        accepted = ", ".join(list(inspect.signature(factory).parameters)[1:]) or "none"
        raise ConfigError(f"env_wrappers: {name}: {error}; its arguments are: {accepted}") from error
    try:
        return factory(env, *positional, **keywords)
    except gym.error.DependencyNotInstalled as error:
        raise MissingExtraError(f"wrapper {name}", "atari") from error
    except Exception as error:  # the constructor may be anyone's
        raise ConfigError(
            f"env_wrappers: {name} with {arguments} does not fit this environment: {type(error).__name__}: {error}"
        ) from error


def _parse(entry: str | dict[str, Any]) -> tuple[str, Any]:
    if isinstance(entry, str):
        return entry, {}
    if len(entry) != 1:
        raise ConfigError(f"env_wrappers: {entry} has {len(entry)} keys; write one wrapper per entry, - name: {{...}}")
    (name, arguments), *_ = entry.items()
    return name, {} if arguments is None else arguments
