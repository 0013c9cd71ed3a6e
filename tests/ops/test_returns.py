import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from gymnasium_solver.ops.returns import completed, episode_returns, gae, rewards_to_go


def column(*values: float) -> jnp.ndarray:
    return jnp.array(values, jnp.float32)[:, None]


def random_rollout(seed: int = 0, steps: int = 12, envs: int = 3) -> dict[str, jnp.ndarray]:
    rng = np.random.default_rng(seed)
    terminated = rng.random((steps, envs)) < 0.15
    truncated = (rng.random((steps, envs)) < 0.15) & ~terminated
    draw = lambda: jnp.asarray(rng.standard_normal((steps, envs)), jnp.float32)  # noqa: E731
    return {
        "r_t": draw(),
        "v_t": draw(),
        "v_tp1": draw(),
        "terminated_t": jnp.asarray(terminated, jnp.float32),
        "done_t": jnp.asarray(terminated | truncated, jnp.float32),
    }


@pytest.mark.parametrize("compiled", [False, True])
def test_gae_by_hand(compiled: bool) -> None:
    function = jax.jit(gae) if compiled else gae
    # γ = 0.5, λ = 0.5. Row 1 terminates: no bootstrap, the chain is cut.
    advantage = function(column(1, 1, 1), column(2, 4, 6), column(4, 0, 8), column(0, 1, 0), column(0, 1, 0), 0.5, 0.5)
    delta = [1 + 0.5 * 4 - 2, 1 - 4, 1 + 0.5 * 8 - 6]
    np.testing.assert_allclose(advantage[:, 0], [delta[0] + 0.25 * delta[1], delta[1], delta[2]], rtol=1e-6)


def test_a_truncated_step_bootstraps_and_a_terminated_one_does_not() -> None:
    step = {"r_t": column(1), "v_t": column(0), "v_tp1": column(10), "done_t": column(1), "gamma": 0.9, "lambda_": 0.95}
    assert gae(terminated_t=column(0), **step)[0, 0] == pytest.approx(10.0)
    assert gae(terminated_t=column(1), **step)[0, 0] == pytest.approx(1.0)


def test_gae_agrees_with_rlax() -> None:
    rng = np.random.default_rng(1)
    reward, value = rng.standard_normal(10).astype(np.float32), rng.standard_normal(11).astype(np.float32)
    terminated = (rng.random(10) < 0.2).astype(np.float32)
    ours = gae(*(jnp.asarray(x)[:, None] for x in (reward, value[:-1], value[1:], terminated, terminated)), 0.97, 0.9)
    oracle = rlax.truncated_generalized_advantage_estimation(reward, 0.97 * (1 - terminated), 0.9, value)
    np.testing.assert_allclose(ours[:, 0], oracle, rtol=1e-5, atol=1e-6)


def test_lambda_one_is_monte_carlo_and_lambda_zero_is_one_step() -> None:
    rollout = random_rollout()
    v_tp1 = jnp.concatenate([rollout["v_t"][1:], rollout["v_tp1"][-1:]])  # as in a rollout: successors are rows
    one = gae(**{**rollout, "v_tp1": v_tp1}, gamma=0.9, lambda_=1.0)
    bootstrap = v_tp1 * (1 - rollout["terminated_t"])
    expected = rewards_to_go(rollout["r_t"], bootstrap, rollout["done_t"], 0.9) - rollout["v_t"]
    np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-5)
    zero = gae(**rollout, gamma=0.9, lambda_=0.0)
    delta = rollout["r_t"] + 0.9 * rollout["v_tp1"] * (1 - rollout["terminated_t"]) - rollout["v_t"]
    np.testing.assert_allclose(zero, delta, rtol=1e-6)


def test_rewards_to_go_by_hand() -> None:
    returns = rewards_to_go(column(1, 2, 4, 8), column(0, 0, 0, 16), column(0, 1, 0, 0), 0.5)
    np.testing.assert_allclose(returns[:, 0], [1 + 0.5 * 2, 2, 4 + 0.5 * (8 + 0.5 * 16), 8 + 0.5 * 16])


def test_episode_returns_repeat_the_start_of_each_episode() -> None:
    to_go = column(5, 3, 99, 7, 2)  # row 1 ends an episode, row 2 is the reset step
    whole = episode_returns(to_go, column(1, 1, 0, 1, 1))
    np.testing.assert_allclose(whole[:, 0][jnp.array([0, 1, 3, 4])], [5, 5, 7, 7])


def test_completed_leaves_out_the_unfinished_tail() -> None:
    np.testing.assert_array_equal(completed(column(0, 1, 0, 1, 0))[:, 0], [1, 1, 1, 1, 0])
