import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.ops.distributions import (
    categorical,
    diagonal_gaussian,
    for_actions,
    mask_logits,
    multi_categorical,
)


def test_categorical_by_hand() -> None:
    p = np.array([0.1, 0.2, 0.7])
    d, logits = categorical(3), jnp.log(jnp.array([[0.1, 0.2, 0.7]])) + 5.0
    assert d.log_prob(logits, jnp.array([2]))[0] == pytest.approx(np.log(0.7), rel=1e-5)
    assert d.entropy(logits)[0] == pytest.approx(-(p * np.log(p)).sum(), rel=1e-5)
    assert d.mode(logits)[0] == 2
    assert d.max_entropy == pytest.approx(np.log(3))


def test_categorical_sampling_follows_the_probabilities() -> None:
    d = categorical(3)
    logits = jnp.log(jnp.broadcast_to(jnp.array([0.1, 0.2, 0.7]), (20_000, 3)))
    noise = d.draw_noise(np.random.default_rng(0), (20_000,))
    shares = np.bincount(np.asarray(d.sample(logits, noise)), minlength=3) / 20_000
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.7], atol=0.01)


def test_extreme_noise_is_finite_and_never_picks_a_masked_action() -> None:
    d = categorical(4)
    mask = jnp.array([True, False, True, False])
    for u in (1.0, np.float32(2**-24), 0.5):  # both ends of what draw_noise gives
        noise = jnp.full((1, 4), u).at[0, 1].set(1.0)
        assert int(d.sample(mask_logits(jnp.zeros((1, 4)), mask), noise)[0]) in (0, 2)


def test_masked_actions_have_no_probability_and_no_gradient() -> None:
    d, mask = categorical(3), jnp.array([True, True, False])

    def entropy(logits: jnp.ndarray) -> jnp.ndarray:
        return d.entropy(mask_logits(logits, mask))

    assert entropy(jnp.zeros(3)) == pytest.approx(np.log(2), rel=1e-6)
    gradient = jax.grad(lambda x: d.log_prob(mask_logits(x, mask), jnp.array(0)))(jnp.array([1.0, 2.0, 3.0]))
    assert gradient[2] == 0.0
    assert np.isfinite(gradient).all()


def test_multi_categorical_is_independent_categoricals() -> None:
    d = multi_categorical((2, 3))
    logits = jnp.array([[0.3, -0.2, 1.0, 0.0, -1.0]])
    first, second = categorical(2), categorical(3)
    action = jnp.array([[1, 2]])
    expected = first.log_prob(logits[:, :2], action[:, 0]) + second.log_prob(logits[:, 2:], action[:, 1])
    np.testing.assert_allclose(d.log_prob(logits, action), expected, rtol=1e-6)
    np.testing.assert_allclose(
        d.entropy(logits), first.entropy(logits[:, :2]) + second.entropy(logits[:, 2:]), rtol=1e-6
    )
    np.testing.assert_array_equal(d.mode(logits), [[0, 0]])
    assert d.sample(logits, d.draw_noise(np.random.default_rng(0), (1,))).shape == (1, 2)


def test_gaussian_by_hand() -> None:
    d = diagonal_gaussian(2)
    params = jnp.array([[1.0, -1.0, np.log(2.0), np.log(0.5)]])
    action = jnp.array([[2.0, -1.5]])
    density = lambda x, m, s: -0.5 * ((x - m) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi)  # noqa: E731
    assert d.log_prob(params, action)[0] == pytest.approx(density(2, 1, 2) + density(-1.5, -1, 0.5), rel=1e-5)
    assert d.entropy(params)[0] == pytest.approx(np.log(2 * np.pi * np.e) + np.log(2) + np.log(0.5), rel=1e-5)
    noise = d.draw_noise(np.random.default_rng(0), (50_000,))
    sample = d.sample(jnp.broadcast_to(params, (50_000, 4)), noise)
    np.testing.assert_allclose(sample.mean(0), [1, -1], atol=0.03)
    np.testing.assert_allclose(sample.std(0), [2, 0.5], atol=0.03)


def test_for_actions_serves_every_kind() -> None:
    assert for_actions("discrete", (4,), 1).n_params == 4
    assert for_actions("multi_discrete", (2, 3), 2).n_params == 5
    assert for_actions("box", (), 3).n_params == 6
