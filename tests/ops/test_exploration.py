import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.ops.exploration import (
    draw_action_noise,
    draw_bound_noise,
    draw_epsilon_noise,
    epsilon_greedy,
    optimistic,
    perturbed,
    upper_bounds,
)

VALUES = jnp.array([0.0, 3.0, 1.0, 2.0])  # action 1 is the best
N = 40_000


def shares(epsilon: float, mask: np.ndarray | None = None) -> np.ndarray:
    """How often each of four actions is taken."""
    noise = draw_epsilon_noise(np.random.default_rng(0), (N,), 4, epsilon)
    allowed = None if mask is None else jnp.broadcast_to(mask, (N, 4))
    values = jnp.broadcast_to(VALUES, (N, 4))
    if allowed is not None:
        values = jnp.where(allowed, values, -1e9)
    return np.bincount(epsilon_greedy(values, noise, allowed), minlength=4) / N


def near(expected: list[float]) -> np.ndarray:
    """Five standard errors of a share."""
    p = np.array(expected)
    return 5 * np.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_epsilon_is_the_share_of_random_actions(epsilon: float) -> None:
    each = epsilon / 4
    expected = [each, 1 - 3 * each, each, each]
    assert (np.abs(shares(epsilon) - expected) <= near(expected)).all()


def test_epsilon_of_zero_is_greedy_and_of_one_is_random() -> None:
    assert shares(0.0).tolist() == [0, 1, 0, 0]
    assert (np.abs(shares(1.0) - 0.25) <= near([0.25] * 4)).all()
    noise = draw_epsilon_noise(np.random.default_rng(0), (3, 5), 4, 1.0)
    assert noise.shape == (3, 5, 5)
    assert noise.dtype == np.float32
    assert (noise[..., 0] == 1).all(), "every one of them"


def test_forbidden_actions_are_taken_neither_by_choice_nor_by_chance() -> None:
    expected = [0.25, 0.0, 0.0, 0.75]  # half by chance, of two; the best allowed is 3
    assert (np.abs(shares(0.5, np.array([True, False, False, True])) - expected) <= near(expected)).all()
    assert shares(1.0, np.array([False, False, True, False])).tolist() == [0, 0, 1, 0]


def test_upper_bounds_by_hand() -> None:
    values, visits = jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 3.0]])
    log_total = np.log(4.0)
    expected = [[1 + 0.5 * np.sqrt(log_total / 1), 2 + 0.5 * np.sqrt(log_total / 3)]]
    np.testing.assert_allclose(upper_bounds(values, visits, 0.5), expected, rtol=1e-6)
    np.testing.assert_array_equal(upper_bounds(values, visits, 0.0), values)
    # One visit in all: log 1 is nothing, and the other action was never tried.
    np.testing.assert_array_equal(upper_bounds(values, jnp.array([[1.0, 0.0]]), 2.0), [[1.0, np.inf]])


def test_the_coefficient_may_differ_by_environment() -> None:
    values, visits = jnp.zeros((2, 2)), jnp.full((2, 2), 2.0)
    bound = np.sqrt(np.log(4.0) / 2)
    np.testing.assert_allclose(
        upper_bounds(values, visits, jnp.array([[1.0], [3.0]])), [[bound] * 2, [3 * bound] * 2], rtol=1e-6
    )


def test_each_action_is_tried_once_before_any_is_tried_twice() -> None:
    values, visits = jnp.array([[9.0, 0.0, -9.0]]), jnp.zeros((1, 3))
    for _ in range(3):
        visits = visits.at[0, jnp.argmax(upper_bounds(values, visits, 1.0))].add(1)
    assert visits.tolist() == [[1, 1, 1]]


def test_what_is_tried_less_gains_with_time() -> None:
    values = jnp.array([[0.5, 0.0]])
    assert jnp.argmax(upper_bounds(values, jnp.array([[2.0, 1.0]]), 1.0)) == 0
    assert jnp.argmax(upper_bounds(values, jnp.array([[200.0, 1.0]]), 1.0)) == 1


def optimistic_shares(
    values: list[float], visits: list[float], weight: float, mask: list[bool] | None = None
) -> np.ndarray:
    noise = draw_bound_noise(np.random.default_rng(0), (N,), len(values), weight)
    table = [jnp.broadcast_to(jnp.array(row), (N, len(values))) for row in (values, visits)]
    allowed = None if mask is None else jnp.broadcast_to(jnp.array(mask), (N, len(values)))
    return np.bincount(optimistic(*table, noise, allowed), minlength=len(values)) / N


def test_of_what_was_never_tried_any_is_taken() -> None:
    expected = [1 / 3, 1 / 3, 1 / 3, 0]
    assert (np.abs(optimistic_shares([9, 0, -9, 5], [0, 0, 0, 7], 1.0) - expected) <= near(expected)).all()
    assert optimistic_shares([9, 0, -9, 5], [0, 0, 0, 7], 0.0)[3] == 0, "whatever the weight"
    shares = optimistic_shares([9, 0, -9, 5], [0, 0, 0, 7], 1.0, [False, True, True, True])
    assert (np.abs(shares - [0, 0.5, 0.5, 0]) <= near([0.5] * 4)).all()
    assert optimistic_shares([9, 0, -9, 5], [0, 0, 0, 7], 1.0, [False, False, False, True]).tolist() == [0, 0, 0, 1]


def test_equal_bounds_are_taken_equally_often() -> None:
    assert (np.abs(optimistic_shares([1, 1, 1], [5, 5, 5], 1.0) - 1 / 3) <= near([1 / 3] * 3)).all()


def test_the_bound_is_widened_by_a_factor_of_mean_one() -> None:
    """Uniform in [0, 2]: the second action, 0.6 behind with a bound of 1, leads with chance (2 − 0.6) / 2 where the
    first has none."""
    visits = [1e9, float(np.log(1e9))]
    shares = optimistic_shares([0.6, 0.0], visits, 1.0)
    assert (np.abs(shares - [0.3, 0.7]) <= near([0.3, 0.7])).all()
    assert optimistic_shares([0.6, 0.0], visits, 0.0).tolist() == [1, 0], "no weight, no bound"
    assert optimistic_shares([0.6, 0.0], visits, 1.0, [False, True]).tolist() == [0, 1]


def drawn(shape: tuple[int, ...], kind: str, *, theta: float = 0.15, random: bool = False) -> np.ndarray:
    return draw_action_noise(np.random.default_rng(0), shape, 2, kind=kind, std=0.3, theta=theta, random=random)


def autocorrelation(x: np.ndarray, lag: int) -> float:
    """Of series along the first axis around a mean of zero."""
    return float((x[lag:] * x[:-lag]).mean() / (x * x).mean())


def test_gaussian_noise_has_its_deviation_and_no_memory() -> None:
    noise = drawn((10_000, 4), "gaussian")
    assert noise.shape == (10_000, 4, 3)
    assert (noise[..., 0] == 0).all()
    normal = noise[..., 1:]
    assert normal.std() == pytest.approx(0.3, rel=0.02)
    assert abs(normal.mean()) < 0.005
    assert abs(autocorrelation(normal, 1)) < 0.02
    assert abs(np.corrcoef(normal[..., 0].ravel(), normal[..., 1].ravel())[0, 1]) < 0.03


@pytest.mark.parametrize("theta", [0.15, 0.5])
def test_ou_noise_remembers(theta: float) -> None:
    """x ← (1 − θ) x + σ ε: correlations (1 − θ)^lag, variance σ² / (1 − (1 − θ)²)."""
    noise = drawn((20_000, 4), "ou", theta=theta)[..., 1:]
    assert noise.std() == pytest.approx(0.3 / np.sqrt(1 - (1 - theta) ** 2), rel=0.03)
    for lag in (1, 2, 5):
        assert autocorrelation(noise, lag) == pytest.approx((1 - theta) ** lag, abs=0.03)
    assert abs(np.corrcoef(noise[:, 0, 0], noise[:, 1, 0])[0, 1]) < 0.1, "environments are apart"


def test_ou_noise_by_hand() -> None:
    fresh, correlated = drawn((3, 1), "gaussian"), drawn((3, 1), "ou", theta=0.25)
    a, b, c = fresh[:, 0, 1:]
    np.testing.assert_allclose(correlated[:, 0, 1:], [a, b + 0.75 * a, c + 0.75 * (b + 0.75 * a)], rtol=1e-5)


def test_random_actions_are_uniform_whatever_the_policy_says() -> None:
    noise = drawn((5000, 4), "gaussian", random=True)
    assert (noise[..., 0] == 1).all()
    uniform = noise[..., 1:]
    assert np.abs(uniform).max() <= 1
    assert uniform.mean() == pytest.approx(0, abs=0.02)
    assert uniform.var() == pytest.approx(1 / 3, rel=0.03)
    np.testing.assert_array_equal(perturbed(jnp.full((4, 2), 0.9), noise[0]), noise[0, :, 1:])


def test_noise_is_added_and_held_within_the_bounds() -> None:
    noise = jnp.array([[0.0, 0.25, 0.5], [0.0, -1.0, 0.0], [1.0, -0.5, 0.5]])
    action = jnp.array([[0.5, 0.75], [-0.5, 0.5], [0.9, 0.9]])
    np.testing.assert_array_equal(perturbed(action, noise), [[0.75, 1.0], [-1.0, 0.5], [-0.5, 0.5]])
