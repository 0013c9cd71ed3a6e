"""What Q-learning and SARSA share: a table of action values, one entry for each observation and action."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Actor, Algorithm, Numbers, Spaces, State, Worth
from gymnasium_solver.config.schema import TabularConfig
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.ops import exploration
from gymnasium_solver.ops.distributions import mask_logits
from gymnasium_solver.ops.optimizers import norm
from gymnasium_solver.ops.scalars import Scalars

_MOST_ENTRIES = 50_000_000

# Table [S, A], the values in force, successor's observation [N] → its worth [N], which the next action may settle.
SuccessorWorth = Callable[[Array, dict[str, Array], Array, Array, Array], Array]


def make_tabular(config: TabularConfig, spaces: Spaces, worth_of_successor: SuccessorWorth) -> Algorithm:
    """`worth_of_successor(q, hp, has_next, next_action, mask)` values successors from their rows q [A] of the table."""
    sizes = _require_discrete(config, spaces)
    n_states, n_actions = math.prod(sizes), spaces.action.sizes[0]

    def init(rng: np.random.Generator) -> State:
        table = np.full((n_states, n_actions), config.initial_value, np.float32)
        return {"params": {"table": table}, "visits": np.zeros((n_states, n_actions), np.float32)}

    def index(obs: Array) -> Array:
        """Which observation it is: the components come one-hot, side by side."""
        parts = jnp.split(obs, np.cumsum(sizes)[:-1].tolist(), axis=-1)
        digits = [jnp.argmax(part, axis=-1) for part in parts]
        position = digits[0]
        for digit, size in zip(digits[1:], sizes[1:], strict=True):
            position = position * size + digit
        return position

    def actor(state: State) -> Actor:
        part = {"params": state["params"]}
        return part | ({"visits": state["visits"]} if config.exploration == "ucb" else {})

    def act(actor: Actor, obs: Array, noise: Array, mask: Array | None) -> Array:
        position = index(obs)
        values = actor["params"]["table"][position]
        if config.exploration == "ucb":
            return exploration.optimistic(values, actor["visits"][position], noise, mask)
        return exploration.epsilon_greedy(mask_logits(values, mask), noise, mask)

    def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], hp: Numbers) -> np.ndarray:
        if config.exploration == "ucb":
            return exploration.draw_bound_noise(rng, shape, n_actions, hp["ucb_coef"])
        return exploration.draw_epsilon_noise(rng, shape, n_actions, hp["epsilon"])

    def act_greedy(actor: Actor, obs: Array, mask: Array | None) -> Array:
        return jnp.argmax(mask_logits(actor["params"]["table"][index(obs)], mask), axis=-1)

    def value(state: State, obs: Array) -> Array:
        return jnp.max(state["params"]["table"][index(obs)], axis=-1)

    def update(state: State, batch: dict[str, Array], hp: dict[str, Array], _: Array) -> tuple[State, Scalars, Worth]:
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
            worth = worth_of_successor(
                table[row["successor"]], hp, row["has_next"], row["next_action"], row["next_mask"]
            )
            target = row["reward"] + config.gamma * (1.0 - row["terminated"]) * worth
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
        before = state["params"]["table"]
        (table, visits), (old, target) = jax.lax.scan(step, (before, state["visits"]), flat)
        error = (target - old) * flat["valid"]
        loss = jnp.sum(jnp.square(error)) / jnp.maximum(jnp.sum(flat["valid"]), 1.0)
        metrics = {
            "train/loss/value": loss,
            "train/loss/total": loss,
            "train/metrics/q_mean": jnp.sum(old * flat["valid"]) / jnp.maximum(jnp.sum(flat["valid"]), 1.0),
            "train/metrics/q_max": jnp.max(jnp.abs(table)),
            "train/metrics/td_error": jnp.sum(jnp.abs(error)) / jnp.maximum(jnp.sum(flat["valid"]), 1.0),
            "train/metrics/visited_share": jnp.mean((visits > 0).astype(jnp.float32)),
            "train/metrics/update_norm_ratio": norm((table - before).ravel()) / (norm(before.ravel()) + 1e-8),
            "train/metrics/param_norm": norm(table.ravel()),
            "train/metrics/param_checksum": jnp.sum(table),
        }
        worth = Worth(*(x.reshape(action.shape) for x in (target - old, old, target)))
        return state | {"params": {"table": table}, "visits": visits}, Scalars.of(metrics), worth

    return Algorithm(
        init=init,
        actor=actor,
        act=act,
        act_greedy=act_greedy,
        value=value,
        draw_noise=draw_noise,
        draw_shuffle=lambda rng: np.zeros(0, np.int32),
        update=update,
        scheduled=("policy_lr", "ucb_coef" if config.exploration == "ucb" else "epsilon"),
        gradient_steps=config.rollout,
    )


def _require_discrete(config: TabularConfig, spaces: Spaces) -> tuple[int, ...]:
    if spaces.action.kind != "discrete":
        raise ConfigError(
            f"algo_id: {config.algo_id} keeps a table of discrete actions; those of {config.env_id} are not; use ppo"
        )
    if not spaces.obs_sizes:
        raise ConfigError(
            f"algo_id: {config.algo_id} keeps a table of discrete observations, and those of {config.env_id} are not; "
            "use dqn, or a wrapper in env_wrappers that makes them discrete"
        )
    entries = math.prod(spaces.obs_sizes) * spaces.action.sizes[0]
    if entries > _MOST_ENTRIES:
        raise ConfigError(
            f"algo_id: {config.algo_id} would need a table of {entries:,} entries for {config.env_id}; use dqn"
        )
    return spaces.obs_sizes
