from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.config.schema import Optimizer
from gymnasium_solver.ops.optimizers import clip_by_norm, global_norm, initial_state, make_optimizer

PARAMS = {"layer": {"weight": np.ones((3, 2), np.float32), "bias": np.ones(2, np.float32)}}


@pytest.mark.parametrize("name", get_args(Optimizer))
def test_every_optimizer_starts_as_optax_says_and_descends(name: str) -> None:
    optimizer = make_optimizer(name, eps=1e-8, weight_decay=0.0)
    state = initial_state(name, optimizer, PARAMS)
    jax.tree.map(np.testing.assert_array_equal, state, optimizer.init(PARAMS))

    def loss(params: dict) -> jnp.ndarray:
        return jnp.sum(jnp.square(params["layer"]["weight"])) + jnp.sum(jnp.square(params["layer"]["bias"]))

    params = PARAMS
    for _ in range(20):
        steps, state = optimizer.update(jax.grad(loss)(params), state, params)
        params = jax.tree.map(lambda p, s: p - 0.02 * s, params, steps)
    assert loss(params) < loss(PARAMS)


def test_clip_by_norm() -> None:
    gradients = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    norm = global_norm(gradients)
    assert norm == pytest.approx(5.0)
    assert global_norm(clip_by_norm(gradients, norm, 1.0)) == pytest.approx(1.0, rel=1e-5)
    assert clip_by_norm(gradients, norm, None) is gradients
    assert clip_by_norm(gradients, norm, 10.0)["a"] == pytest.approx(3.0)
