"""Loops inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


def gradient_steps(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, rows: Any, count: int) -> tuple[Any, Any]:
    """`count` gradient steps over minibatches [G, …] in one loop; a single one needs none."""
    if count > 1:
        return jax.lax.scan(step, start, rows)
    end, made = step(start, jax.tree.map(lambda x: x[0], rows))
    return end, jax.tree.map(lambda x: x[None], made)


def when(flag: Array | bool, function: Callable[..., tuple[Any, Any]], state: Any, *inputs: Any) -> tuple[Any, Any]:
    """`function(state, *inputs)` where the flag is set, else the state and zeros. A loop of at most one round, because
    a conditional would copy the state."""
    blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(function, state, *inputs)[1])

    def once(carry: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        return jnp.array(False), *function(carry[1], *inputs)

    _, state, made = jax.lax.while_loop(lambda carry: carry[0], once, (jnp.asarray(flag), state, blank))
    return state, made


def indexed_loop(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, rows: Any, count: Array) -> tuple[Any, Any]:
    """A scan over the first `count` of rows [G, …]; what the steps after them would have made is zero."""
    first = jax.tree.map(lambda x: x[0], rows)
    length = len(jax.tree.leaves(rows)[0])
    shapes = jax.eval_shape(step, start, first)[1]
    blank = jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), shapes)

    def body(index: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        current, made = carry
        current, one = step(current, jax.tree.map(lambda x: x[index], rows))
        return current, jax.tree.map(lambda all_, new: all_.at[index].set(new), made, one)

    end: tuple[Any, Any] = jax.lax.fori_loop(0, count, body, (start, blank))
    return end
