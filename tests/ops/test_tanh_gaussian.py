import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.ops import tanh_gaussian


def log_density(action: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Of actions in one dimension, by way of the standard normals that lead to them."""
    normal = (np.arctanh(action) - mean) / std
    output = jnp.broadcast_to(jnp.array([mean, np.log(std)]), (len(action), 2))
    sampled, log_prob = tanh_gaussian.sample(output, jnp.asarray(normal, jnp.float32)[:, None])
    np.testing.assert_allclose(sampled[:, 0], action, atol=1e-5)
    return np.asarray(log_prob)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.5), (0.4, 0.3), (-1.0, 0.6)])
def test_the_density_of_actions_sums_to_one(mean: float, std: float) -> None:
    action = np.linspace(-1, 1, 200_001)[1:-1]
    density = np.exp(log_density(action, mean, std))
    assert np.trapezoid(density, action) == pytest.approx(1.0, abs=2e-4)


def test_the_density_is_that_of_many_samples() -> None:
    normal = np.random.default_rng(0).standard_normal((200_000, 1), dtype=np.float32)
    output = jnp.broadcast_to(jnp.array([0.3, np.log(0.7)]), (len(normal), 2))
    action, _ = tanh_gaussian.sample(output, normal)
    share, edges = np.histogram(np.asarray(action)[:, 0], bins=20, range=(-0.95, 0.95))
    fine = np.linspace(-0.95, 0.95, 20 * 200 + 1)
    density = np.exp(log_density(fine, 0.3, 0.7))
    expected = np.array([np.trapezoid(density[i : i + 201], fine[i : i + 201]) for i in range(0, 4000, 200)])
    assert len(edges) == 21
    assert (np.abs(share / len(normal) - expected) < 5 * np.sqrt(expected / len(normal))).all()


def test_the_jacobian_is_the_slope_of_tanh() -> None:
    x = np.linspace(-5, 5, 401)
    slope = (np.tanh(x + 1e-5) - np.tanh(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(tanh_gaussian.log_jacobian(jnp.asarray(x, jnp.float32)), np.log(slope), atol=2e-5)


def test_the_jacobian_keeps_its_digits_where_tanh_has_none_left() -> None:
    """1 − tanh² = 4 / (e^x + e^−x)², which comes to 2 (log 2 − |x|) far out; 1 − tanh(20)² is 0 in single precision."""
    x = np.array([10.0, 20.0, 50.0, 1e3, 1e6])
    for side in (x, -x):
        np.testing.assert_allclose(
            tanh_gaussian.log_jacobian(jnp.asarray(side, jnp.float32)), 2 * (np.log(2) - x), rtol=1e-6
        )


def test_log_probability_by_hand() -> None:
    """Two dimensions: log-densities of the normals, less log σ, less log(1 − a²), summed."""
    mean, std, normal = np.array([0.2, -0.4]), np.array([0.5, 2.0]), np.array([1.5, -0.3])
    action = np.tanh(mean + std * normal)
    expected = np.sum(-0.5 * normal**2 - 0.5 * np.log(2 * np.pi) - np.log(std) - np.log(1 - action**2))
    sampled, log_prob = tanh_gaussian.sample(
        jnp.asarray(np.concatenate([mean, np.log(std)]), jnp.float32), jnp.asarray(normal, jnp.float32)
    )
    np.testing.assert_allclose(sampled, action, rtol=1e-6)
    assert log_prob == pytest.approx(expected, rel=1e-5)


def test_log_probability_and_gradient_are_finite_far_out() -> None:
    def log_prob(output: jax.Array) -> jax.Array:
        return jnp.sum(tanh_gaussian.sample(output, jnp.array([[5.0], [-5.0]]))[1])

    for mean, log_std in ((0.0, 2.0), (1e4, 0.0), (-1e4, -20.0), (30.0, 50.0), (0.0, -50.0)):
        output = jnp.array([[mean, log_std]] * 2)
        assert np.isfinite(log_prob(output))
        assert np.isfinite(jax.grad(log_prob)(output)).all()


def test_deviations_are_held_within_what_can_be_computed_with() -> None:
    mean, log_std = tanh_gaussian.split(jnp.array([1.0, 2.0, -99.0, 99.0]))
    assert mean.tolist() == [1.0, 2.0]
    assert log_std.tolist() == [-20.0, 2.0]
