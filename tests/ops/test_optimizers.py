from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from gymnasium_solver.config.base import NetworkConfig
from gymnasium_solver.ops.flat import Layout
from gymnasium_solver.ops.optimizers import descent_direction, initial_state, make_optimizer

PARAMS = {"layer": {"weight": np.ones((3, 2), np.float32), "bias": np.ones(2, np.float32)}}


@pytest.mark.parametrize("name", get_args(NetworkConfig.model_fields["optimizer"].annotation))
def test_every_optimizer_starts_as_optax_says_and_descends(name: str) -> None:
    optimizer = make_optimizer(name, eps=1e-8, weight_decay=0.0)
    layout = Layout.of(PARAMS)
    vector = layout.flatten(PARAMS)
    by_tensor = name in ("lamb", "muon")
    state = initial_state(name, optimizer, PARAMS)
    jax.tree.map(np.testing.assert_array_equal, state, optimizer.init(PARAMS if by_tensor else vector))

    def loss(vector: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(jnp.square(vector))

    first = loss(vector)
    for _ in range(20):
        step, state = descent_direction(name, optimizer, jax.grad(loss)(vector), state, vector, layout)
        vector = vector - 0.02 * step
    assert loss(vector) < first


def test_adam_on_the_flat_vector_equals_optax_on_the_tensors() -> None:
    optimizer, layout = make_optimizer("adam", eps=1e-5, weight_decay=0.0), Layout.of(PARAMS)
    theirs = optax.scale_by_adam(eps=1e-5)
    state, their_state = initial_state("adam", optimizer, PARAMS), theirs.init(PARAMS)
    for step in range(5):
        gradients = jax.tree.map(lambda p: (step - 2) * 0.1 * p + np.arange(p.size).reshape(p.shape), PARAMS)  # noqa: B023
        flat, state = descent_direction(
            "adam", optimizer, layout.flatten(gradients), state, layout.flatten(PARAMS), layout
        )
        tree, their_state = theirs.update(gradients, their_state, PARAMS)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), layout.unflatten(flat), tree)
    np.testing.assert_array_equal(state["count"], their_state.count)


def test_layout_is_exact_and_knows_its_parts() -> None:
    tree = {"head": np.arange(3.0), "trunk": {"a": np.arange(4.0).reshape(2, 2), "b": np.array([9.0])}}
    layout = Layout.of(tree)
    jax.tree.map(np.testing.assert_array_equal, layout.unflatten(layout.flatten(tree)), tree)
    assert layout.segments == {"head": (0, 3), "trunk": (3, 8), "trunk/a": (3, 7), "trunk/b": (7, 8)}
