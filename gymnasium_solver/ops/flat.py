"""Parameters as one vector: an optimiser step on it is a single kernel, where a tree of small tensors makes dozens.

Measured on a 2-core CPU for PPO on two 64×64 networks: a tenth to a fifth off compilation, a tenth off an update.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Layout(NamedTuple):
    """Where each tensor of a parameter tree lies in the vector."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    segments: dict[str, tuple[int, int]]  # (start, stop) of every part, by its path of one or two names

    @classmethod
    def of(cls, params: Any) -> Layout:
        pairs, structure = jax.tree_util.tree_flatten_with_path(params)
        shapes = tuple(tuple(np.shape(leaf)) for _, leaf in pairs)
        offsets = tuple(int(n) for n in np.cumsum([0, *(math.prod(shape) for shape in shapes)]))
        segments: dict[str, tuple[int, int]] = {}
        for (path, _), start, stop in zip(pairs, offsets[:-1], offsets[1:], strict=True):
            # Leaves come in the order of their sorted paths, so a part is one stretch.
            for depth in (1, 2):
                name = jax.tree_util.keystr(path[:depth], simple=True, separator="/")
                segments[name] = (segments.get(name, (start, stop))[0], stop)
        return cls(structure, shapes, offsets, segments)

    def flatten(self, tree: Any) -> Array:
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])

    def unflatten(self, vector: Array) -> Any:
        leaves = [
            jax.lax.slice(vector, (start,), (stop,)).reshape(shape)
            for start, stop, shape in zip(self.offsets[:-1], self.offsets[1:], self.shapes, strict=True)
        ]
        return jax.tree.unflatten(self.structure, leaves)
