"""Named numbers kept as one vector inside compiled code: one output and one reduction, where a dict would make a kernel
(and milliseconds of compilation) for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["names"])
@dataclass(frozen=True)
class Scalars:
    names: tuple[str, ...]
    values: Array  # [..., len(names)]

    @classmethod
    def of(cls, numbers: Mapping[str, Array]) -> Scalars:
        return cls(tuple(numbers), jnp.stack([jnp.asarray(x, jnp.float32) for x in numbers.values()]))

    def __getitem__(self, name: str) -> Array:
        return self.values[..., self.names.index(name)]

    def mean(self, weight: Array) -> Scalars:
        """Weighted mean over rows: values [n, k], weight [n]."""
        return Scalars(self.names, weight @ self.values / jnp.maximum(jnp.sum(weight), 1.0))

    def __or__(self, other: Scalars) -> Scalars:
        return Scalars(self.names + other.names, jnp.concatenate([self.values, other.values]))

    def to_dict(self) -> dict[str, float]:
        """On the host, after the computation."""
        return dict(zip(self.names, np.asarray(self.values).tolist(), strict=True))
