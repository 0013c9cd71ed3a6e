"""What an algorithm is: pure functions of its state. No base class, no hidden state, no environments or files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array

from gymnasium_solver.ops.scalars import Scalars

State = dict[str, Any]
Actor = dict[str, Any]


class Worth(NamedTuple):
    """What an update took the rows of its rollout to be worth, [T, N] each; the caller makes statistics of it."""

    advantage: Array
    value: Array
    target: Array


class ActionSpace(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def dim(self) -> int: ...


class Spaces(Protocol):
    """The part of an environment's description that an algorithm needs."""

    @property
    def obs_shape(self) -> tuple[int, ...]: ...
    @property
    def is_image(self) -> bool: ...
    @property
    def action(self) -> Any: ...


class Algorithm(NamedTuple):
    """`update` and `act` are compiled by the caller, once each; randomness comes in as arrays.

    A rollout batch holds obs [T+1, N, …], action [T, N, …], reward, terminated, truncated, valid [T, N] and, where
    the environment gives one, action_mask [T, N, A]. Row t's successor is obs[t+1]; rows with valid = 0 are resets.
    """

    init: Callable[[np.random.Generator], State]
    actor: Callable[[State], Actor]  # the part of the state that acting needs
    act: Callable[[Actor, Array, Array, Array | None], Array]  # actor, obs [N, …], noise [N, …], mask → action
    act_greedy: Callable[[Actor, Array, Array | None], Array]
    value: Callable[[State, Array], Array]  # what the state is thought to be worth, obs [B, …] → [B]
    draw_noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    draw_shuffle: Callable[[np.random.Generator], np.ndarray]  # row order of the minibatches of one update
    update: Callable[[State, dict[str, Array], dict[str, Array], Array], tuple[State, Scalars, Worth]]
    forget_episodes: Callable[[State], State]  # environments began anew: drop what is kept of episodes in flight
    scheduled: tuple[str, ...]  # config fields that `update` takes as numbers in force
    gradient_steps: int  # of one update
