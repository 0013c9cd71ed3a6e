"""A replay inside a compiled loop: the rows of `data/layout.py` as a value, with pure functions to write and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.data.layout import Arrays, Layout, gather, require_fit, stored_observations, window

# Rows that only reset are not learnt from: so many further rows are tried in place of one, and where all of them are
# resets, too (one sample in a million even with episodes of 20 steps), the sample counts nothing.
_TRIES = 4


class Ring(NamedTuple):
    arrays: Arrays  # [rows, N, …] by column
    valid: Any  # bool [rows, N]: rows that are steps, neither resets nor waiting
    written: Any  # int32, rows so far
    reward_bound: Any  # largest absolute reward seen


def empty(layout: Layout) -> Ring:
    rows = (layout.rows, layout.n_envs)
    arrays = {name: np.zeros((*rows, *shape), dtype) for name, (shape, dtype) in layout.columns.items()}
    return Ring(arrays, np.zeros(rows, bool), np.zeros((), np.int32), np.zeros((), np.float32))


def write(ring: Ring, columns: Mapping[str, Array], valid: Array, layout: Layout) -> Ring:
    """Append T steps: columns [T, N, …], with the observation that follows them in obs [T+1, N, …]."""
    taken = len(valid)
    slots = (ring.written + jnp.arange(taken + 1)) % layout.rows
    arrays = dict(ring.arrays)
    put = lambda old, rows, at: old.at[at].set(rows.astype(old.dtype), unique_indices=True)  # noqa: E731
    arrays["obs"] = put(arrays["obs"], stored_observations(columns["obs"], layout, jnp), slots)
    for name in ("action", "reward", "terminated", "truncated"):
        arrays[name] = put(arrays[name], columns[name], slots[:-1])
    waiting = jnp.zeros_like(valid[:1])
    marks = put(ring.valid, jnp.concatenate([valid, waiting]), slots)
    bound = jnp.maximum(ring.reward_bound, jnp.max(jnp.abs(columns["reward"])))
    return Ring(arrays, marks, ring.written + taken, bound)


def can_sample(ring: Ring, layout: Layout) -> Array:
    first, last = window(ring.written, layout, jnp)
    return last > first


def sample(ring: Ring, draws: Array, layout: Layout) -> tuple[Array, Array, Array]:
    """Slots and environments of transitions to learn from, and their weights, for random 32-bit draws of any shape."""
    first, last = window(ring.written, layout, jnp)
    number = ((last - first) * layout.n_envs).astype(jnp.uint32)
    tried = _scrambled(draws[..., None] + jnp.arange(_TRIES, dtype=jnp.uint32))
    index = (tried % jnp.maximum(number, 1)).astype(jnp.int32)
    slots, envs = (first + index // layout.n_envs) % layout.rows, index % layout.n_envs
    usable = ring.valid[slots, envs]
    chosen = jnp.argmax(usable, axis=-1, keepdims=True)
    pick = lambda x: jnp.take_along_axis(x, chosen, axis=-1)[..., 0]  # noqa: E731
    return pick(slots), pick(envs), pick(usable).astype(jnp.float32)


def _scrambled(x: Array) -> Array:
    """32-bit numbers that look unrelated even where x is in sequence (the finaliser of MurmurHash3)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = (x ^ (x >> shift)) * jnp.uint32(factor)
    return x ^ (x >> 16)


def minibatches(ring: Ring, draws: Array, layout: Layout) -> tuple[Arrays, Array]:
    """Transitions, and their mean age in env steps."""
    slots, envs, weight = sample(ring, draws, layout)
    age = jnp.mean(((ring.written - 1 - slots) % layout.rows).astype(jnp.float32)) * layout.n_envs
    return gather(ring.arrays, slots, envs, layout, jnp) | {"weight": weight}, age


def cut(ring: Ring, layout: Layout) -> Ring:
    """Environments begin anew: their last steps become truncations, with the observation that waits as successor."""
    newest = (ring.written - 1) % layout.rows
    ended = ring.valid[newest] & ~ring.arrays["terminated"][newest] & (ring.written > 0)
    truncated = ring.arrays["truncated"].at[newest].set(ring.arrays["truncated"][newest] | ended)
    return ring._replace(arrays=ring.arrays | {"truncated": truncated}, written=ring.written + (ring.written > 0))


def to_arrays(ring: Ring, layout: Layout) -> dict[str, np.ndarray]:
    """Everything that a resumed run needs, as far as it was written; the names are those of `data/replay.py`."""
    count = int(ring.written)
    filled = min(count + 1, layout.rows)
    # Copies: the next row of metrics is given the ring's buffers to write into.
    arrays = {name: np.array(np.asarray(array)[:filled]) for name, array in ring.arrays.items()}
    arrays["valid"] = np.array(np.asarray(ring.valid)[:filled])
    numbers = np.array([count, float(ring.reward_bound)], np.float64)
    return arrays | {"numbers": numbers, "waiting_age": np.zeros(layout.n_envs, np.int64)}


def restored(arrays: dict[str, np.ndarray], layout: Layout) -> Ring:
    filled, count = len(arrays["valid"]), int(arrays["numbers"][0])
    require_fit(filled, count, layout)
    ring = empty(layout)
    for name, rows in ring.arrays.items():
        rows[:filled] = arrays[name]
    ring.valid[:filled] = arrays["valid"]
    return ring._replace(written=np.int32(count), reward_bound=np.float32(arrays["numbers"][1]))
