"""What Q-learning and SARSA share: a table of action values, one entry for each observation and action."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Batch, Carry, Extras, Hp, Spaces
from gymnasium_solver.config.schema import TabularConfig
from gymnasium_solver.ops import exploration
from gymnasium_solver.ops.diagnostics import change_metrics
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.returns import Estimates
from gymnasium_solver.ops.scalars import Scalars

# The successor's row of the table [A], values in force, whether its action is known, that action, mask → its value
NextValue = Callable[[Array, Hp, Array, Array, Array], Array]


class State(NamedTuple):
    params: Any  # {"table": [S, A]}
    visits: Any  # [S, A]


class TableActor(NamedTuple):
    params: Any
    visits: Any = None  # where exploration counts them


def make_tabular(config: TabularConfig, spaces: Spaces, next_value: NextValue) -> Algorithm:
    sizes = spaces.obs_sizes
    n_states, n_actions = math.prod(sizes), spaces.action.sizes[0]

    def init(rng: np.random.Generator) -> State:
        table = np.full((n_states, n_actions), config.initial_value, np.float32)
        return State({"table": table}, np.zeros((n_states, n_actions), np.float32))

    def index(obs: Array) -> Array:
        """Which observation it is: the components come one-hot, side by side."""
        parts = jnp.split(obs, np.cumsum(sizes)[:-1].tolist(), axis=-1)
        digits = [jnp.argmax(part, axis=-1) for part in parts]
        position = digits[0]
        for digit, size in zip(digits[1:], sizes[1:], strict=True):
            position = position * size + digit
        return position

    def act(
        actor: TableActor, carry: Carry, obs: Array, noise: Array, mask: Array | None
    ) -> tuple[Array, Carry, Extras]:
        position = index(obs)
        values = actor.params["table"][position]
        if config.exploration == "ucb":
            return exploration.optimistic(values, actor.visits[position], noise, mask), carry, {}
        return exploration.epsilon_greedy(mask_logits(values, mask), noise, mask), carry, {}

    def acting_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Mapping[str, float]) -> np.ndarray:
        if config.exploration == "ucb":
            return exploration.draw_bound_noise(rng, shape, n_actions, hp["ucb_coef"])
        return exploration.draw_epsilon_noise(rng, shape, n_actions, hp["epsilon"])

    def greedy(actor: TableActor, carry: Carry, obs: Array, mask: Array | None) -> tuple[Array, Carry]:
        return jnp.argmax(mask_logits(actor.params["table"][index(obs)], mask), axis=-1), carry

    def update(state: State, batch: Batch, hp: Hp, _: Array) -> tuple[State, Scalars, Estimates]:
        position, action = index(batch["obs"]), batch["action"]
        valid = batch["valid"].astype(jnp.float32)
        # Where the next row is no step of this episode there is no next action to learn from.
        has_next = jnp.concatenate([batch["valid"][1:], jnp.zeros_like(batch["valid"][:1])])
        next_action = jnp.concatenate([action[1:], action[-1:]])
        mask = batch.get("action_mask")
        next_mask = jnp.ones((*action.shape, n_actions), bool)
        if mask is not None:
            next_mask = jnp.concatenate([mask[1:], batch["final_action_mask"][None]])

        def step(carry: tuple[Array, Array], row: dict[str, Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            table, visits = carry
            ahead = next_value(table[row["successor"]], hp, row["has_next"], row["next_action"], row["next_mask"])
            target = row["reward"] + config.gamma * (1.0 - row["terminated"]) * ahead
            old = table[row["position"], row["action"]]
            table = table.at[row["position"], row["action"]].add(hp["policy_lr"] * row["valid"] * (target - old))
            visits = visits.at[row["position"], row["action"]].add(row["valid"])
            return (table, visits), (old, target)

        rows = {
            "position": position[:-1],
            "successor": position[1:],
            "action": action,
            "reward": batch["reward"],
            "terminated": batch["terminated"].astype(jnp.float32),
            "valid": valid,
            "has_next": has_next,
            "next_action": next_action,
            "next_mask": next_mask,
        }
        # One step after the other, of one environment after the other: as if there were one.
        flat = {name: x.reshape((-1, *x.shape[2:])) for name, x in rows.items()}
        before = state.params["table"]
        (table, visits), (old, target) = jax.lax.scan(step, (before, state.visits), flat)
        error = (target - old) * flat["valid"]
        loss = jnp.sum(jnp.square(error)) / jnp.maximum(jnp.sum(flat["valid"]), 1.0)
        metrics = {
            "train/loss/value": loss,
            "train/loss/total": loss,
            "train/metrics/q_mean": jnp.sum(old * flat["valid"]) / jnp.maximum(jnp.sum(flat["valid"]), 1.0),
            "train/metrics/q_max": jnp.max(jnp.abs(table)),
            "train/metrics/td_error": jnp.sum(jnp.abs(error)) / jnp.maximum(jnp.sum(flat["valid"]), 1.0),
            "train/metrics/visited_share": jnp.mean((visits > 0).astype(jnp.float32)),
            **change_metrics(before.ravel(), table.ravel()),
        }
        estimates = Estimates(*(x.reshape(action.shape) for x in (target - old, old, target)))
        return State({"table": table}, visits), Scalars.of(metrics), estimates

    return Algorithm(
        init=init,
        actor=lambda state: TableActor(state.params, state.visits if config.exploration == "ucb" else None),
        act=act,
        greedy=greedy,
        value=lambda state, obs: jnp.max(state.params["table"][index(obs)], axis=-1),
        acting_noise=acting_noise,
        update_noise=lambda rng: np.zeros(0, np.int32),
        update=update,
        gradients=lambda state, batch, hp, noise: {},  # a table has entries, no gradients
        scheduled=("policy_lr", "ucb_coef" if config.exploration == "ucb" else "epsilon"),
        gradient_steps=config.rollout,
    )
