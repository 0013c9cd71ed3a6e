"""How steps are stored, and how transitions are read back from them.

Rows are those of the collector, reset rows included: the successor of row t is row t+1, so no observation is stored
twice. Of stacked frames only the newest is stored; a stack is put together again when it is sampled.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

Arrays = dict[str, Any]  # of NumPy or of JAX


class StoredSpaces(Protocol):
    """What decides how large a row is."""

    @property
    def obs_shape(self) -> tuple[int, ...]: ...
    @property
    def obs_dtype(self) -> np.dtype: ...
    @property
    def is_image(self) -> bool: ...
    @property
    def action(self) -> Any: ...
    @property
    def has_action_mask(self) -> bool: ...


class Layout(NamedTuple):
    rows: int  # of every environment, in a ring
    n_envs: int
    columns: dict[str, tuple[tuple[int, ...], np.dtype]]  # shape and type of an entry
    frames: int  # stacked in an observation; 1: stored as it is
    n_step: int
    gamma: float
    kept_beside: int = 0  # bytes of an entry's mark and priority, on the host

    @property
    def nbytes(self) -> int:
        """Of the replay when it is full."""
        entry = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in self.columns.values())
        return self.rows * self.n_envs * (entry + self.kept_beside)


def make_layout(
    spaces: StoredSpaces,
    *,
    rows: int,
    n_envs: int,
    frame_stack: int,
    n_step: int,
    gamma: float,
    prioritized: bool = False,
) -> Layout:
    frames = frame_stack if spaces.is_image else 1
    obs_shape = spaces.obs_shape
    if frames > 1:
        obs_shape = (*obs_shape[:-1], obs_shape[-1] // frames)
    flag = np.dtype(bool)
    columns = {
        "obs": (obs_shape, spaces.obs_dtype),
        "action": _action_entry(spaces.action),
        "reward": ((), np.dtype(np.float32)),
        "terminated": ((), flag),
        "truncated": ((), flag),
    }
    if frames > 1:
        columns["age"] = ((), np.dtype(np.uint8))
    if spaces.has_action_mask:
        columns["action_mask"] = ((sum(spaces.action.sizes),), flag)
    return Layout(rows, n_envs, columns, frames, n_step, gamma, kept_beside=1 + 8 * prioritized)


def _action_entry(action: Any) -> tuple[tuple[int, ...], np.dtype]:
    if action.kind == "box":
        return (action.dim,), np.dtype(np.float32)
    smallest = np.dtype(np.uint8 if max(action.sizes) <= 256 else np.int32)
    return () if action.kind == "discrete" else (action.dim,), smallest


def gather(arrays: Arrays, slot: Any, env: Any, layout: Layout, xp: Any) -> Arrays:
    """Transitions that begin at rows `slot` of environments `env` (integers of one shape), n steps long or up to where
    their episode ended: `reward` is their discounted sum, `discount` what the successor's value counts.

    Written once for NumPy and JAX (`xp`): the same lines read host memory or run inside a compiled update.
    """
    reward = xp.zeros(slot.shape, xp.float32)
    going = xp.ones(slot.shape, bool)
    terminal = xp.zeros(slot.shape, bool)
    taken = xp.zeros(slot.shape, xp.int32)
    for k in range(layout.n_step):
        row = (slot + k) % layout.rows
        reward = reward + xp.where(going, xp.float32(layout.gamma**k) * arrays["reward"][row, env], xp.float32(0))
        terminated = arrays["terminated"][row, env]
        terminal = terminal | (going & terminated)
        taken = taken + going
        going = going & ~(terminated | arrays["truncated"][row, env])
    successor = (slot + taken) % layout.rows
    powers = xp.asarray(np.float32(layout.gamma) ** np.arange(layout.n_step + 1, dtype=np.float32))
    batch = {
        "obs": _observations(arrays, slot, env, layout, xp),
        "action": arrays["action"][slot, env],
        "reward": reward,
        "discount": xp.where(terminal, xp.float32(0), powers[taken]),
        "next_obs": _observations(arrays, successor, env, layout, xp),
    }
    if "action_mask" in arrays:
        batch["action_mask"] = arrays["action_mask"][slot, env]
        batch["next_action_mask"] = arrays["action_mask"][successor, env]
    return batch


def _observations(arrays: Arrays, slot: Any, env: Any, layout: Layout, xp: Any) -> Any:
    if layout.frames == 1:
        return arrays["obs"][slot, env]
    age = arrays["age"][slot, env].astype(slot.dtype)
    # Oldest first; before the episode's first frame there is only that frame again.
    back = [xp.minimum(age, layout.frames - 1 - k) for k in range(layout.frames)]
    return xp.concatenate([arrays["obs"][(slot - b) % layout.rows, env] for b in back], axis=-1)
