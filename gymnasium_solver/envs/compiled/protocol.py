"""The pure protocol: an environment as functions of its state, with the names of Gymnasium's own functional API.

State is any pytree of arrays, `rng` a JAX key. Nothing may be kept on `self`: one instance stands for all environments
of a run, and its methods are traced once, then run compiled. Two attributes are optional: `max_episode_steps`, after
which an episode is truncated, and `reward_threshold`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np

from gymnasium_solver.errors import ConfigError

Array = jax.Array
State = Any


class PureEnvironment(Protocol):
    @property
    def observation_space(self) -> gym.Space: ...
    @property
    def action_space(self) -> gym.Space: ...
    def initial(self, rng: Array) -> State: ...
    def transition(self, state: State, action: Array, rng: Array) -> State: ...
    def observation(self, state: State, rng: Array) -> Array: ...
    def reward(self, state: State, action: Array, next_state: State, rng: Array) -> Array: ...
    def terminal(self, state: State, rng: Array) -> Array: ...


class Outcome(NamedTuple):
    """Of one step of one environment."""

    state: State
    observation: Array  # as the environment has it: `spaces.observation_encoder` makes it the policy's
    reward: Array  # float32
    terminated: Array  # bool


KEYS = 6  # that `begin` and `step` have a use for


def draw_keys(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """[*shape, KEYS, 2]. Drawn on the host: splitting keys inside a program takes longer to compile than most
    environments."""
    return rng.integers(0, 2**32, (*shape, KEYS, 2), dtype=np.uint32)


def begin(environment: PureEnvironment, keys: Array) -> tuple[State, Array]:
    """The state and the observation that an episode begins with; keys [KEYS, 2]."""
    start, look = keys[:2]
    state = _with_fixed_types(environment.initial(start))
    return state, jnp.asarray(environment.observation(state, look))


def step(environment: PureEnvironment, state: State, action: Array, keys: Array) -> Outcome:
    """One step; keys [KEYS, 2], none of them those of `begin`."""
    move, pay, end, look = keys[2:]
    after = _with_fixed_types(environment.transition(state, action, move))
    return Outcome(
        after,
        jnp.asarray(environment.observation(after, look)),
        jnp.asarray(environment.reward(state, action, after, pay), jnp.float32),
        jnp.asarray(environment.terminal(after, end), bool),
    )


def time_limit(environment: PureEnvironment, name: str) -> int | None:
    limit = getattr(environment, "max_episode_steps", None)
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1):
        return limit
    raise ConfigError(
        f"env_id: {name} has max_episode_steps {limit!r}, which is no number of steps; give it a whole number from 1 "
        "on, or None"
    )


def threshold(environment: PureEnvironment, name: str) -> float | None:
    value = getattr(environment, "reward_threshold", None)
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise ConfigError(
            f"env_id: {name} has reward_threshold {value!r}, which is no return; give it a number, or None"
        ) from None


def _with_fixed_types(state: State) -> State:
    """A Python number in the state takes its type from what it is combined with; a loop needs one that stays."""

    def fixed(leaf: Any) -> Array:
        dtype = jnp.result_type(leaf)
        return leaf if jnp.issubdtype(dtype, jax.dtypes.extended) else jnp.asarray(leaf, dtype)

    return jax.tree.map(fixed, state)
