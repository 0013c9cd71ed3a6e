"""What an algorithm is: pure functions of its state. No base class, no hidden state, no environments or files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array

from gymnasium_solver.ops.scalars import Scalars

State = dict[str, Any]
Actor = dict[str, Any]
Numbers = dict[str, float]


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
    def obs_sizes(self) -> tuple[int, ...]: ...
    @property
    def is_image(self) -> bool: ...
    @property
    def action(self) -> Any: ...


class Algorithm(NamedTuple):
    """`update` and `act` are compiled by the caller, once each; randomness comes in as arrays.

    A rollout holds obs [T+1, N, …], action [T, N, …], reward, terminated, truncated, valid [T, N] and, where the
    environment gives masks, action_mask [T, N, A] and final_action_mask [N, A]. Row t's successor is obs[t+1]; rows
    with valid = 0 are resets.

    An algorithm with a replay is given minibatches instead, one for each gradient step: obs, next_obs, action, reward,
    discount (what the successor's value counts), weight and, where there are masks, next_action_mask, all [G, B, …];
    with n-step returns also the single rewards, [G, B, n].
    """

    init: Callable[[np.random.Generator], State]
    actor: Callable[[State], Actor]  # the part of the state that acting needs
    act: Callable[[Actor, Array, Array, Array | None], Array]  # actor, obs [N, …], noise [N, …], mask → action
    act_greedy: Callable[[Actor, Array, Array | None], Array]
    value: Callable[[State, Array], Array]  # what the state is thought to be worth, obs [B, …] → [B]
    draw_noise: Callable[[np.random.Generator, tuple[int, ...], Numbers], np.ndarray]  # for acting; values in force
    draw_shuffle: Callable[[np.random.Generator], Any]  # the chance in one update: row order, or noise
    # state, batch, values in force, chance → state, metrics, and a rollout's worth or the minibatches' absolute errors
    update: Callable[[State, dict[str, Array], dict[str, Array], Any], tuple[State, Scalars, Any]]
    scheduled: tuple[str, ...]  # config fields that `update` and `draw_noise` take as numbers in force
    gradient_steps: int  # of one update
    forget_episodes: Callable[[State], State] = lambda state: state  # environments began anew: drop episodes in flight
    # With a replay only: an epoch's rollout counts in the normalisers; what an epoch did to the parameters.
    observe: Callable[[State, dict[str, Array]], State] = lambda state, _: state
    report: Callable[[State, State, dict[str, Array]], Scalars] | None = None
