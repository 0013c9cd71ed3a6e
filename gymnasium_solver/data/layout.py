"""How steps are stored, and how transitions are read back from them.

Rows are those of the collector, reset rows included: the successor of row t is row t+1, so no observation is stored
twice. Of stacked frames only the newest is stored; a stack is put together again when it is sampled. Discrete
observations are stored as indices, and are one-hot again when they are sampled.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from gymnasium_solver.config.cards import Spaces
from gymnasium_solver.errors import ConfigError

Arrays = dict[str, Any]  # of NumPy or of JAX


class StoredSpaces(Spaces, Protocol):
    """What decides how large a row is."""

    @property
    def obs_dtype(self) -> np.dtype: ...
    @property
    def is_image(self) -> bool: ...
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
    categories: tuple[int, ...] = ()  # values of each component of an observation, where they are stored as indices

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
    obs_shape, obs_dtype = spaces.obs_shape, spaces.obs_dtype
    if frames > 1:
        obs_shape = (*obs_shape[:-1], obs_shape[-1] // frames)
    if spaces.obs_sizes:
        obs_shape, obs_dtype = (len(spaces.obs_sizes),), np.min_scalar_type(max(spaces.obs_sizes) - 1)
    flag = np.dtype(bool)
    columns = {
        "obs": (obs_shape, obs_dtype),
        "action": _action_entry(spaces.action),
        "reward": ((), np.dtype(np.float32)),
        "terminated": ((), flag),
        "truncated": ((), flag),
    }
    if frames > 1:
        columns["age"] = ((), np.dtype(np.uint8))
    if spaces.has_action_mask:
        columns["action_mask"] = ((sum(spaces.action.sizes),), flag)
    kept_beside = 1 + 8 * prioritized
    return Layout(rows, n_envs, columns, frames, n_step, gamma, kept_beside, categories=spaces.obs_sizes)


def rows_for(capacity: int, env_steps: int, n_envs: int, epoch: int) -> int:
    """Rows of a ring that holds as much as it may, but no more than so many env steps fill, in epochs of so many rows.

    At worst every second row is a reset, every epoch ends with a cut, the last begins a step before the end; and a row
    waits for its action.
    """
    steps = 2 * -(-env_steps // n_envs)
    return min(capacity, steps + epoch + (steps // epoch + 1) + 1)


def require_fit(filled: int, count: int, layout: Layout) -> None:
    """Whether a saved replay of so many rows, `count` of them ever written, can go on in this one."""
    if filled > layout.rows or count >= filled != layout.rows:  # a ring that has gone round fits only its own length
        raise ConfigError(
            f"max_env_steps: with this many the replay has {layout.rows} rows, and the {filled} of the checkpoint do "
            "not fit; leave it as it was, or continue from RUN/epoch=N, which fills a new replay"
        )


def _action_entry(action: Any) -> tuple[tuple[int, ...], np.dtype]:
    if action.kind == "box":
        return (action.dim,), np.dtype(np.float32)
    smallest = np.dtype(np.uint8 if max(action.sizes) <= 256 else np.int32)
    return () if action.kind == "discrete" else (action.dim,), smallest


def window(count: Any, layout: Layout, xp: Any = np) -> tuple[Any, Any]:
    """Times [first, last) whose n steps, and the frames before them, are all among `count` rows written so far."""
    first = xp.maximum(0, count - layout.rows + 1)
    first = first + (first > 0) * (layout.frames - 1)
    return first, xp.maximum(first, count - layout.n_step + 1)


def window_size(count: int, layout: Layout) -> int:
    """Transitions of the window, reset rows among them."""
    first, last = window(count, layout)
    return int(last - first) * layout.n_envs


def stored_observations(obs: Any, layout: Layout, xp: Any = np) -> Any:
    """Observations [..., *obs_shape] as they are kept: newest frames, or indices of one-hot components."""
    if layout.frames > 1:
        return obs[..., -layout.columns["obs"][0][-1] :]
    if not layout.categories:
        return obs
    ends = np.cumsum(layout.categories)[:-1]
    indices = [part.argmax(axis=-1) for part in xp.split(obs, ends, axis=-1)]
    return xp.stack(indices, axis=-1).astype(layout.columns["obs"][1])


def gather(arrays: Arrays, slot: Any, env: Any, layout: Layout, xp: Any) -> Arrays:
    """Transitions that begin at rows `slot` of environments `env` (integers of one shape), n steps long or up to where
    their episode ended: `reward` is their discounted sum, `discount` what the successor's value counts. With several
    steps `rewards` [..., n] are those that were summed, 0 past the end, for whom each of them has to be bounded first.

    Written once for NumPy and JAX (`xp`): the same lines read host memory or run inside a compiled update.
    """
    rewards = []
    going = xp.ones(slot.shape, bool)
    terminal = xp.zeros(slot.shape, bool)
    taken = xp.zeros(slot.shape, xp.int32)
    for k in range(layout.n_step):
        row = (slot + k) % layout.rows
        rewards.append(xp.where(going, arrays["reward"][row, env], xp.float32(0)))
        terminated = arrays["terminated"][row, env]
        terminal = terminal | (going & terminated)
        taken = taken + going
        going = going & ~(terminated | arrays["truncated"][row, env])
    successor = (slot + taken) % layout.rows
    powers = xp.asarray(np.float32(layout.gamma) ** np.arange(layout.n_step + 1, dtype=np.float32))
    batch = {
        "obs": _observations(arrays, slot, env, layout, xp),
        "action": arrays["action"][slot, env],
        "reward": sum(xp.float32(layout.gamma**k) * reward for k, reward in enumerate(rewards)),
        "discount": xp.where(terminal, xp.float32(0), powers[taken]),
        "next_obs": _observations(arrays, successor, env, layout, xp),
    }
    if layout.n_step > 1:
        batch["rewards"] = xp.stack(rewards, axis=-1)
    if "action_mask" in arrays:
        batch["action_mask"] = arrays["action_mask"][slot, env]
        batch["next_action_mask"] = arrays["action_mask"][successor, env]
    return batch


def _observations(arrays: Arrays, slot: Any, env: Any, layout: Layout, xp: Any) -> Any:
    if layout.categories:
        index = arrays["obs"][slot, env][..., None]
        hot = [index[..., i, :] == xp.arange(size, dtype=index.dtype) for i, size in enumerate(layout.categories)]
        return xp.concatenate(hot, axis=-1).astype(xp.float32)
    if layout.frames == 1:
        return arrays["obs"][slot, env]
    age = arrays["age"][slot, env].astype(slot.dtype)
    # Oldest first; before the episode's first frame there is only that frame again.
    back = [xp.minimum(age, layout.frames - 1 - k) for k in range(layout.frames)]
    return xp.concatenate([arrays["obs"][(slot - b) % layout.rows, env] for b in back], axis=-1)
