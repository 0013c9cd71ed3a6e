"""A row of metrics in one call: environments, feed and algorithm in one compiled loop.

Randomness comes in as arrays that the host has drawn, as everywhere: NumPy's generators are faster than JAX's on a CPU,
permutations most of all, and a resumed run has nothing to restore but the index of its epoch. Only what an environment
draws is drawn inside, from keys that come in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.envs.compiled.engine import CompiledEngine, Environments, by_environment
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.ops.scans import indexed_loop, when
from gymnasium_solver.train.compiled_feeds import CompiledFeed, Made
from gymnasium_solver.train.parts import State


class Learning(NamedTuple):
    """What a row writes over: its buffers are given away."""

    state: State
    feed: Any


class Standing(NamedTuple):
    """Where the environments are, and the policy's memory of them."""

    environments: Environments
    memory: Any
    env_steps: Any  # int32
    is_finite: Any  # bool: every observation and reward of this row so far


class Drawn(NamedTuple):
    """Randomness and values in force, [chunks, …] each."""

    acting: Any
    environments: Any
    update: Any
    batches: Any
    hp: dict[str, Any]


Row = Callable[[Learning, Standing, Drawn, Array], tuple[Learning, Standing, Made]]
Collect = Callable[[Any, Standing, Drawn], tuple[Standing, dict[str, Array]]]


def collector(algorithm: Algorithm, engine: CompiledEngine) -> Collect:
    """The function that takes a chunk of steps: columns [T, N, …], obs [T+1, N, …]."""

    def collect(actor: Any, standing: Standing, drawn: Drawn) -> tuple[Standing, dict[str, Array]]:
        fresh = algorithm.begin(engine.n_envs)

        def step(carry: tuple[Environments, Any], row: tuple[Array, Array]) -> tuple[Any, dict[str, Array]]:
            (environments, memory), (noise, keys) = carry, row
            action, memory, extras = algorithm.act(actor, memory, environments.obs, noise, None)
            after, paid = engine.step(environments, action, keys)
            memory = jax.tree.map(lambda new, old: by_environment(~paid["valid"], new, old), fresh, memory)
            return (after, memory), extras | paid | {"obs": environments.obs, "action": action}

        start, rows = (standing.environments, standing.memory), (drawn.acting, drawn.environments)
        (environments, memory), columns = jax.lax.scan(step, start, rows)
        whole = columns | {"obs": jnp.concatenate([columns["obs"], environments.obs[None]])}
        numbers = jnp.isfinite(jnp.sum(whole["obs"])) & jnp.isfinite(jnp.sum(whole["reward"]))
        standing = standing._replace(
            environments=environments,
            memory=memory,
            env_steps=standing.env_steps + jnp.sum(columns["valid"]),
            is_finite=standing.is_finite & numbers,
        )
        return standing, whole

    return collect


def compiled_row(algorithm: Algorithm, engine: CompiledEngine, feed: CompiledFeed) -> Row:
    """The function of a row, whose last argument is the number of chunks to go through."""

    collect = collector(algorithm, engine)

    # Compiled functions of their own only so that each is traced once: loops ask for shapes before they are built.
    @jax.jit
    def learn(state: State, batch: Any, hp: Any, noise: Any) -> tuple[State, tuple[Scalars, Any]]:
        state, metrics, outcome = algorithm.update(state, batch, hp, noise)
        return state, (metrics, feed.findings(outcome))

    @jax.jit
    def chunk(carry: tuple[Learning, Standing], drawn: Drawn) -> tuple[tuple[Learning, Standing], Made]:
        (state, feed_state), before = carry
        standing, columns = collect(algorithm.actor(state), before, drawn)
        # What is no number is neither learnt from nor kept for later; the host refuses it after the row.
        usable = columns["valid"] & standing.is_finite
        taken = feed.take(feed_state, columns, usable, before.env_steps, drawn.batches)
        due = taken.due & standing.is_finite
        state, (metrics, findings) = when(due, learn, state, taken.batch, drawn.hp | taken.inputs, drawn.update)
        columns["obs"] = columns["obs"][:-1]
        made = Made(columns, jnp.asarray(due), metrics, findings, jnp.asarray(taken.age, jnp.float32))
        return (Learning(state, taken.state), standing), made

    def row(learning: Learning, standing: Standing, drawn: Drawn, chunks: Array) -> tuple[Learning, Standing, Made]:
        (learning, standing), made = indexed_loop(chunk, (learning, standing), drawn, chunks)
        return learning, standing, made

    return row
