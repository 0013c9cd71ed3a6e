"""Heads of action values and policies, layer normalisation, and noise that follows the state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.networks.critics import continuous_critic, discrete_critic, dueling_value
from gymnasium_solver.networks.layers import layer_norm
from gymnasium_solver.networks.policy import make_policy
from gymnasium_solver.networks.state_dependent import correlated_noise, draw_functions, log_std_of, sde_init
from gymnasium_solver.networks.trunk import Trunk, make_trunk


def trunk_of(*, n_inputs: int = 5, hidden: tuple[int, ...] = (8, 6), dtype: Any = jnp.float32, **more: Any) -> Trunk:
    fields: dict[str, Any] = {"obs_shape": (n_inputs,), "is_image": False, "activation": "relu", "orthogonal": False}
    return make_trunk(**{**fields, "hidden_dims": hidden, "dtype": dtype, **more})


def observations(count: int = 7, n_inputs: int = 5) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, n_inputs)).astype(np.float32)


def relu_features(layers: list[dict[str, np.ndarray]], x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    for layer in layers:
        x = np.maximum(x @ layer["weight"] + layer["bias"], 0)
    return x


def test_dueling_by_hand() -> None:
    value, advantage = jnp.array([[2.0], [0.0]]), jnp.array([[1.0, 2.0, 6.0], [-3.0, 0.0, 3.0]])
    np.testing.assert_allclose(dueling_value(value, advantage), [[0.0, 1.0, 5.0], [-3.0, 0.0, 3.0]])


def test_a_constant_in_all_advantages_changes_nothing() -> None:
    critic = discrete_critic(trunk_of(), 4, dueling=True)
    params, obs = critic.init(np.random.default_rng(0)), observations()
    before = critic.value(params, obs, None)
    params["critic_head"]["advantage"]["bias"] += 3.0
    np.testing.assert_allclose(critic.value(params, obs, None), before, atol=1e-5)
    params["critic_head"]["value"]["bias"] += 3.0
    np.testing.assert_allclose(critic.value(params, obs, None), before + 3.0, atol=1e-5)


def test_dueling_streams_by_hand() -> None:
    critic = discrete_critic(trunk_of(), 4, dueling=True)
    params, obs = critic.init(np.random.default_rng(0)), observations()
    features, head = relu_features(params["trunk"]["dense"], obs), params["critic_head"]
    value = features @ head["value"]["weight"] + head["value"]["bias"]
    advantage = features @ head["advantage"]["weight"] + head["advantage"]["bias"]
    expected = value + advantage - advantage.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(critic.value(params, obs, None), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(critic.value(params, obs, None).mean(axis=1), value[:, 0], rtol=1e-4, atol=1e-6)


def test_values_of_discrete_actions_by_hand() -> None:
    critic = discrete_critic(trunk_of(), 3)
    params, obs = critic.init(np.random.default_rng(0)), observations()
    features, head = relu_features(params["trunk"]["dense"], obs), params["critic_head"]
    np.testing.assert_allclose(
        critic.value(params, obs, None), features @ head["weight"] + head["bias"], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(critic.activations(params, obs, None)[-1], features, rtol=1e-4, atol=1e-6)


def test_the_action_joins_the_observation() -> None:
    critic = continuous_critic(trunk_of(n_extra=2))
    params, obs = critic.init(np.random.default_rng(0)), observations()
    action = np.random.default_rng(2).uniform(-1, 1, (7, 2)).astype(np.float32)
    features, head = relu_features(params["trunk"]["dense"], np.hstack([obs, action])), params["critic_head"]
    q = critic.value(params, obs, jnp.asarray(action))
    assert q.shape == (7,)
    np.testing.assert_allclose(q, (features @ head["weight"] + head["bias"])[:, 0], rtol=1e-4, atol=1e-6)


def test_the_action_joins_what_the_cnn_makes_of_an_image() -> None:
    trunk = trunk_of(obs_shape=(24, 24, 1), is_image=True, n_extra=2)
    critic = continuous_critic(trunk)
    params = critic.init(np.random.default_rng(0))
    obs = np.random.default_rng(1).integers(0, 255, (3, 24, 24, 1), np.uint8)
    quiet, loud = (critic.value(params, obs, jnp.full((3, 2), a)) for a in (0.0, 1.0))
    assert (np.abs(loud - quiet) > 1e-6).all()
    blind = jax.tree.map(np.copy, params)
    blind["trunk"]["dense"][0]["weight"][-2:] = 0.0  # the action comes last
    np.testing.assert_array_equal(
        critic.value(blind, obs, jnp.ones((3, 2))), critic.value(blind, obs, jnp.zeros((3, 2)))
    )


def test_layer_norm_by_hand() -> None:
    layer = {"scale": np.array([1.0, 2.0, 1.0], np.float32), "bias": np.array([0.0, 0.0, 5.0], np.float32)}
    spread = np.sqrt(2 / 3)  # of 1, 2, 3 around 2
    np.testing.assert_allclose(
        layer_norm(layer, jnp.array([[1.0, 2.0, 3.0]])), [[-1 / spread, 0.0, 5 + 1 / spread]], rtol=1e-5
    )


def test_layer_norm_forgets_shift_and_scale() -> None:
    layer = {"scale": np.ones(6, np.float32), "bias": np.zeros(6, np.float32)}
    x = observations(4, 6)
    out = np.asarray(layer_norm(layer, x))
    np.testing.assert_allclose(out.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(out.std(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(layer_norm(layer, 50 * x + 7), out, atol=1e-3)
    assert np.isfinite(layer_norm(layer, jnp.ones((1, 6)))).all()


def test_every_hidden_layer_is_normalised_before_its_activation() -> None:
    trunk = trunk_of(normalize=True)
    params = trunk.init(np.random.default_rng(0))
    for norm, scale, bias in zip(params["norm"], (2.0, 0.5), (-0.5, 0.25), strict=True):
        norm["scale"][:], norm["bias"][:] = scale, bias
    x = observations().astype(np.float64)
    hidden = trunk.hidden(params, observations(), None)
    assert [h.shape for h in hidden] == [(7, 8), (7, 6)]
    for layer, norm, made in zip(params["dense"], params["norm"], hidden, strict=True):
        x = x @ layer["weight"] + layer["bias"]
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-6)
        x = np.maximum(x * norm["scale"] + norm["bias"], 0)
        np.testing.assert_allclose(made, x, rtol=1e-4, atol=1e-5)


def test_half_precision_stays_close_and_comes_back_as_float32() -> None:
    critics = [discrete_critic(trunk_of(dtype=dtype), 3, dueling=True) for dtype in (jnp.float32, jnp.bfloat16)]
    params, obs = critics[0].init(np.random.default_rng(0)), observations()
    exact, coarse = (critic.value(params, obs, None) for critic in critics)
    assert coarse.dtype == jnp.float32
    np.testing.assert_allclose(coarse, exact, atol=0.02)
    assert (coarse != exact).any()


def test_the_initial_deviation_is_the_second_half_of_the_output() -> None:
    policy = make_policy(trunk_of(), 4, log_std_init=-2.0)
    params = policy.init(np.random.default_rng(0))
    assert params["actor_head"]["bias"].tolist() == [0, 0, -2, -2]
    out = policy.output(params, observations())
    assert out.shape == (7, 4)


def sde_head(width: int = 6, dim: int = 2) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """With deviations that differ, and features that do."""
    rng = np.random.default_rng(0)
    head = sde_init(width, dim, -1.0)
    head["log_std"] = head["log_std"] + rng.standard_normal((width, dim)).astype(np.float32)
    return head, rng.uniform(0, 3, (4, width)).astype(np.float32)


def test_state_dependent_deviation_by_hand() -> None:
    head, features = sde_head()
    variance = features.astype(np.float64) ** 2 @ np.exp(2 * head["log_std"].astype(np.float64))
    np.testing.assert_allclose(log_std_of(head, features), 0.5 * np.log(variance), rtol=1e-5, atol=1e-6)
    # Features of size one give the deviation that was asked for, however many there are.
    np.testing.assert_allclose(log_std_of(sde_init(64, 2, -1.0), np.ones((1, 64))), -1.0, atol=1e-4)


def test_noise_of_many_functions_has_the_deviation_of_the_log_probability() -> None:
    head, features = sde_head()
    functions = draw_functions(np.random.default_rng(1), (20_000,), 6, 2, 1)
    for row, log_std in zip(features, np.asarray(log_std_of(head, features)), strict=True):
        normal = np.asarray(correlated_noise(head, np.broadcast_to(row, (20_000, 6)), functions))
        noise = np.exp(log_std) * normal
        # What a function of the features comes to, worked out here; the sample's variance is within five errors.
        by_hand = np.einsum("w,bwd->bd", row.astype(np.float64), np.exp(head["log_std"]) * functions)
        np.testing.assert_allclose(noise, by_hand, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(noise.var(axis=0), np.exp(2 * log_std), rtol=5 * np.sqrt(2 / 20_000))
        np.testing.assert_allclose(normal.mean(axis=0), 0, atol=5 / np.sqrt(20_000))


def test_features_are_not_trained_through_the_deviation() -> None:
    head, features = sde_head()
    to_features = jax.grad(lambda x: jnp.sum(log_std_of(head, x)))(jnp.asarray(features))
    assert (to_features == 0).all()
    to_head = jax.grad(lambda h: jnp.sum(log_std_of(h, features)))(jax.tree.map(jnp.asarray, head))
    assert (to_head["log_std"] > 0).all()


@pytest.mark.parametrize(("steps", "sample_freq"), [(10, 4), (8, 4), (3, 8), (5, 1)])
def test_a_function_is_kept_for_some_steps(steps: int, sample_freq: int) -> None:
    functions = draw_functions(np.random.default_rng(0), (steps, 3), 6, 2, sample_freq)
    assert functions.shape == (steps, 3, 6, 2)
    for t in range(steps):
        first = t - t % sample_freq
        assert (functions[t] == functions[first]).all()
        if first:
            assert (functions[first] != functions[first - 1]).all()
    assert (functions[:, 0] != functions[:, 1]).all(), "environments have their own"
    assert draw_functions(np.random.default_rng(0), (3,), 6, 2, sample_freq).shape == (3, 6, 2)


def test_a_policy_with_state_dependent_noise_gives_both() -> None:
    policy = make_policy(trunk_of(), 4, sde_dim=2, log_std_init=-0.5)
    params, obs = policy.init(np.random.default_rng(0)), observations()
    head, features = params["actor_head"], policy.activations(params, obs)[-1]
    functions = draw_functions(np.random.default_rng(1), (7,), 6, 2, 8)
    output, normal = policy.output_and_noise(params, obs, functions)
    np.testing.assert_array_equal(output, policy.output(params, obs))
    assert output.shape == (7, 4)
    np.testing.assert_array_equal(output[:, 2:], log_std_of(head, features))
    np.testing.assert_array_equal(normal, correlated_noise(head, features, functions))
    # The same function in the same state is the same noise; in another state it is another.
    again = policy.output_and_noise(params, np.repeat(obs[:1], 7, axis=0), np.repeat(functions[:1], 7, axis=0))[1]
    assert (again == again[0]).all()
    moved = policy.output_and_noise(params, obs, np.repeat(functions[:1], 7, axis=0))[1]
    assert len(np.unique(np.asarray(moved), axis=0)) == 7
