"""A pure environment as a gymnasium.Env, for everything that steps one environment at a time: evaluation, play."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registration

from gymnasium_solver.envs.compiled import protocol
from gymnasium_solver.envs.compiled.adapters import adapted
from gymnasium_solver.envs.compiled.protocol import Array, Outcome, PureEnvironment, State
from gymnasium_solver.envs.compiled.purity import require_pure


class Shared(NamedTuple):
    """One instance and its compiled functions for all environments of a config: being pure, it holds nothing of any."""

    environment: PureEnvironment
    begin: Callable[[np.uint32], tuple[State, Array]]  # of the seed of an episode
    step: Callable[[State, np.ndarray, np.uint32, int], Outcome]  # of state, action, that seed, and the time in it


_made: dict[tuple[Callable[..., Any], str], Shared] = {}


def shared(factory: Callable[..., Any], arguments: dict[str, Any], name: str) -> Shared:
    """What the factory makes of the arguments, checked to be pure."""
    key = (factory, json.dumps(arguments, sort_keys=True, default=repr))
    if key not in _made:
        environment = adapted(factory(**arguments), name)
        require_pure(environment, name)
        _made[key] = _compiled(environment)
    return _made[key]


def _compiled(environment: PureEnvironment) -> Shared:
    def begin(seed: Any) -> tuple[State, Array]:
        return protocol.begin(environment, jax.random.key(seed))

    def step(state: State, action: Any, seed: Any, time: Any) -> Outcome:
        return protocol.step(environment, state, action, jax.random.fold_in(jax.random.key(seed), time))

    made = Shared(environment, jax.jit(begin), jax.jit(step))
    # Compiled here: a first step that takes as long would make the environment look slow to whoever times it.
    seed = np.uint32(0)
    made.step(made.begin(seed)[0], _taken(environment.action_space.sample()), seed, 1)
    return made


def _taken(action: Any) -> np.ndarray:
    is_number = np.asarray(action).dtype.kind == "f"
    return np.asarray(action, np.float32 if is_number else np.int32)


class HostEnv(gym.Env):
    """All randomness of an episode follows from a seed of its own, drawn by the generator that `reset` seeds."""

    def __init__(self, made: Shared, name: str) -> None:
        self.observation_space = made.environment.observation_space
        self.action_space = made.environment.action_space
        self.spec = Registration(name, reward_threshold=protocol.threshold(made.environment, name))
        self._begin, self._step = made.begin, made.step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed = np.uint32(self.np_random.integers(2**32))
        self._time = 0
        self._state, observation = self._begin(self._seed)
        return self._seen(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._time += 1
        outcome = self._step(self._state, _taken(action), self._seed, self._time)
        self._state = outcome.state
        return self._seen(outcome.observation), float(outcome.reward), bool(outcome.terminated), False, {}

    def _seen(self, observation: Array) -> Any:
        array = np.asarray(observation)
        return int(array) if isinstance(self.observation_space, gym.spaces.Discrete) else array
