"""The environments of `envs/probes.py` as pure ones, with the same answers, for what the compiled engine teaches.

Use as env_id, e.g. "gymnasium_solver.envs.compiled.probes:ConstantReward". The compiled engine takes no wrappers, so
what tests do with wrappers on the host is an argument here: `as_kind` shows -1, 0 and 1 as three kinds (for a table),
and `any_action` takes a continuous action and ignores it. There are no action masks in the pure protocol, hence no
MaskedAction.
"""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

Array = jax.Array


class Seen(NamedTuple):
    shown: Array  # -1, 0 or 1
    time: Array


def _sign(rng: Array) -> Array:
    return jnp.where(jax.random.bernoulli(rng), 1.0, -1.0)


class _OneNumber:
    """A single number observed, in [-1, 1]; one step."""

    action_space: gym.Space = spaces.Discrete(2)

    def __init__(self, as_kind: bool = False, any_action: bool = False) -> None:
        self.as_kind = as_kind
        self.observation_space = spaces.Discrete(3) if as_kind else spaces.Box(-1.0, 1.0, (1,), np.float32)
        if any_action:
            self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def initial(self, rng: Array) -> Seen:
        return Seen(jnp.float32(0), jnp.int32(0))

    def transition(self, state: Seen, action: Array, rng: Array) -> Seen:
        return Seen(state.shown, state.time + 1)

    def observation(self, state: Seen, rng: Array) -> Array:
        return state.shown.astype(jnp.int32) + 1 if self.as_kind else state.shown[None]

    def terminal(self, state: Seen, rng: Array) -> Array:
        return state.time == 1


class _RandomSign(_OneNumber):
    """The number is -1 or +1."""

    def initial(self, rng: Array) -> Seen:
        return Seen(_sign(rng), jnp.int32(0))


class ConstantReward(_OneNumber):
    """One step, reward 1. Answer: V(0) = 1."""

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return jnp.float32(1)


class ObservationReward(_RandomSign):
    """One step, reward equal to the observation, -1 or +1. Answer: V(-1) = -1, V(1) = 1."""

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return state.shown


class DelayedReward(_OneNumber):
    """Two steps, observations 0 then 1, reward 0 then 1. Answer: V(0) = gamma, V(1) = 1."""

    def transition(self, state: Seen, action: Array, rng: Array) -> Seen:
        return Seen(jnp.float32(1), state.time + 1)

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return jnp.where(next_state.time == 2, 1.0, 0.0)

    def terminal(self, state: Seen, rng: Array) -> Array:
        return state.time == 2


class ActionReward(_OneNumber):
    """One step, reward +1 for action 1 and -1 for action 0. Answer: policy takes 1, V(0) = 1."""

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return jnp.where(action == 1, 1.0, -1.0)


class ObservationActionReward(_RandomSign):
    """One step, reward +1 when the action (0, 1) matches the sign shown (-1, +1), else -1.

    Answer: policy takes 0 at -1 and 1 at +1, V(-1) = V(1) = 1.
    """

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return jnp.where((action == 1) == (state.shown > 0), 1.0, -1.0)


class EndlessReward(_OneNumber):
    """Reward 1 for ever, the episode only cut off (truncated) after `limit` steps. Answer: V(0) = 1 / (1 - gamma)."""

    def __init__(self, limit: int = 10, as_kind: bool = False, any_action: bool = False) -> None:
        super().__init__(as_kind, any_action)
        self.max_episode_steps = limit

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return jnp.float32(1)

    def terminal(self, state: Seen, rng: Array) -> Array:
        return jnp.bool_(False)


class ContinuousAction(_OneNumber):
    """One step, reward 1 - (a - 0.5)^2 for an action a in [-1, 1]. Answer: the mean action is 0.5."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return 1 - (action[0] - 0.5) ** 2


class ContinuousObservationAction(_RandomSign):
    """One step, reward 1 - (a - s)^2 for an action a in [-2, 2] and a shown s of -1 or +1. Answer: the mean is s."""

    action_space = spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reward(self, state: Seen, action: Array, next_state: Seen, rng: Array) -> Array:
        return 1 - (action[0] - state.shown) ** 2


class Bandit:
    """One step, three arms that pay 0.2, 0.8 and 0.5 on average, with noise. Answer: the second arm, and its mean."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(3)
    means = (0.2, 0.8, 0.5)

    def initial(self, rng: Array) -> Array:
        return jnp.int32(0)

    def transition(self, state: Array, action: Array, rng: Array) -> Array:
        return state + 1

    def observation(self, state: Array, rng: Array) -> Array:
        return jnp.int32(0)

    def reward(self, state: Array, action: Array, next_state: Array, rng: Array) -> Array:
        return jnp.array(self.means)[action] + 0.3 * jax.random.normal(rng)

    def terminal(self, state: Array, rng: Array) -> Array:
        return state == 1
