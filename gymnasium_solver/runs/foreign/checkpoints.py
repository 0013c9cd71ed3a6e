"""Checkpoints of other programs as named arrays: safetensors, PyTorch files, Stable-Baselines3 archives.

A file is data, never code. PyTorch files are read with `weights_only`, which builds tensors and plain containers and
refuses everything else; there is no fallback to pickle. Sizes are checked before anything is unpacked.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from gymnasium_solver.errors import CheckpointError, MissingExtraError, NotFoundError, SolverError
from gymnasium_solver.limits import LARGEST_JSON, LARGEST_TENSORS, MOST_SWELLING, TooLarge, parse_json, read_member
from gymnasium_solver.runs import checkpoints, layout
from gymnasium_solver.runs.reader import Run

Loaded = tuple[dict[str, np.ndarray], dict[str, Any]]

_WHOLE = 256 * 2**20  # bytes of our own files up to which a replay is read as a whole
_BLOCKS, _BLOCK_ROWS = 32, 64  # looked at of a larger one
_SAFE_TORCH = (2, 6)  # CVE-2025-32434
_DEEPEST = 32  # nesting of dictionaries in a PyTorch file


def load_for_audit(path: Path) -> Loaded:
    """Named arrays and what is known about them (`source`, `progress`, `config`, `left_out`), by the file's content."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(9)
    except OSError as error:
        raise NotFoundError(f"there is no checkpoint file {path} that can be read ({error.strerror})") from error
    if not size:
        raise CheckpointError(f"{path} is empty")
    try:
        if head.startswith(b"PK"):
            return _archive(path)
        if len(head) == 9 and head[8:] == b"{":
            return _safetensors(path, size)
        if head[:1] == b"\x80" and path.suffix in (".pt", ".pth", ".ckpt", ".bin", ".tar"):  # PyTorch's old format
            return _torch(path, str(path), path.name)
    except (OSError, MemoryError, NotImplementedError, zipfile.BadZipFile, ValueError) as error:
        raise CheckpointError(f"{path} is corrupt or truncated ({_first_line(error)})") from error
    if head[:1] == b"\x80" or path.suffix in (".pkl", ".pickle"):
        raise CheckpointError(
            f"{path} is a pickle, which can run any code when it is loaded, so it was not; save the weights as "
            ".safetensors, or with torch.save(model.state_dict(), 'weights.pt')"
        )
    raise CheckpointError(
        f"{path} is corrupt or no checkpoint that is known: those are .safetensors, .pt and .pth of PyTorch, and .zip "
        "of Stable-Baselines3"
    )


def load_run_checkpoint(run: Run, name: str) -> Loaded:
    """A checkpoint of ours, with the run's config. Of a replay too large to read, some rows."""
    path = run.path / layout.CHECKPOINTS / f"{name}{checkpoints.SUFFIX}"
    is_large = path.is_file() and path.stat().st_size > _WHOLE
    arrays, meta = load_for_audit(path) if is_large else run.read_checkpoint(name)
    return arrays, meta | {"config": run.config}


def _safetensors(path: Path, size: int) -> Loaded:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = (file.metadata() or {}).get(checkpoints.HEADER_KEY)
            names = list(file.keys())
            if header is not None and size <= _WHOLE:
                return checkpoints.load(path)
            if header is None and size > LARGEST_TENSORS:
                raise CheckpointError(f"{path} has {size:,} bytes; at most {LARGEST_TENSORS:,} are read")
            arrays, left_out = {}, []
            for name in names:
                try:
                    arrays[name] = _rows(file.get_slice(name)) if name.startswith("replay/") else file.get_tensor(name)
                except TypeError:  # a type that NumPy has not
                    left_out.append(name)
        own = None if header is None else parse_json(parse_json(header.encode())["meta"].encode())
    except (SafetensorError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is corrupt or truncated ({_first_line(error)})") from error
    return arrays, (own or {"source": "safetensors"}) | {"left_out": left_out}


def _rows(stored: Any) -> np.ndarray:
    shape = stored.get_shape()
    if not shape or shape[0] <= _BLOCKS * _BLOCK_ROWS:
        return np.asarray(stored[:]) if shape else np.zeros(0)
    starts = np.linspace(0, shape[0] - _BLOCK_ROWS, _BLOCKS).astype(int).tolist()
    return np.concatenate([stored[start : start + _BLOCK_ROWS] for start in starts])


def _archive(path: Path) -> Loaded:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        _require_small(path, members.values(), path.stat().st_size)
        if "policy.pth" in members or ("data" in members and any(name.endswith(".pth") for name in members)):
            return _stable_baselines(path, archive, members)
        if not any(name.endswith("data.pkl") for name in members):
            raise CheckpointError(f"{path} is a zip archive, but neither PyTorch's nor of Stable-Baselines3")
    return _torch(path, str(path), path.name)


def _require_small(shown: Path | str, members: Iterable[zipfile.ZipInfo], size: int) -> None:
    """Weights hardly compress, and neither PyTorch nor Stable-Baselines3 tries: what swells is no checkpoint."""
    total = sum(info.file_size for info in members)
    if total > LARGEST_TENSORS or (total > LARGEST_JSON and total > MOST_SWELLING * size):
        raise CheckpointError(f"{shown} was not unpacked: its {size:,} bytes would become {total:,}")


def _stable_baselines(path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> Loaded:
    arrays: dict[str, np.ndarray] = {}
    meta: dict[str, Any] = {"source": "stable-baselines3", "left_out": []}
    meta |= _plain_settings(path, archive, members)
    for name in members:
        if not name.endswith(".pth"):
            continue
        content = read_member(archive, members[name], LARGEST_TENSORS)
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as inner:
                _require_small(f"{path}:{name}", inner.infolist(), len(content))
        prefix = "" if name in ("policy.pth", "pytorch_variables.pth") else name.removesuffix(".pth")
        found, described = _torch(io.BytesIO(content), f"{path}:{name}", path.name, prefix)
        arrays |= found
        for key in ("left_out", "empty_optimizers"):
            meta.setdefault(key, []).extend(described.get(key, []))
    return arrays, meta


def _plain_settings(path: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    """Numbers and words of the archive's `data`; what it holds as pickles is never touched."""
    if "data" not in members:
        return {}
    try:
        described = parse_json(read_member(archive, members["data"], LARGEST_JSON))
    except TooLarge:
        return {}
    except ValueError as error:
        raise CheckpointError(f"{path} is corrupt: its 'data' is no JSON ({_first_line(error)})") from error
    if not isinstance(described, dict):
        return {}
    config = {key: value for key, value in described.items() if isinstance(value, bool | int | float | str)}
    progress = {"env_steps": config.get("num_timesteps")}
    if "tau" in config:  # on-policy algorithms count epochs there, not gradient steps
        progress["updates"] = config.get("_n_updates")
    return {"config": config, "progress": progress}


def _torch(source: Path | IO[bytes], shown: str, filename: str, prefix: str = "") -> Loaded:
    try:
        torch: Any = import_module("torch")
    except ImportError as error:
        raise MissingExtraError(f"reading {filename}", "torch") from error
    version = str(torch.__version__)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _SAFE_TORCH:
        raise CheckpointError(
            f"{shown} was not read: torch {version} can run code from a file (CVE-2025-32434); install 2.6 or newer"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about formats of its own
            content = torch.load(source, map_location="cpu", weights_only=True)
    except SolverError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes the unpickler raise
        raise _refusal(shown, error) from error
    return _Tensors(torch, shown).read(content, prefix)


def _refusal(shown: str, error: Exception) -> CheckpointError:
    text = str(error)
    refused = re.search(r"(?:GLOBAL|global|class)\s+([\w.]+)", text)
    if "Weights only" in text or "weights_only" in text:
        what = f" ({refused[1]})" if refused else ""
        return CheckpointError(
            f"{shown} holds Python objects other than tensors{what}, which can run code when they are loaded, so it "
            "was not; save the weights alone with torch.save(model.state_dict(), 'weights.pt')"
        )
    return CheckpointError(f"{shown} is corrupt or truncated ({_first_line(error)})")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class _Tensors:
    """Walks what a PyTorch file holds: state dictionaries however nested, optimisers, plain numbers."""

    def __init__(self, torch: Any, shown: str) -> None:
        self._torch, self._shown = torch, shown
        self.arrays: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        self.left_out: list[str] = []
        self.empty_optimizers: list[str] = []
        self._seen: set[int] = set()
        self._bytes = 0

    def read(self, content: Any, prefix: str) -> Loaded:
        self._walk(content, prefix, 0)
        if not self.arrays and not self.empty_optimizers and not prefix and "pytorch_variables" not in self._shown:
            raise CheckpointError(f"{self._shown} holds no tensors")
        meta = {"source": "torch", "values": self.values, "left_out": self.left_out}
        return self.arrays, meta | {"empty_optimizers": self.empty_optimizers}

    def _walk(self, content: Any, name: str, depth: int) -> None:
        if isinstance(content, self._torch.Tensor):
            self._keep(content, name)
        elif isinstance(content, bool | int | float | str):
            self._keep_plain(content, name)
        elif isinstance(content, Mapping | list | tuple):
            # The same object twice, or inside itself, could be walked for ever.
            if id(content) in self._seen or depth > _DEEPEST:
                return
            self._seen.add(id(content))
            if isinstance(content, Mapping) and {"state", "param_groups"} <= set(content) and not content["state"]:
                self.empty_optimizers.append(name or "optimizer")
            pairs = content.items() if isinstance(content, Mapping) else enumerate(content)
            for key, value in pairs:
                self._walk(value, f"{name}.{key}" if name else str(key), depth + 1)

    def _keep_plain(self, content: bool | int | float | str, name: str) -> None:
        if re.fullmatch(r"(.*\.)?state\.\d+\.step", name) and isinstance(content, int | float):
            self.arrays[name] = np.asarray(content, np.float64)  # older PyTorch counts in plain numbers
        elif ".param_groups." not in f".{name}":
            self.values[name] = content

    def _keep(self, tensor: Any, name: str) -> None:
        torch = self._torch
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized or tensor.is_complex():
            self.left_out.append(name)
            return
        size = tensor.numel() * tensor.element_size()
        self._bytes += size
        # A view can claim any shape over a few bytes; written by a program that saves weights, it does not.
        if size > tensor.untyped_storage().nbytes() or self._bytes > LARGEST_TENSORS:
            raise CheckpointError(f"{self._shown}: tensor {name} of shape {list(tensor.shape)} is larger than the file")
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        try:
            self.arrays[name or "tensor"] = tensor.detach().numpy()
        except (TypeError, RuntimeError):  # types that NumPy has not
            self.left_out.append(name)
