"""Probe environments with known answers: each algorithm must learn the value and the policy that can be worked out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_solver.algorithms import ALGORITHMS
from tests.conftest import PROBES, Fitted

GAMMA = 0.9
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 16, "batch_size": 0.5, "n_epochs": 4, "policy_lr": 1e-2, "max_env_steps": 12_000},
    "a2c": {"n_steps": 16, "policy_lr": 1e-2, "optimizer": "adam", "max_env_steps": 16_000},
    "reinforce": {"n_steps": 16, "policy_lr": 1e-2, "max_env_steps": 16_000},
}
SHARED: dict[str, Any] = {
    "n_envs": 8,
    "hidden_dims": [32],
    "gamma": GAMMA,
    "ent_coef": 0.0,
    "normalize_obs": False,
    "normalize_reward": False,
    "eval_freq_epochs": 10_000,
    "checkpoint_freq_epochs": 10_000,
    "eval_episodes": 2,
}

Fit = Callable[..., Fitted]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture
def learn(fit: Fit) -> Fit:
    return lambda probe, algorithm, **extra: fit(
        f"{PROBES}:{probe}:{algorithm}", **(SHARED | SETTINGS[algorithm] | extra)
    )


@every_algorithm
def test_constant_reward_is_the_value(learn: Fit, algorithm: str) -> None:
    assert learn("ConstantReward", algorithm).value(0)[0] == pytest.approx(1.0, abs=0.05)


@every_algorithm
def test_value_depends_on_the_observation(learn: Fit, algorithm: str) -> None:
    np.testing.assert_allclose(learn("ObservationReward", algorithm).value(-1, 1), [-1, 1], atol=0.1)


@every_algorithm
def test_delayed_reward_is_discounted(learn: Fit, algorithm: str) -> None:
    np.testing.assert_allclose(learn("DelayedReward", algorithm).value(0, 1), [GAMMA, 1], atol=0.1)


@every_algorithm
def test_policy_takes_the_rewarded_action(learn: Fit, algorithm: str) -> None:
    fitted = learn("ActionReward", algorithm)
    assert fitted.greedy(0)[0] == 1
    assert fitted.value(0)[0] == pytest.approx(1.0, abs=0.15)


@every_algorithm
def test_policy_pairs_action_with_observation(learn: Fit, algorithm: str) -> None:
    np.testing.assert_array_equal(learn("ObservationActionReward", algorithm).greedy(-1, 1), [0, 1])


@every_algorithm
def test_continuous_actions_in_the_units_of_the_box(learn: Fit, algorithm: str) -> None:
    extra = {"max_env_steps": 40_000, "policy_lr": {"start": 1e-2, "end": 0}, "log_std_init": -1.0}
    np.testing.assert_allclose(learn("ContinuousAction", algorithm, **extra).greedy(0)[0], [0.5], atol=0.1)
    # Bounds are ±2: half of the policy's unit range is the answer ±1.
    actions = learn("ContinuousObservationAction", algorithm, **extra).greedy(-1, 1)[:, 0]
    np.testing.assert_allclose(actions, [-0.5, 0.5], atol=0.1)


@every_algorithm
def test_masked_actions_are_never_taken(learn: Fit, algorithm: str) -> None:
    fitted = learn("MaskedAction", algorithm)  # the forbidden action raises
    assert fitted.greedy(0, mask=np.array([[True, True, True, False]]))[0] == 2
    assert fitted.value(0)[0] == pytest.approx(2.0, abs=0.3)


class TruncationAsTermination(gymnasium.Wrapper):
    """The classic mistake, for the negative control."""

    def step(self, action: Any) -> tuple:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, False, info


ENDLESS = {"env_kwargs": {"limit": 5}, "max_env_steps": 40_000}


@every_algorithm
def test_a_truncated_episode_is_worth_its_infinite_future(learn: Fit, algorithm: str) -> None:
    assert learn("EndlessReward", algorithm, **ENDLESS).value(0)[0] == pytest.approx(1 / (1 - GAMMA), rel=0.05)


@every_algorithm
def test_truncation_taken_for_termination_fails_that_test(learn: Fit, algorithm: str) -> None:
    wrong = learn("EndlessReward", algorithm, **ENDLESS, env_wrappers=[f"{__name__}:TruncationAsTermination"])
    assert wrong.value(0)[0] < 0.5 / (1 - GAMMA)


def test_reinforce_without_baseline_and_with_whole_episode_returns(learn: Fit) -> None:
    for extra in ({"baseline": "none"}, {"returns": "episode"}, {"baseline": "none", "returns": "episode"}):
        np.testing.assert_array_equal(learn("ObservationActionReward", "reinforce", **extra).greedy(-1, 1), [0, 1])
