import jax.numpy as jnp
import numpy as np

from gymnasium_solver.ops import running_statistics


def test_absorbing_in_parts_equals_the_whole() -> None:
    x = np.random.default_rng(0).normal(3, 2, (90, 4, 5)).astype(np.float32)
    statistics = running_statistics.initial((5,))
    for part in np.split(x, [10, 40]):
        statistics = running_statistics.absorb(statistics, jnp.asarray(part), jnp.ones(part.shape[:2]))
    np.testing.assert_allclose(statistics["mean"], x.mean((0, 1)), rtol=1e-4)
    np.testing.assert_allclose(statistics["var"], x.var((0, 1)), rtol=1e-4)
    assert statistics["count"] == 360


def test_rows_without_weight_are_ignored() -> None:
    x, weight = jnp.array([[1.0], [3.0], [1e6]]), jnp.array([1.0, 1.0, 0.0])
    statistics = running_statistics.absorb(running_statistics.initial((1,)), x, weight)
    np.testing.assert_allclose(statistics["mean"], [2.0])
    np.testing.assert_allclose(statistics["var"], [1.0])


def test_normalize_is_bounded_and_identity_before_any_data() -> None:
    statistics = running_statistics.initial((1,))
    np.testing.assert_allclose(
        running_statistics.normalize(statistics, jnp.array([[0.5], [99.0]]), 10), [[0.5], [10.0]]
    )


def test_discounted_sums_restart_after_an_ending() -> None:
    carry, sums = running_statistics.discounted_sums(
        jnp.array([8.0]), jnp.array([[1.0], [1.0], [1.0]]), jnp.array([[0.0], [1.0], [0.0]]), 0.5
    )
    np.testing.assert_allclose(sums[:, 0], [5.0, 3.5, 1.0])
    np.testing.assert_allclose(carry, [1.0])
