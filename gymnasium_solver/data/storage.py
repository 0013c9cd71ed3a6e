"""Where the rows of a replay lie: in host memory, or in the accelerator's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnasium_solver.data.layout import Layout


class HostStorage:
    def __init__(self, layout: Layout) -> None:
        # Zeros are not touched before they are written, so memory grows with the experience.
        self.arrays = {name: np.zeros((layout.rows, layout.n_envs, *s), d) for name, (s, d) in layout.columns.items()}

    def write(self, slots: np.ndarray, block: dict[str, np.ndarray]) -> None:
        for name, rows in block.items():
            self.arrays[name][slots] = rows

    def row(self, name: str, slot: int) -> np.ndarray:
        return self.arrays[name][slot]

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Memory to read the first rows into: the replay's own where they fit, so that it is never there twice."""
        own = self.arrays[name][: shape[0]]
        return own if (own.shape, own.dtype) == (shape, dtype) else np.empty(shape, dtype)

    def load(self, block: dict[str, np.ndarray]) -> None:
        """The first rows, as they were saved."""
        for name, rows in block.items():
            own = self.arrays[name][: len(rows)]
            if not np.may_share_memory(own, rows):
                own[...] = rows

    def to_host(self, filled: int) -> dict[str, np.ndarray]:
        return {name: array[:filled] for name, array in self.arrays.items()}


class AcceleratorStorage:
    """Arrays of JAX's default device; a write hands them over and gets them back, in place."""

    def __init__(self, layout: Layout) -> None:
        import jax
        import jax.numpy as jnp

        self.arrays: dict[str, Any] = {
            name: jnp.zeros((layout.rows, layout.n_envs, *s), d) for name, (s, d) in layout.columns.items()
        }

        def set_rows(arrays: dict[str, Any], slots: Any, block: dict[str, Any]) -> dict[str, Any]:
            return arrays | {name: arrays[name].at[slots].set(rows) for name, rows in block.items()}

        self._set_rows = jax.jit(set_rows, donate_argnums=0)

    def write(self, slots: np.ndarray, block: dict[str, np.ndarray]) -> None:
        self.arrays = self._set_rows(self.arrays, slots, block)

    def row(self, name: str, slot: int) -> np.ndarray:
        return np.asarray(self.arrays[name][slot])

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.empty(shape, dtype)

    def load(self, block: dict[str, np.ndarray]) -> None:
        self.write(np.arange(len(block["obs"])), block)

    def to_host(self, filled: int) -> dict[str, np.ndarray]:
        return {name: np.asarray(array[:filled]) for name, array in self.arrays.items()}
