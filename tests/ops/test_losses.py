import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from gymnasium_solver.ops import losses, masked

ONES = jnp.ones(4)


def test_clipped_surrogate_by_hand() -> None:
    ratio = jnp.array([1.5, 1.5, 0.5, 0.5])
    advantage = jnp.array([1.0, -1.0, 1.0, -1.0])
    # Gains beyond the clip do not count (1.2, -0.8); losses do (-1.5, 0.5).
    expected = -np.mean([1.2, -1.5, 0.5, -0.8])
    assert losses.clipped_surrogate(jnp.log(ratio), advantage, ONES, 0.2) == pytest.approx(expected, rel=1e-5)
    oracle = rlax.clipped_surrogate_pg_loss(ratio, advantage, 0.2)
    assert losses.clipped_surrogate(jnp.log(ratio), advantage, ONES, 0.2) == pytest.approx(float(oracle), rel=1e-5)


def test_rows_without_weight_change_nothing() -> None:
    log_ratio, advantage, weight = jnp.array([0.1, 9.0]), jnp.array([1.0, 9.0]), jnp.array([1.0, 0.0])
    alone = losses.clipped_surrogate(log_ratio[:1], advantage[:1], weight[:1], 0.2)
    assert losses.clipped_surrogate(log_ratio, advantage, weight, 0.2) == pytest.approx(float(alone))
    assert losses.value_error(advantage, jnp.zeros(2), weight) == pytest.approx(1.0)
    assert losses.kl_estimate(log_ratio, weight) == pytest.approx(np.expm1(0.1) - 0.1, rel=1e-5)


def test_clipped_value_error_takes_the_larger_error() -> None:
    # Moved from 0 to 2 towards 3: held within ±1 the error is (1 − 3)², larger than (2 − 3)².
    error = losses.clipped_value_error(jnp.array([2.0]), jnp.array([0.0]), jnp.array([3.0]), jnp.ones(1), 1.0)
    assert error == pytest.approx(4.0)


def test_kl_estimate_is_never_negative_and_zero_without_change() -> None:
    log_ratio = jnp.asarray(np.random.default_rng(0).standard_normal(1000), jnp.float32)
    assert losses.kl_estimate(log_ratio, jnp.ones(1000)) > 0
    assert losses.kl_estimate(jnp.zeros(4), ONES) == 0


def test_policy_gradient_agrees_with_hand() -> None:
    assert losses.policy_gradient(jnp.array([-1.0, -2.0]), jnp.array([3.0, 1.0]), jnp.ones(2)) == pytest.approx(2.5)


def test_standardize_ignores_rows_without_weight() -> None:
    x = jnp.array([1.0, 2.0, 3.0, 100.0])
    weight = jnp.array([1.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(masked.standardize(x, weight)[:3], np.array([-1, 0, 1]) / np.sqrt(2 / 3), rtol=1e-5)
    assert np.isfinite(masked.mean(x, jnp.zeros(4)))


def test_huber_by_hand() -> None:
    # Half the square up to 1, then a straight line of slope 1 that meets it there.
    error = jnp.array([0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -10.0])
    np.testing.assert_allclose(losses.huber(error), [0.0, 0.125, 0.125, 0.5, 0.5, 2.5, 9.5])
    slope = jax.vmap(jax.grad(losses.huber))(error)
    np.testing.assert_allclose(slope, [0.0, 0.5, -0.5, 1.0, -1.0, 1.0, -1.0])


def test_huber_agrees_with_rlax() -> None:
    error = jnp.linspace(-4.0, 4.0, 101)
    np.testing.assert_allclose(losses.huber(error), rlax.huber_loss(error, 1.0), atol=1e-6)


def test_huber_of_a_huge_error_is_finite_with_its_gradient() -> None:
    # The square of 1e30 is no float32: the branch that is not taken must not spoil the one that is.
    assert losses.huber(jnp.float32(1e30)) == pytest.approx(1e30)
    assert jax.grad(losses.huber)(jnp.float32(1e30)) == 1.0
