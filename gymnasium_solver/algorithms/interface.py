"""What an algorithm is: pure functions of its state. No base class, no hidden state, no environments or files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jax import Array

from gymnasium_solver.ops.scalars import Scalars

State = Any  # a NamedTuple of the algorithm's own, with the field `params`
Carry = Any  # what a policy remembers of an episode; () for those without memory
Batch = Mapping[str, Array]
Hp = Mapping[str, Array]  # values in force of scheduled fields
Extras = dict[str, Array]
Metrics = dict[str, Array]


class Actor(NamedTuple):
    """All that acting needs: what is sent to other processes, and what is exported."""

    params: Any
    obs_statistics: Any = None


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


class Column(NamedTuple):
    """What acting records for each step beside the action."""

    shape: tuple[int, ...]
    dtype: Any


class Algorithm(NamedTuple):
    """`act`, `greedy` and `update` are compiled by the caller, once each; randomness comes in as arrays.

    A rollout holds obs [T+1, N, …], action [T, N, …], reward, terminated, truncated, valid [T, N], the algorithm's own
    `columns` and, where the environment gives masks, action_mask [T, N, A] and final_action_mask [N, A]. Row t's
    successor is obs[t+1]; rows with valid = 0 are resets.

    An algorithm with a replay is given minibatches instead, one for each gradient step: obs, next_obs, action, reward,
    discount (what the successor's value counts), weight and, where there are masks, next_action_mask, all [G, B, …];
    with n-step returns also the single rewards, [G, B, n].
    """

    init: Callable[[np.random.Generator], State]
    actor: Callable[[State], Any]
    # actor, carry, obs [N, …], noise [N, …], mask [N, A] → action [N, …], carry, and the algorithm's own columns
    act: Callable[[Any, Carry, Array, Array, Array | None], tuple[Array, Carry, Extras]]
    greedy: Callable[[Any, Carry, Array, Array | None], tuple[Array, Carry]]
    value: Callable[[State, Array], Array]  # estimated value of observations [B, …] → [B]
    acting_noise: Callable[[np.random.Generator, tuple[int, ...], Mapping[str, float]], np.ndarray]
    update_noise: Callable[[np.random.Generator], Any]  # the randomness of one update: permutations, or noise
    # state, batch, values in force, noise → state, metrics, and the rollout's estimates or the minibatches' errors
    update: Callable[[State, Batch, Hp, Any], tuple[State, Scalars, Any]]
    # The same arguments → gradients of the losses by part, one row for each minibatch, all at the same parameters
    gradients: Callable[[State, Batch, Hp, Any], dict[str, Array]]
    scheduled: tuple[str, ...]  # config fields that `update` and `acting_noise` take as values in force
    gradient_steps: int  # of one update
    begin: Callable[[int], Carry] = lambda n: ()  # the memory of n fresh episodes
    columns: Mapping[str, Column] = {}
    forget_episodes: Callable[[State], State] = lambda state: state  # environments began anew: drop episodes in flight
    # With a replay only: count an epoch's rollout in the normalisers; what an epoch did to the parameters.
    observe: Callable[[State, Batch], State] | None = None
    report: Callable[[Any, State, Batch], Scalars] | None = None
