"""Hidden layers: a CNN for images, then an MLP; the part of every network that heads stand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.networks.layers import (
    ACTIVATIONS,
    GAINS,
    Layer,
    convolution,
    convolution_init,
    dense,
    layer_norm,
    layer_norm_init,
    mlp_init,
)

# (channels, kernel, stride) for images from 60 pixels (Mnih et al. 2015) and for smaller ones.
_LARGE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_SMALL = ((16, 4, 2), (32, 3, 1))

Layers = dict[str, list[Layer]]


class Trunk(NamedTuple):
    """Pure functions of parameters and observations [B, *obs_shape] (images as bytes)."""

    init: Callable[[np.random.Generator], Layers]
    hidden: Callable[[Layers, Array, Array | None], list[Array]]  # outputs of the dense layers, the features last
    width: int
    cast: Callable[[Any], Any]  # parameters to the type that is computed with


def make_trunk(
    *,
    obs_shape: tuple[int, ...],
    is_image: bool,
    hidden_dims: tuple[int, ...],
    activation: str,
    orthogonal: bool,
    dtype: Any,
    normalize: bool = False,
    n_extra: int = 0,
) -> Trunk:
    """`n_extra` further inputs (actions of a critic) join the observations, or what the CNN makes of them."""
    activate, gain = ACTIVATIONS[activation], GAINS[activation]
    filters = (_LARGE if min(obs_shape[:2]) >= 60 else _SMALL) if is_image else ()

    def init(rng: np.random.Generator) -> Layers:
        convolutions, shape = [], obs_shape
        for channels, kernel, stride in filters:
            convolutions.append(convolution_init(rng, kernel, shape[2], channels, gain, orthogonal))
            shape = ((shape[0] - kernel) // stride + 1, (shape[1] - kernel) // stride + 1, channels)
        sizes = (int(np.prod(shape)) + n_extra, *hidden_dims)
        layers = {"convolutions": convolutions, "dense": mlp_init(rng, sizes, gain, orthogonal)}
        return layers | ({"norm": [layer_norm_init(width) for width in hidden_dims]} if normalize else {})

    def hidden(layers: Layers, x: Array, extra: Array | None) -> list[Array]:
        x = x.astype(dtype) / 255 if is_image else x.astype(dtype)
        for layer, (_, kernel, stride) in zip(layers["convolutions"], filters, strict=True):
            x = activate(convolution(layer, x, kernel, stride))
        x = x.reshape(x.shape[0], -1)
        if extra is not None:
            x = jnp.concatenate([x, extra.astype(dtype)], axis=-1)
        outputs = []
        for i, layer in enumerate(layers["dense"]):
            x = dense(layer, x)
            if normalize:
                x = layer_norm(layers["norm"][i], x)
            x = activate(x)
            outputs.append(x)
        return outputs

    def cast(params: Any) -> Any:
        return params if dtype == jnp.float32 else jax.tree.map(lambda p: p.astype(dtype), params)

    return Trunk(init, hidden, hidden_dims[-1], cast)
