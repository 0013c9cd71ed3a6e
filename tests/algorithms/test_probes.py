"""Probe environments with known answers: each algorithm must learn the value and the policy that can be worked out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_solver.config.cards import all_cards, card_of, names
from tests.conftest import PROBES, Fitted

pytestmark = pytest.mark.integration

GAMMA = 0.9
SHARED: dict[str, Any] = {
    "n_envs": 8,
    "gamma": GAMMA,
    "eval_freq_epochs": 10_000,
    "checkpoint_freq_epochs": 10_000,
    "eval_episodes": 2,
}
NETWORKS: dict[str, Any] = {"hidden_dims": [32], "normalize_obs": False, "normalize_reward": False}
ON_POLICY = [card.algo_id for card in all_cards() if card.family == "on_policy"]
DISCRETE = [card.algo_id for card in all_cards() if "discrete" in card.actions]
CONTINUOUS = [card.algo_id for card in all_cards() if "box" in card.actions]

Fit = Callable[..., Fitted]
every_algorithm = pytest.mark.parametrize("algorithm", names())
with_discrete_actions = pytest.mark.parametrize("algorithm", DISCRETE)


class AsKind(gymnasium.ObservationWrapper):
    """A probe's -1, 0 or 1 as one of three kinds, which a table can hold."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Discrete(3)

    def observation(self, observation: np.ndarray) -> int:
        return int(observation[0]) + 1


def as_kind(algorithm: str) -> list[str]:
    return [f"{__name__}:AsKind"] if card_of(algorithm).needs_discrete_observations else []


class AnyAction(gymnasium.ActionWrapper):
    """Continuous actions for the probes where the action does not matter."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def action(self, action: np.ndarray) -> int:
        return 0


@pytest.fixture
def learn_on_host(fit: Fit) -> Fit:
    def learn(probe: str, algorithm: str, **extra: Any) -> Fitted:
        card = card_of(algorithm)
        fields = SHARED | (NETWORKS if "network" in card.traits else {}) | {"env_wrappers": as_kind(algorithm)}
        fields |= dict(card.probe) | extra
        wrappers = [*fields["env_wrappers"], *([f"{__name__}:AnyAction"] if needs_box(algorithm, probe) else [])]
        return fit(f"{PROBES}:{probe}:{algorithm}", **(fields | {"env_wrappers": wrappers}))

    return learn


@pytest.fixture
def learn_compiled(fit: Fit) -> Fit:
    """On pure versions of the same environments, for which the wrappers are arguments."""

    def learn(probe: str, algorithm: str, **extra: Any) -> Fitted:
        card = card_of(algorithm)
        fields = SHARED | (NETWORKS if "network" in card.traits else {}) | dict(card.probe) | extra
        kinds = {"as_kind": True} if card.needs_discrete_observations else {}
        box = {"any_action": True} if needs_box(algorithm, probe) else {}
        fields |= {"engine": "compiled", "env_kwargs": fields.get("env_kwargs", {}) | kinds | box}
        return fit(f"gymnasium_solver.envs.compiled.probes:{probe}:{algorithm}", **fields)

    return learn


@pytest.fixture(params=["learn_on_host", "learn_compiled"])
def learn(request: pytest.FixtureRequest) -> Fit:
    on_engine: Fit = request.getfixturevalue(request.param)
    return on_engine


def needs_box(algorithm: str, probe: str) -> bool:
    return "discrete" not in card_of(algorithm).actions and not probe.startswith("Continuous")


@every_algorithm
def test_constant_reward_is_the_value(learn: Fit, algorithm: str) -> None:
    assert learn("ConstantReward", algorithm).value(0)[0] == pytest.approx(1.0, abs=0.05)


@every_algorithm
def test_value_depends_on_the_observation(learn: Fit, algorithm: str) -> None:
    np.testing.assert_allclose(learn("ObservationReward", algorithm).value(-1, 1), [-1, 1], atol=0.1)


@every_algorithm
def test_delayed_reward_is_discounted(learn: Fit, algorithm: str) -> None:
    np.testing.assert_allclose(learn("DelayedReward", algorithm).value(0, 1), [GAMMA, 1], atol=0.1)


@with_discrete_actions
def test_policy_takes_the_rewarded_action(learn: Fit, algorithm: str) -> None:
    fitted = learn("ActionReward", algorithm)
    assert fitted.greedy(0)[0] == 1
    assert fitted.value(0)[0] == pytest.approx(1.0, abs=0.15)


@with_discrete_actions
def test_policy_pairs_action_with_observation(learn: Fit, algorithm: str) -> None:
    np.testing.assert_array_equal(learn("ObservationActionReward", algorithm).greedy(-1, 1), [0, 1])


@pytest.mark.parametrize("algorithm", CONTINUOUS)
def test_continuous_actions_in_the_units_of_the_box(learn: Fit, algorithm: str) -> None:
    extra: dict[str, Any] = {}
    if algorithm in ON_POLICY:
        extra = {"max_env_steps": 40_000, "policy_lr": {"start": 1e-2, "end": 0}, "log_std_init": -1.0}
    np.testing.assert_allclose(learn("ContinuousAction", algorithm, **extra).greedy(0)[0], [0.5], atol=0.1)
    # Bounds are ±2: half of the policy's unit range is the answer ±1.
    actions = learn("ContinuousObservationAction", algorithm, **extra).greedy(-1, 1)[:, 0]
    np.testing.assert_allclose(actions, [-0.5, 0.5], atol=0.1)


@with_discrete_actions
def test_masked_actions_are_never_taken(learn_on_host: Fit, algorithm: str) -> None:
    fitted = learn_on_host("MaskedAction", algorithm)  # the forbidden action raises
    assert fitted.greedy(0, mask=np.array([[True, True, True, False]]))[0] == 2
    assert fitted.value(0)[0] == pytest.approx(2.0, abs=0.3)


class TruncationAsTermination(gymnasium.Wrapper):
    """The classic mistake, for the negative control."""

    def step(self, action: Any) -> tuple:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, False, info


def endless(algorithm: str) -> dict[str, Any]:
    return {"env_kwargs": {"limit": 5}, "max_env_steps": 40_000 if algorithm in ON_POLICY else 16_000}


@every_algorithm
def test_a_truncated_episode_is_worth_its_infinite_future(learn: Fit, algorithm: str) -> None:
    fitted = learn("EndlessReward", algorithm, **endless(algorithm))
    assert fitted.value(0)[0] == pytest.approx(1 / (1 - GAMMA), rel=0.05)


@every_algorithm
def test_truncation_taken_for_termination_fails_that_test(learn_on_host: Fit, algorithm: str) -> None:
    wrappers = [f"{__name__}:TruncationAsTermination", *as_kind(algorithm)]
    wrong = learn_on_host("EndlessReward", algorithm, **endless(algorithm), env_wrappers=wrappers)
    assert wrong.value(0)[0] < 0.8 / (1 - GAMMA)


def test_reinforce_without_baseline_and_with_whole_episode_returns(learn_on_host: Fit) -> None:
    for extra in ({"baseline": "none"}, {"returns": "episode"}, {"baseline": "none", "returns": "episode"}):
        np.testing.assert_array_equal(
            learn_on_host("ObservationActionReward", "reinforce", **extra).greedy(-1, 1), [0, 1]
        )


@pytest.mark.parametrize("exploration", ["epsilon", "ucb"])
def test_the_best_arm_of_a_bandit(learn_on_host: Fit, exploration: str) -> None:
    fields = {"n_envs": 1, "n_steps": 2, "exploration": exploration, "env_wrappers": [], "policy_lr": 0.05}
    table = learn_on_host("Bandit", "q_learning", **fields, max_env_steps=2_000).state.params["table"]
    assert np.argmax(table[0]) == 1
    assert table[0, 1] == pytest.approx(0.8, abs=0.2)


def test_without_exploration_a_bandit_is_stuck_with_its_first_arm(learn_on_host: Fit) -> None:
    fields = {"n_envs": 1, "epsilon": 0.0, "env_wrappers": [], "max_env_steps": 1_000}
    table = learn_on_host("Bandit", "q_learning", **fields).state.params["table"]
    assert np.argmax(table[0]) == 0
