"""The contract of every engine, and the two things all of them share: seeds and buffers.

Autoreset is NEXT-STEP everywhere. When environment i ends at step t, `obs[i]` of that step is its true final
observation; step t+1 ignores action i, resets the environment and returns the first observation of the next episode
with reward 0 and both flags False. So obs[t+1] is always the true successor of obs[t], and a truncated step bootstraps
from it without a special case; the caller masks out the rows that only reset.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gymnasium_solver.envs.spec import EnvSpec


class Step(NamedTuple):
    """One step of N environments. The arrays are the engine's: valid until its next step or reset."""

    obs: np.ndarray
    reward: np.ndarray  # float32 [N]
    terminated: np.ndarray  # bool [N]
    truncated: np.ndarray  # bool [N]
    action_mask: np.ndarray | None  # bool [N, sum(sizes)], True where the action is allowed
    own_reward: np.ndarray | None = None  # float32 [N], what the environment paid, where a wrapper changed it


class VectorEngine(Protocol):
    """N environments stepped side by side."""

    spec: EnvSpec
    n_envs: int

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Restart every environment; the same seed gives a bit-identical stream, whatever happened before."""
        ...

    def step(self, action: np.ndarray) -> Step:
        """Take int32 [N], int32 [N, dim] or float32 [N, dim], as the policy made it."""
        ...

    def close(self) -> None: ...


def environment_seeds(seed: int, n_envs: int) -> list[int]:
    """Unrelated seeds, one per environment; 31 bits because EnvPool and the Atari emulator take no more."""
    return [int(word) & 0x7FFFFFFF for word in np.random.SeedSequence(seed).generate_state(n_envs)]


def step_nbytes(spec: EnvSpec, n_envs: int) -> int:
    return sum(array.nbytes for array in allocate_step(spec, n_envs) if array is not None)


def allocate_step(spec: EnvSpec, n_envs: int, memory: memoryview | None = None) -> Step:
    """Zeroed arrays for one step, or views into `memory` (as shared with worker processes)."""
    offset = 0

    def array(shape: tuple[int, ...], dtype: type | np.dtype) -> np.ndarray:
        nonlocal offset
        if memory is None:
            return np.zeros(shape, dtype)
        made = np.ndarray(shape, dtype, buffer=memory, offset=offset)
        offset += made.nbytes
        return made

    # Rewards come first: NumPy wants 4-byte numbers on 4-byte addresses, and only images have an odd size.
    reward = array((n_envs,), np.float32)
    own = array((n_envs,), np.float32) if spec.changes_reward else None
    obs = array((n_envs, *spec.obs_shape), spec.obs_dtype)
    terminated = array((n_envs,), np.bool_)
    truncated = array((n_envs,), np.bool_)
    mask = array((n_envs, sum(spec.action.sizes)), np.bool_) if spec.has_action_mask else None
    return Step(obs, reward, terminated, truncated, mask, own)
