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
    begin: Callable[[np.ndarray], tuple[State, Array]]  # of keys
    step: Callable[[State, np.ndarray, np.ndarray], Outcome]  # of state, action and keys


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
    def step(state: State, action: Any, keys: Any) -> Outcome:
        return protocol.step(environment, state, action, keys)

    made = Shared(environment, jax.jit(lambda keys: protocol.begin(environment, keys)), jax.jit(step))
    # Compiled here: a first step that takes as long would make the environment look slow to whoever times it.
    keys = protocol.draw_keys(np.random.default_rng(0), ())
    made.step(made.begin(keys)[0], _taken(environment.action_space.sample()), keys)
    return made


def _taken(action: Any) -> np.ndarray:
    is_number = np.asarray(action).dtype.kind == "f"
    return np.asarray(action, np.float32 if is_number else np.int32)


class HostEnv(gym.Env):
    """All randomness follows from the generator that `reset` seeds."""

    def __init__(self, made: Shared, name: str) -> None:
        self.observation_space = made.environment.observation_space
        self.action_space = made.environment.action_space
        self.spec = Registration(name, reward_threshold=protocol.threshold(made.environment, name))
        self._begin, self._step = made.begin, made.step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state, observation = self._begin(protocol.draw_keys(self.np_random, ()))
        return self._seen(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        outcome = self._step(self._state, _taken(action), protocol.draw_keys(self.np_random, ()))
        self._state = outcome.state
        return self._seen(outcome.observation), float(outcome.reward), bool(outcome.terminated), False, {}

    def _seen(self, observation: Array) -> Any:
        array = np.asarray(observation)
        return int(array) if isinstance(self.observation_space, gym.spaces.Discrete) else array
