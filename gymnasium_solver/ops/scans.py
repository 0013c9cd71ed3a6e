"""Loops of gradient steps inside compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax


def gradient_steps(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, rows: Any, count: int) -> tuple[Any, Any]:
    """`count` gradient steps over minibatches [G, …] in one loop; a single one needs none."""
    if count > 1:
        return jax.lax.scan(step, start, rows)
    end, made = step(start, jax.tree.map(lambda x: x[0], rows))
    return end, jax.tree.map(lambda x: x[None], made)
