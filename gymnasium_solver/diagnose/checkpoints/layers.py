"""What the tensors of a checkpoint are, told by their names: parts, dense and convolutional layers, and which follow
one another.

Two ways of naming are known: ours (`params/trunk/policy/dense/0/weight`, inputs before outputs) and PyTorch's
(`mlp_extractor.policy_net.0.weight`, outputs first).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

Arrays = Mapping[str, np.ndarray]

_WEIGHT = ("weight", "kernel")
_RESUMING = ("actions", "steps", "visits", "return_carry")  # what a run of ours goes on from, beside its parts
# A moment that PyTorch's optimisers keep for a parameter, by its number.
TORCH_MOMENT = re.compile(r"(?P<optimizer>.*?)\.?state\.(?P<parameter>\d+)\.(?P<kind>\w+)")


class Layer(NamedTuple):
    name: str
    weight: np.ndarray  # [inputs, units]; of a convolution, the pixels of its kernel times the channels, channels last
    bias: np.ndarray | None
    scale: np.ndarray | None = None  # of a layer normalisation behind it
    shift: np.ndarray | None = None
    is_convolution: bool = False
    outputs_first: bool = False  # as PyTorch stores it, which also flattens images by channel

    @property
    def units(self) -> int:
        return self.weight.shape[1]

    def tensor(self, leaf: str) -> str:
        """Name of its weight or bias in the checkpoint."""
        return f"{self.name}{'/' if '/' in self.name else '.'}{leaf}"

    def by_input(self, width: int) -> np.ndarray | None:
        """The weight as [width, n, units], where the layer before has this many units; None if it does not fit."""
        inputs = len(self.weight)
        if inputs % width:
            return None
        if self.outputs_first and not self.is_convolution:
            return self.weight.reshape(width, -1, self.units)
        return self.weight.reshape(-1, width, self.units).swapaxes(0, 1)


class Chain(NamedTuple):
    """Hidden layers in the order the data passes them, and what reads the last of them (where that is known)."""

    hidden: list[Layer]
    readers: list[Layer]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts `dense/10` behind `dense/9`, as the parameters lie in an optimiser's vector."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"[/.]", name)]


def is_parameter(name: str) -> bool:
    """Whether a tensor is trained by gradients: no statistics, moments, copy of another, or counter."""
    if "/" in name:
        return name.startswith("params/")
    return name not in _RESUMING and not TORCH_MOMENT.fullmatch(name) and not is_target(name) and not is_statistic(name)


def is_moment(name: str) -> bool:
    return name.startswith("optimizer/") or "/optimizer/" in name or TORCH_MOMENT.fullmatch(name) is not None


def is_target(name: str) -> bool:
    return name.startswith("target/") if "/" in name else "target" in re.split(r"[._]", name)


def is_statistic(name: str) -> bool:
    return name.rpartition(".")[2] in ("running_mean", "running_var", "num_batches_tracked")


def is_replay(name: str) -> bool:
    return name.startswith("replay/")


def part_of(name: str) -> str:
    """The part of the network or of the training's state that a tensor belongs to."""
    if "/" not in name:
        if moment := TORCH_MOMENT.fullmatch(name):
            return moment["optimizer"] or "optimizer"
        names = name.split(".")
        numbered = next((i for i, part in enumerate(names) if part.isdigit()), len(names) - 1)
        return "resuming" if name in _RESUMING else ".".join(names[: max(1, numbered)])
    root, _, rest = name.partition("/")
    if root != "params":
        return root
    names = [part for part in rest.split("/")[:-1] if not part.isdigit()]
    kept = [part for part in names if part not in ("dense", "convolutions", "norm")]
    return "/".join(kept) or rest


def layers_of(arrays: Arrays) -> dict[str, Layer]:
    """Every trained layer with a matrix or a convolution, by its name."""
    found = {}
    for name, weight in arrays.items():
        base, separator, leaf = _split(name)
        is_weight = leaf in _WEIGHT and weight.ndim > 1 and weight.size and weight.dtype.kind == "f"
        if not is_weight or not is_parameter(name):
            continue
        bias = arrays.get(f"{base}{separator}bias")
        outputs_first = _outputs_first(weight, bias, separator, leaf)
        ordered = np.moveaxis(np.moveaxis(weight, 0, -1), 0, -2) if outputs_first else weight
        norm = base.replace("/dense/", "/norm/")
        found[base] = Layer(
            base,
            ordered.reshape(-1, ordered.shape[-1]),
            bias,
            arrays.get(f"{norm}/scale") if norm != base else None,
            arrays.get(f"{norm}/bias") if norm != base else None,
            is_convolution=weight.ndim > 2,
            outputs_first=outputs_first,
        )
    return found


def _outputs_first(weight: np.ndarray, bias: np.ndarray | None, separator: str, leaf: str) -> bool:
    if leaf == "kernel" or separator == "/":
        return False
    first, last = weight.shape[0], weight.shape[-1]
    return bias is None or weight.ndim > 2 or first == last or bias.shape == (first,)


def _split(name: str) -> tuple[str, str, str]:
    separator = "/" if "/" in name else "."
    base, _, leaf = name.rpartition(separator)
    return base, separator, leaf


def chains_of(layers: Mapping[str, Layer]) -> list[Chain]:
    ours = {name: layer for name, layer in layers.items() if "/" in name}
    others = {name: layer for name, layer in layers.items() if "/" not in name}
    return _our_chains(ours) + _numbered_chains(others)


def _our_chains(layers: Mapping[str, Layer]) -> list[Chain]:
    trunks: dict[tuple[str, str], list[str]] = {}
    for name in layers:
        match = re.fullmatch(r"(params(?:/\w+)?)/trunk/(?:(\w+)/)?(?:convolutions|dense)/\d+", name)
        if match:
            trunks.setdefault((match[1], match[2] or ""), []).append(name)
    chains = []
    for (root, which), names in trunks.items():
        heads = [layers[name] for name in layers if re.match(_reader(root, which), name)]
        chains.append(Chain([layers[name] for name in sorted(names, key=natural)], heads))
    return chains


def _reader(root: str, which: str) -> str:
    """Pattern of the heads on a trunk: a policy's or a value's own, a member of an ensemble, or all there are."""
    if which.isdigit():
        return rf"{root}/\w+_head/{which}(/|$)"
    head = {"policy": "actor_head", "value": "critic_head"}.get(which, r"\w+_head")
    return rf"{root}/{head}(/|$)"


def _numbered_chains(layers: Mapping[str, Layer]) -> list[Chain]:
    """Layers that differ in their last number (`net.0`, `net.2`; `fc1`, `fc2`), where the sizes fit together."""
    sequences: dict[str, list[Layer]] = {}
    for name in sorted(layers, key=natural):
        match = re.fullmatch(r"(.*?)(\d+)", name)
        sequences.setdefault(match[1] if match else name, []).append(layers[name])
    chains = []
    for container, sequence in sequences.items():
        fits = all(b.by_input(a.units) is not None for a, b in itertools.pairwise(sequence))
        if len(sequence) < 2 or not fits:
            continue
        last = sequence[-1]
        others = (layer for name, layer in layers.items() if not name.startswith(container))
        # A body whose head is a layer of its own, elsewhere: then the last one is hidden too.
        if last.units >= 8 and any(len(layer.weight) == last.units for layer in others):
            chains.append(Chain(sequence, []))
        else:
            chains.append(Chain(sequence[:-1], [last]))
    return chains
