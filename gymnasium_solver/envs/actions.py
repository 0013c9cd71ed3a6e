"""What a policy puts out becomes what an environment takes; action masks become one flat row of booleans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnasium_solver.config.cards.serving import UNBOUNDED as UNBOUNDED
from gymnasium_solver.envs.spec import ActionSpec
from gymnasium_solver.errors import ConfigError


@dataclass(frozen=True)
class ActionCodec:
    """How actions of one space are decoded."""

    spec: ActionSpec
    batch: Callable[[np.ndarray], Any]  # policy's [N] or [N, dim] → batched actions, as gymnasium.vector takes them
    rows: Callable[[Any], Sequence[Any]]  # batched actions → one for each environment


def action_codec(space: spaces.Space, rescale: bool, env_id: str) -> ActionCodec:
    """Choose the conversion once; ConfigError for spaces no algorithm here can serve."""
    leaves = list(_leaves(space, env_id))
    discrete = [not isinstance(leaf, spaces.Box) for leaf in leaves]
    if any(discrete) and not all(discrete):
        raise ConfigError(
            f"env_id: {env_id} mixes discrete and continuous actions ({space}), which no algorithm here serves; "
            "add a wrapper to env_wrappers (module:Class) that makes them all discrete or all Box"
        )
    decode, _ = _decoder(space, 0)
    if not all(discrete):
        low = np.concatenate([leaf.low.ravel() for leaf in leaves]).astype(np.float32)
        high = np.concatenate([leaf.high.ravel() for leaf in leaves]).astype(np.float32)
        spec = ActionSpec("box", (), len(low), low, high)
        bound = _bounding(low, high, rescale)
        return ActionCodec(spec, lambda action: decode(bound(action)), _rows(space))
    sizes = tuple(size for leaf in leaves for size in _sizes(leaf))
    if isinstance(space, spaces.Discrete):
        return ActionCodec(ActionSpec("discrete", sizes, 1), _discrete_batch(space), list)
    return ActionCodec(ActionSpec("multi_discrete", sizes, len(sizes)), decode, _rows(space))


def write_action_mask(value: Any, out: np.ndarray) -> None:
    """One row from `info["action_mask"]`; absent or all False (as after an ending) means that nothing is forbidden."""
    if value is None:
        out[:] = True
        return
    row = np.concatenate([np.ravel(part) for part in value]) if isinstance(value, (tuple, list)) else np.ravel(value)
    if row.shape != out.shape:
        raise ValueError(f"expected an action_mask of {len(out)} entries, got {len(row)}")
    out[:] = row
    if not out.any():
        out[:] = True


def random_action(spec: ActionSpec, mask: Any, rng: np.random.Generator) -> np.ndarray:
    """What a policy without a clue would put out for one environment: any action the mask allows."""
    if spec.kind == "box":
        return rng.uniform(-1, 1, spec.dim).astype(np.float32)
    row = np.ones(sum(spec.sizes), bool)
    write_action_mask(mask, row)
    parts = np.split(row, np.cumsum(spec.sizes)[:-1])
    chosen = [rng.choice(np.flatnonzero(part)) for part in parts]
    return np.array(chosen[0] if spec.kind == "discrete" else chosen, np.int32)


def _leaves(space: spaces.Space, env_id: str) -> Iterator[Any]:
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        for part in _parts(space):
            yield from _leaves(part, env_id)
    elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)):
        yield space
    else:
        raise ConfigError(
            f"env_id: {env_id} takes {type(space).__name__} actions, which no algorithm here serves; add a wrapper to "
            "env_wrappers (module:Class) that takes Discrete, MultiDiscrete, MultiBinary or Box actions"
        )


def _parts(space: spaces.Tuple | spaces.Dict) -> list[spaces.Space]:
    return list(space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces)


def _sizes(space: spaces.Space) -> list[int]:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    return [2] * int(np.prod(space.shape or ()))


def _discrete_batch(space: spaces.Discrete) -> Callable[[np.ndarray], np.ndarray]:
    start, dtype = int(space.start), space.dtype
    return (lambda action: action.astype(dtype) + start) if start else (lambda action: action.astype(dtype))


Decoder = Callable[[np.ndarray], Any]


def _decoder(space: spaces.Space, offset: int) -> tuple[Decoder, int]:
    """Columns from `offset` on, shaped as the space has them; and the offset behind them."""
    if isinstance(space, (spaces.Tuple, spaces.Dict)):
        decoders = []
        for part in _parts(space):
            decode, offset = _decoder(part, offset)
            decoders.append(decode)
        if isinstance(space, spaces.Tuple):
            return (lambda columns: tuple(decode(columns) for decode in decoders)), offset
        names = list(space.spaces)
        return (lambda columns: {name: decode(columns) for name, decode in zip(names, decoders, strict=True)}), offset

    shape, dtype = space.shape or (), space.dtype
    end = offset + int(np.prod(shape))
    start = np.ravel(getattr(space, "start", 0))
    whole = isinstance(space, spaces.Box) and np.issubdtype(dtype, np.integer)

    def decode_leaf(columns: np.ndarray) -> np.ndarray:
        part = columns[:, offset:end]
        if whole:
            part = np.rint(part)
        elif start.any():
            part = part + start
        return part.reshape(len(columns), *shape).astype(dtype, copy=False)

    return decode_leaf, end


def _rows(space: spaces.Space) -> Callable[[Any], Sequence[Any]]:
    if isinstance(space, spaces.Tuple):
        parts = [_rows(part) for part in space.spaces]
        return lambda batch: list(zip(*(rows(part) for rows, part in zip(parts, batch, strict=True)), strict=True))
    if isinstance(space, spaces.Dict):
        named = {name: _rows(part) for name, part in space.spaces.items()}
        return lambda batch: [
            dict(zip(named, row, strict=True))
            for row in zip(*(rows(batch[name]) for name, rows in named.items()), strict=True)
        ]
    return list


def bounds_of(low: np.ndarray, high: np.ndarray, rescale: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Low and high, infinite where there is no bound; and where actions are scaled from [-1, 1]."""
    low = np.where(np.abs(low) < UNBOUNDED, low, -np.inf).astype(np.float32)
    high = np.where(np.abs(high) < UNBOUNDED, high, np.inf).astype(np.float32)
    scaled = np.isfinite(low) & np.isfinite(high) if rescale else np.zeros(len(low), bool)
    return low, high, scaled


def _bounding(low: np.ndarray, high: np.ndarray, rescale: bool) -> Callable[[np.ndarray], np.ndarray]:
    """Into the bounds: scaled from [-1, 1] where both are finite and `rescale` is on, else clipped where finite."""
    low, high, scaled = bounds_of(low, high, rescale)
    if not scaled.any() or (np.all(low == -1) and np.all(high == 1)):
        return lambda action: np.clip(action, low, high)
    span = np.where(scaled, (high - low) / 2, 0).astype(np.float32)
    middle = np.where(scaled, (high + low) / 2, 0).astype(np.float32)

    def bound(action: np.ndarray) -> np.ndarray:
        inside = middle + np.clip(action, -1, 1) * span
        return np.clip(np.where(scaled, inside, action), low, high)  # rounding may step over a bound

    return bound
