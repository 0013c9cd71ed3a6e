"""Any Gymnasium observation becomes one float32 vector or one uint8 image (height, width, channels).

A writer copies an observation into `out`; the same writer serves one environment (`out` of shape [*obs_shape]) and a
batch of them (`out` of shape [N, *obs_shape]). It raises ValueError when the observation is not what its space says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from gymnasium_solver.errors import ConfigError

Writer = Callable[[Any, np.ndarray], None]

MIN_IMAGE_SIDE = 20  # below this a uint8 array is a grid of codes (MiniGrid: 7 × 7), not a picture
MAX_STACKED_CHANNELS = 16  # a first axis up to this long, before two long ones, holds channels or stacked frames


@dataclass(frozen=True)
class ObservationCodec:
    """How observations of one space are brought to the policy."""

    shape: tuple[int, ...]
    dtype: np.dtype
    is_image: bool
    write: Writer
    is_identity: bool  # a batch as the environment returns it is already what the policy wants
    note: str  # what was left out, if anything
    sizes: tuple[int, ...] = ()  # values of each component, where all are discrete

    def batch(self, obs: Any, out: np.ndarray) -> np.ndarray:
        """A vector environment's observations for the policy: as they came if they fit, else written into `out`."""
        if self.is_identity and obs.shape == out.shape and obs.dtype == out.dtype:
            return obs
        self.write(obs, out)
        return out


def observation_codec(space: spaces.Space, env_id: str) -> ObservationCodec:
    """Choose the conversion once; ConfigError for spaces no network here can read."""
    ignored: list[str] = []
    leaves = [leaf for leaf in _leaves(space, (), env_id) if not _is_ignored(leaf, ignored)]
    note = f"observation {', '.join(ignored)} left out (text)" if ignored else ""
    sizes = _discrete_sizes([leaf for _, leaf in leaves])
    if not leaves:
        raise _unsupported(space, env_id)

    if len(leaves) == 1:
        path, leaf = leaves[0]
        image = _image_writer(leaf)
        if image is not None:
            shape, write = image
            identity = not path and leaf.shape == shape
            return ObservationCodec(shape, np.dtype(np.uint8), True, _at(path, write), identity, note)
        size, write = _vector_writer(leaf)
        identity = not path and leaf.dtype == np.float32 and leaf.shape == (size,)
        return ObservationCodec((size,), np.dtype(np.float32), False, _at(path, write), identity, note, sizes)

    parts: list[tuple[Writer, int, int]] = []
    stop = 0
    for path, leaf in leaves:
        size, write = _vector_writer(leaf)
        parts.append((_at(path, write), stop, stop + size))
        stop += size

    def write_all(value: Any, out: np.ndarray) -> None:
        for write, start, end in parts:
            write(value, out[..., start:end])

    return ObservationCodec((stop,), np.dtype(np.float32), False, write_all, False, note, sizes)


def _discrete_sizes(leaves: list[spaces.Space]) -> tuple[int, ...]:
    """How many values each one-hot component has; () if anything is no category."""
    sizes: list[int] = []
    for leaf in leaves:
        if isinstance(leaf, spaces.Discrete):
            sizes.append(int(leaf.n))
        elif isinstance(leaf, spaces.MultiDiscrete):
            sizes += [int(n) for n in leaf.nvec.ravel()]
        else:
            return ()
    return tuple(sizes)


Leaf = tuple[tuple[Any, ...], spaces.Space]


def _leaves(space: spaces.Space, path: tuple[Any, ...], env_id: str) -> Iterator[Leaf]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _leaves(part, (*path, key), env_id)
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _leaves(part, (*path, index), env_id)
    elif isinstance(space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)) or (
        path and _is_text(space)
    ):
        yield path, space
    else:
        raise _unsupported(space, env_id)


def _is_text(space: spaces.Space) -> bool:
    return space.dtype is not None and space.dtype.kind == "U"  # Text, and MiniGrid's own MissionSpace


def _is_ignored(leaf: Leaf, ignored: list[str]) -> bool:
    """MiniGrid's mission and the like: a sentence beside the numbers, which the policies here do not read."""
    path, space = leaf
    if _is_text(space):
        ignored.append(".".join(map(str, path)))
        return True
    return False


def _unsupported(space: spaces.Space, env_id: str) -> ConfigError:
    return ConfigError(
        f"env_id: {env_id} has {type(space).__name__} observations, which no network here reads; add a wrapper to "
        "env_wrappers (module:Class) that turns them into Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
    )


def _at(path: tuple[Any, ...], write: Writer) -> Writer:
    if not path:
        return write

    def write_part(value: Any, out: np.ndarray) -> None:
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError) as error:
                raise ValueError(f"expected an observation with {key!r}, got {_brief(value)}") from error
        write(value, out)

    return write_part


def _image_writer(space: spaces.Space) -> tuple[tuple[int, ...], Writer] | None:
    """Shape (H, W, C) and writer when the space holds pictures: (H,W), (H,W,C), (C,H,W) or stacked (K,H,W,C)."""
    shape = space.shape
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or shape is None:
        return None
    if len(shape) == 2 and min(shape) >= MIN_IMAGE_SIDE:
        out_shape, arrange = (*shape, 1), lambda array: array[..., None]
    elif len(shape) == 3 and shape[0] <= MAX_STACKED_CHANNELS and min(shape[1:]) >= MIN_IMAGE_SIDE:
        out_shape, arrange = (*shape[1:], shape[0]), lambda array: np.moveaxis(array, -3, -1)
    elif len(shape) == 3 and min(shape[:2]) >= MIN_IMAGE_SIDE:
        out_shape, arrange = shape, lambda array: array
    elif len(shape) == 4 and min(shape[1:3]) >= MIN_IMAGE_SIDE:
        frames, height, width, channels = shape
        out_shape = (height, width, frames * channels)

        def arrange(array: np.ndarray) -> np.ndarray:
            return np.moveaxis(array, -4, -2).reshape(*array.shape[:-4], *out_shape)
    else:
        return None

    def write(value: Any, out: np.ndarray) -> None:
        array = np.asarray(value)
        expected = out.shape[:-3] + shape
        if array.shape != expected or array.dtype != np.uint8:
            raise _mismatch(expected, "uint8", value)
        out[...] = arrange(array)

    return out_shape, write


def _vector_writer(space: spaces.Space) -> tuple[int, Writer]:
    if isinstance(space, spaces.Discrete):
        return int(space.n), _one_hot_writer(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum()), _many_hot_writer(space)
    if isinstance(space, spaces.Box) and space.dtype == np.uint8:
        return _number_writer(space.shape, scale=np.maximum(space.high, 1).astype(np.float32).ravel())
    assert space.shape is not None
    return _number_writer(space.shape)


def _number_writer(shape: tuple[int, ...], scale: np.ndarray | None = None) -> tuple[int, Writer]:
    """Flatten; bytes are divided by the top of their range, so that they come as [0, 1]."""
    divisor: Any = scale
    if scale is not None and np.all(scale == scale[0]):
        divisor = float(scale[0])

    def write(value: Any, out: np.ndarray) -> None:
        array = np.asarray(value)
        expected = out.shape[:-1] + shape
        if array.shape != expected or array.dtype.kind not in "fiub":
            raise _mismatch(expected, "numbers", value)
        out[...] = array.reshape(out.shape)
        if divisor is not None:
            np.divide(out, divisor, out=out)

    return int(np.prod(shape)), write


def _one_hot_writer(n: int, start: int) -> Writer:
    def write(value: Any, out: np.ndarray) -> None:
        out[...] = 0.0
        if out.ndim == 1:
            index = int(value) - start
            if not 0 <= index < n:
                raise ValueError(f"expected a Discrete observation in [{start}, {start + n}), got {value!r}")
            out[index] = 1.0
            return
        indices = np.asarray(value).reshape(len(out)) - start
        if indices.min() < 0 or indices.max() >= n:
            raise ValueError(f"expected Discrete observations in [{start}, {start + n}), got {value!r}")
        out[np.arange(len(out)), indices] = 1.0

    return write


def _many_hot_writer(space: spaces.MultiDiscrete) -> Writer:
    sizes, starts, shape = space.nvec.ravel(), space.start.ravel(), space.nvec.shape
    ends = np.cumsum(sizes)
    writers = [_one_hot_writer(int(n), int(start)) for n, start in zip(sizes, starts, strict=True)]

    def write(value: Any, out: np.ndarray) -> None:
        array = np.asarray(value)
        lead = out.shape[:-1]
        if array.shape != lead + shape:
            raise _mismatch(lead + shape, "integers", value)
        components = array.reshape(*lead, len(writers))
        for i, write_one in enumerate(writers):
            write_one(components[..., i], out[..., ends[i] - sizes[i] : ends[i]])

    return write


def _mismatch(shape: tuple[int, ...], dtype: str, value: Any) -> ValueError:
    return ValueError(f"expected an observation of shape {shape} ({dtype}), got {_brief(value)}")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return f"a dict with {sorted(map(str, value))}"
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return type(value).__name__
    return f"shape {array.shape} ({array.dtype})"
