"""Environments of other JAX libraries in the pure protocol, recognised by the methods they have.

Their step returns everything at once, so the adapted state carries the last observation, reward and ending along.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from gymnasium_solver.envs.compiled.protocol import Array, PureEnvironment
from gymnasium_solver.envs.compiled.styles import style_of
from gymnasium_solver.errors import ConfigError

_NO_LIMIT = 2**30  # steps


def adapted(environment: Any, name: str) -> PureEnvironment:
    style = style_of(environment)
    if style == "gymnax":
        return Gymnax(environment, name)
    if style == "brax":
        return Brax(environment)
    pure: PureEnvironment = environment
    return pure


class Carried(NamedTuple):
    inner: Any  # the library's own state
    observation: Array
    reward: Array
    terminated: Array


class _Carrying:
    """What follows from carrying everything along."""

    max_episode_steps: int | None = None
    has_own_limit = True  # it behaves differently past its limit, so that only a shorter one can take its place

    def observation(self, state: Carried, rng: Array) -> Array:
        return state.observation

    def reward(self, state: Carried, action: Array, next_state: Carried, rng: Array) -> Array:
        return next_state.reward

    def terminal(self, state: Carried, rng: Array) -> Array:
        return state.terminated


class Gymnax(_Carrying):
    """`reset_env(key, params)`, `step_env(key, state, action, params)`, `default_params`.

    Its `done` is also set at the time limit `params.max_steps_in_episode`. Where `is_terminal(state, params)` says what
    would be over without that limit, only this is a termination, and the limit becomes `max_episode_steps`, a
    truncation. Without it, all of `done` is a termination.
    """

    def __init__(self, environment: Any, name: str) -> None:
        self.wrapped, self._params = environment, environment.default_params
        self.observation_space = _gymnasium_space(environment.observation_space(self._params), name)
        self.action_space = _gymnasium_space(environment.action_space(self._params), name)
        limit = getattr(self._params, "max_steps_in_episode", None)
        self._endless: Any = None
        if limit is not None and hasattr(environment, "is_terminal") and hasattr(self._params, "replace"):
            self._endless = self._params.replace(max_steps_in_episode=_NO_LIMIT)
            self.max_episode_steps = int(limit)

    def initial(self, rng: Array) -> Carried:
        observation, inner = self.wrapped.reset_env(rng, self._params)
        return Carried(inner, observation, jnp.float32(0), jnp.bool_(False))

    def transition(self, state: Carried, action: Array, rng: Array) -> Carried:
        observation, inner, reward, done, _ = self.wrapped.step_env(rng, state.inner, action, self._params)
        if self._endless is not None:
            done = self.wrapped.is_terminal(inner, self._endless)
        return Carried(inner, observation, jnp.asarray(reward, jnp.float32), jnp.asarray(done, bool))


class Brax(_Carrying):
    """`reset(rng)` and `step(state, action)` that return a state with `obs`, `reward`, `done`; actions in [-1, 1].

    An EpisodeWrapper's limit is `episode_length`, and `info["truncation"]` tells it from an ending.
    """

    def __init__(self, environment: Any) -> None:
        self.wrapped = environment
        self.observation_space = spaces.Box(-np.inf, np.inf, (environment.observation_size,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (environment.action_size,), np.float32)
        self.max_episode_steps = getattr(environment, "episode_length", None)

    def initial(self, rng: Array) -> Carried:
        return self._carried(self.wrapped.reset(rng))

    def transition(self, state: Carried, action: Array, rng: Array) -> Carried:
        return self._carried(self.wrapped.step(state.inner, action))

    def _carried(self, inner: Any) -> Carried:
        cut = (getattr(inner, "info", None) or {}).get("truncation", False)
        ended = jnp.asarray(inner.done, bool) & ~jnp.asarray(cut, bool)
        return Carried(inner, inner.obs, jnp.asarray(inner.reward, jnp.float32), ended)


def _gymnasium_space(space: Any, name: str) -> gym.Space:
    if isinstance(space, gym.Space):
        return space
    if hasattr(space, "n"):
        return spaces.Discrete(int(space.n))
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = (np.broadcast_to(np.asarray(bound, np.float32), space.shape) for bound in (space.low, space.high))
        return spaces.Box(low, high, dtype=np.float32)
    raise ConfigError(
        f"env_id: {name} has a {type(space).__name__} space, which the compiled engine does not serve; wrap it in an "
        "environment with Box or Discrete spaces"
    )
