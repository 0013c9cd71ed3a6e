"""Checkpoint files: safetensors with the run's metadata and a checksum in the header; no pickle."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.errors import CheckpointError
from gymnasium_solver.limits import LARGEST_TENSOR_HEADER, parse_json
from gymnasium_solver.runs.layout import replace_file, sync_directory, temporary_name, to_json, write_json

SUFFIX = ".safetensors"
# One key only: the format keeps metadata in a hash map, and equal checkpoints should be equal bytes.
HEADER_KEY = "gymnasium-solver"
_BLOCK = 2**20  # bytes read at a time

Tensor = tuple[tuple[int, ...], np.dtype, int, int]  # shape, type, bytes and offset
# The memory that a tensor is read into, by its name, shape and type; None: it is not wanted.
Place = Callable[[str, tuple[int, ...], np.dtype], np.ndarray | None]


def new_array(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.empty(shape, dtype)


def save(directory: Path, names: Sequence[str], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Path:
    """Written once under the first name, linked to the others; every name always holds a whole checkpoint."""
    if not names or not all(re.fullmatch(r"[\w=-][\w=.-]*", name) for name in names):
        raise ValueError(f"checkpoint names must be like 'last', 'best' or 'epoch=3', not {list(names)}")
    arrays = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    text = to_json(meta)
    crc32 = _checksum(text, arrays)
    data = _encoded(arrays, json.dumps({"format": 1, "crc32": crc32, "meta": text}))

    directory.mkdir(exist_ok=True)
    first, *others = dict.fromkeys(names)
    source = directory / f"{first}{SUFFIX}"
    replace_file(source, data)
    for name in others:
        _link(source, directory / f"{name}{SUFFIX}")
    described = {name: f"{value.dtype}{list(value.shape)}" for name, value in arrays.items()}
    for name in (first, *others):
        file = {"name": f"{name}{SUFFIX}", "bytes": sum(map(len, data)), "crc32": crc32, "arrays": described}
        write_json(directory / f"{name}.json", {**json.loads(text), "file": file})
    sync_directory(directory)
    return source


def load(path: Path, place: Place = new_array) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata; CheckpointError says what is wrong with a file that is not a whole checkpoint of ours.

    A replay may be larger than what memory is left: `place` says where a tensor goes, or that it is not kept. The
    checksum is that of the whole file all the same.
    """
    try:
        with path.open("rb") as file:
            entries, start = _entries(file)
            header = entries.pop("__metadata__", {}).get(HEADER_KEY)
            if header is None:
                raise CheckpointError(f"{path} was written by another program (no gymnasium-solver metadata in it)")
            described = parse_json(header.encode())
            text, crc32 = described["meta"], described["crc32"]
            meta = _renamed(parse_json(text.encode()))
            arrays, checksum = {}, zlib.crc32(text.encode())
            tensors = {name: _entry(entry) for name, entry in entries.items()}
            _require_there(tensors.values(), os.fstat(file.fileno()).st_size - start)
            for name, (shape, dtype, nbytes, offset) in sorted(tensors.items()):
                array = place(name, shape, dtype)
                file.seek(start + offset)
                checksum = _read(file, nbytes, array, zlib.crc32(name.encode(), checksum))
                if array is not None:
                    arrays[name] = array
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"{path} is corrupt or no safetensors file ({error})") from error
    except MemoryError as error:
        raise CheckpointError(f"{path} does not fit into memory") from error
    if checksum != crc32:
        raise CheckpointError(f"{path} is corrupt (its checksum does not fit its content)")
    return arrays, meta


def _renamed(meta: dict[str, Any]) -> dict[str, Any]:
    """Checkpoints of earlier versions call the count of updates otherwise."""
    progress = meta.get("progress")
    if isinstance(progress, dict) and "gradient_steps" in progress:
        progress["updates"] = progress.pop("gradient_steps")
    return meta


def _entries(file: BufferedReader) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where the tensors begin."""
    size, length = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
    if length > size - 8:
        raise ValueError("its header is cut off")
    if length > LARGEST_TENSOR_HEADER:
        raise ValueError("its header is too long")
    return parse_json(file.read(length)), 8 + length


def _entry(described: Mapping[str, Any]) -> Tensor:
    if described["dtype"] == "BF16":
        import ml_dtypes  # noqa: F401 (NumPy knows the type by its name once this is imported)
    dtype = np.dtype(_NAMES[described["dtype"]])
    shape, (start, stop) = tuple(described["shape"]), described["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, start, stop)):
        raise ValueError("a tensor has a shape or place that is none")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("a tensor has not the size of its shape")
    return shape, dtype, stop - start, start


def _require_there(tensors: Iterable[Tensor], size: int) -> None:
    """All in the file, and no two in the same place: what is read is no more than what is there."""
    end = 0
    for _, _, nbytes, offset in sorted(tensors, key=lambda tensor: tensor[3]):
        if offset < end:
            raise ValueError("two tensors share a place")
        end = offset + nbytes
    if end > size:
        raise ValueError("it is cut off")


def _read(file: BufferedReader, nbytes: int, array: np.ndarray | None, checksum: int) -> int:
    """The checksum goes on over these bytes, which are left in the array if there is one."""
    block = memoryview(bytearray(min(_BLOCK, nbytes))) if array is None else _memory(array)
    done = 0
    while done < nbytes:
        at = 0 if array is None else done
        count = file.readinto(block[at : at + min(_BLOCK, nbytes - done)])
        if not count:
            raise ValueError("it is cut off")
        checksum = zlib.crc32(block[at : at + count], checksum)
        done += count
    return checksum


def available(directory: Path) -> list[str]:
    """Names of the checkpoints: last, best, then the newest epoch first."""
    try:
        names = [path.name.removesuffix(SUFFIX) for path in directory.iterdir() if path.name.endswith(SUFFIX)]
    except OSError:
        return []
    return sorted((name for name in names if name and not name.startswith(".")), key=_order)


def first_intact(directory: Path, names: Iterable[str]) -> str | None:
    for name in names:
        with contextlib.suppress(CheckpointError):
            load(directory / f"{name}{SUFFIX}", lambda *_: None)
            return name
    return None


def _order(name: str) -> tuple[int, int, str]:
    fixed = {"last": 0, "best": 1}
    epoch = re.fullmatch(r"epoch=(\d+)", name)
    return fixed.get(name, 2 if epoch else 3), -int(epoch[1]) if epoch else 0, name


def _link(source: Path, target: Path) -> None:
    temporary = temporary_name(target)
    temporary.unlink(missing_ok=True)
    try:
        try:
            temporary.hardlink_to(source)
        except OSError:  # a file system without hard links
            shutil.copyfile(source, temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


_TYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "uint32": "U32",
    "int32": "I32", "float32": "F32", "bfloat16": "BF16", "uint64": "U64", "int64": "I64", "float64": "F64",
}  # fmt: skip
_NAMES = {kind: name for name, kind in _TYPES.items()}


def _encoded(arrays: Mapping[str, np.ndarray], header: str) -> list[bytes | memoryview]:
    """A safetensors file in pieces that refer to the arrays' own memory: the library's encoder would copy a replay of
    gigabytes twice. Larger types come first, so that every tensor is aligned."""
    entries: dict[str, Any] = {"__metadata__": {HEADER_KEY: header}}
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    stop = 0
    for name in ordered:
        start, stop = stop, stop + arrays[name].nbytes
        kind = _TYPES[arrays[name].dtype.name]
        entries[name] = {"dtype": kind, "shape": list(arrays[name].shape), "data_offsets": [start, stop]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *(_memory(arrays[name]) for name in ordered)]


def _memory(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(meta: str, arrays: Mapping[str, np.ndarray]) -> int:
    checksum = zlib.crc32(meta.encode())
    for name in sorted(arrays):
        checksum = zlib.crc32(name.encode(), checksum)
        checksum = zlib.crc32(_memory(np.asarray(arrays[name], order="C")), checksum)
    return checksum
