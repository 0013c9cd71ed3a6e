"""Layers as (parameters, function) pairs: parameters are nested dicts and lists of arrays, nothing else.

Plain containers rather than module classes: they flatten in C++ on every call of a compiled function, their paths are
the tensor names of a checkpoint, and initial weights are made by NumPy without compiling anything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

Layer = dict[str, Any]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
}
GAINS = {"tanh": math.sqrt(2), "relu": math.sqrt(2), "elu": math.sqrt(2), "gelu": math.sqrt(2), "silu": math.sqrt(2)}


def dense_init(rng: np.random.Generator, n_in: int, n_out: int, gain: float, orthogonal: bool = True) -> Layer:
    if orthogonal:
        q, r = np.linalg.qr(rng.standard_normal((max(n_in, n_out), min(n_in, n_out))))
        q *= np.sign(np.diag(r))
        weight = gain * (q if n_in >= n_out else q.T)
    else:
        bound = 1 / math.sqrt(n_in)
        weight = rng.uniform(-bound, bound, (n_in, n_out))
    return {"weight": weight.astype(np.float32), "bias": np.zeros(n_out, np.float32)}


def dense(layer: Layer, x: Array) -> Array:
    return x @ layer["weight"] + layer["bias"]


def mlp_init(rng: np.random.Generator, sizes: Sequence[int], gain: float, orthogonal: bool) -> list[Layer]:
    return [dense_init(rng, a, b, gain, orthogonal) for a, b in itertools.pairwise(sizes)]


def layer_norm_init(width: int) -> Layer:
    return {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}


def layer_norm(layer: Layer, x: Array) -> Array:
    """https://arxiv.org/abs/1607.06450, over the last axis."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    spread = jnp.sqrt(jnp.mean(jnp.square(centred), axis=-1, keepdims=True) + 1e-6)
    return centred / spread * layer["scale"] + layer["bias"]


def convolution(layer: Layer, x: Array, kernel: int, stride: int) -> Array:
    """Valid convolution of images [B, H, W, C] as slices and one matrix product.

    On CPUs XLA's own convolution has a backward pass twice as slow. When the stride divides the kernel, blocks of
    stride × stride pixels are folded into channels first, which leaves (kernel / stride)² slices.
    """
    _, height, width, channels = x.shape
    rows, columns = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    weight = layer["weight"]  # [kernel, kernel, C, out]
    n_out = weight.shape[-1]
    if stride > 1 and kernel % stride == 0:
        blocks = kernel // stride
        x = x[:, : (rows + blocks - 1) * stride, : (columns + blocks - 1) * stride]
        x = x.reshape(x.shape[0], rows + blocks - 1, stride, columns + blocks - 1, stride, channels)
        x = x.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape[0], rows + blocks - 1, columns + blocks - 1, -1)
        weight = weight.reshape(blocks, stride, blocks, stride, channels, n_out).transpose(0, 2, 1, 3, 4, 5)
        kernel, stride = blocks, 1
    patches = [
        x[:, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
        for i in range(kernel)
        for j in range(kernel)
    ]
    return jnp.concatenate(patches, axis=-1) @ weight.reshape(-1, n_out) + layer["bias"]


def convolution_init(
    rng: np.random.Generator, kernel: int, n_in: int, n_out: int, gain: float, orthogonal: bool
) -> Layer:
    flat = dense_init(rng, kernel * kernel * n_in, n_out, gain, orthogonal)
    return {"weight": flat["weight"].reshape(kernel, kernel, n_in, n_out), "bias": flat["bias"]}
