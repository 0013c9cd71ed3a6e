"""State ↔ named arrays: a checkpoint's tensors carry the paths of the state, e.g. `params/actor_head/weight`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gymnasium_solver.errors import CheckpointError
from gymnasium_solver.runs.checkpoints import new_array

REPLAY = "replay/"  # begins the names of a replay's arrays


def to_arrays(state: Any) -> dict[str, np.ndarray]:
    # A copy: the next update is given the state's buffers to write into.
    return {name: np.array(leaf) for name, leaf in _named_leaves(state)}


def without_replay(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """For `Run.read_checkpoint`, where a policy is only to act: a replay of gigabytes stays on the disk."""
    return None if name.startswith(REPLAY) else new_array(name, shape, dtype)


def from_arrays(template: Any, arrays: dict[str, np.ndarray], source: str) -> Any:
    """The template with the checkpoint's numbers; anything missing or of another shape is an error."""
    leaves = []
    for name, leaf in _named_leaves(template):
        found = arrays.get(name)
        if found is None or found.shape != np.shape(leaf):
            got = "missing" if found is None else f"{list(found.shape)}"
            raise CheckpointError(
                f"{source} does not fit this config: tensor {name} is {got}, expected {list(np.shape(leaf))}; "
                "resume with the run's own config, or use --init-from to load what fits"
            )
        leaves.append(found)
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def transfer(template: Any, arrays: dict[str, np.ndarray]) -> tuple[Any, list[str]]:
    """Load parameters and observation statistics that fit; say what did not. The optimiser starts fresh."""
    leaves, loaded, notes = [], 0, []
    for name, leaf in _named_leaves(template):
        wanted = name.startswith(("params/", "target/", "obs_statistics/"))
        found = arrays.get(name) if wanted else None
        if found is not None and found.shape == np.shape(leaf):
            leaves.append(found)
            loaded += found.ndim > 1  # weights: biases of equal length say nothing
            continue
        leaves.append(leaf)
        if wanted:
            reason = (
                "not in the checkpoint" if found is None else f"shape {list(found.shape)} is not {list(np.shape(leaf))}"
            )
            notes.append(f"{name} keeps its initial values: {reason}")
    if not loaded:
        raise CheckpointError(
            "nothing in the checkpoint fits this network; check env_id, hidden_dims and shared_network"
        )
    return jax.tree.unflatten(jax.tree.structure(template), leaves), [f"loaded {loaded} weight tensors", *notes]


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    pairs, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="/"), leaf) for path, leaf in pairs]
