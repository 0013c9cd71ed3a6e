"""Signals of the data have the values worked out by hand on small batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gymnasium_solver.envs.spec import ActionSpec
from gymnasium_solver.ops.returns import Estimates
from gymnasium_solver.train.signals import (
    action_signals,
    data_signals,
    dynamics_signals,
    estimate_signals,
    observation_signals,
)

ARROWS = ActionSpec("discrete", (4,), 1)


def box(low: list[float], high: list[float]) -> ActionSpec:
    return ActionSpec("box", (), len(low), np.array(low, np.float32), np.array(high, np.float32))


def f32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# Observations


def test_observation_statistics_by_hand() -> None:
    signals = observation_signals(f32([[[0, 4]], [[2, -6]]]))
    assert signals["train/data/obs_mean"] == 0
    assert signals["train/data/obs_std"] == pytest.approx(np.sqrt(14))  # (0 + 16 + 4 + 36) / 4
    assert (signals["train/data/obs_min"], signals["train/data/obs_max"]) == (-6, 4)


def dead_dims(obs: np.ndarray) -> float:
    return observation_signals(obs)["train/data/obs_dead_dims"]


def test_dead_dims_are_those_that_never_change() -> None:
    obs = noise(9, 3, 5)
    assert dead_dims(obs) == 0
    obs[..., 1] = 7.0
    obs[..., 4] = 0.0
    assert dead_dims(obs) == 2


def test_a_dim_that_differs_between_environments_or_in_time_is_alive() -> None:
    obs = noise(9, 3, 2)
    obs[..., 0] = [1, 2, 3]
    obs[..., 1] = np.arange(9)[:, None]
    assert dead_dims(obs) == 0


def test_a_dim_that_only_trembles_is_dead() -> None:
    obs = noise(9, 3, 2)
    obs[..., 0] = 1 + 1e-6 * np.arange(9)[:, None]
    assert dead_dims(obs) == 1


def test_pixels_can_be_dead() -> None:
    obs = np.random.default_rng(0).integers(0, 255, (20, 3, 4, 4, 1), dtype=np.uint8)
    obs[:, :, 0] = 255
    assert dead_dims(obs) == 4


def duplicates(obs: np.ndarray) -> float:
    return observation_signals(obs)["train/data/duplicate_envs"]


@pytest.mark.parametrize("shape", [(2, 4, 1), (17, 4, 3), (33, 4, 7, 2)])
def test_duplicate_envs_are_those_with_the_stream_of_another(shape: tuple[int, ...]) -> None:
    obs = noise(*shape)
    assert duplicates(obs) == 0
    obs[:, 3] = obs[:, 0]
    assert duplicates(obs) == 1
    obs[:, 1] = obs[:, 0]
    assert duplicates(obs) == 2


def test_the_same_values_in_another_order_are_another_stream() -> None:
    obs = noise(6, 2, 3)
    obs[:, 1] = obs[::-1, 0]
    assert duplicates(obs) == 0
    obs[:, 1] = obs[:, 0, ::-1]
    assert duplicates(obs) == 0


def test_streams_that_part_at_the_end_are_no_duplicates() -> None:
    obs = noise(6, 2, 3)
    obs[:, 1] = obs[:, 0]
    obs[-1, 1, -1] += 0.01
    assert duplicates(obs) == 0


def test_large_observations_are_judged_by_a_part_of_the_steps() -> None:
    obs = noise(65, 4, 1000)
    obs[:, 3] = obs[:, 0]
    obs[..., 5] = 1.0
    obs[..., 6] = np.arange(65)[:, None]  # alive, though not in any one step
    signals = observation_signals(obs)
    assert (signals["train/data/duplicate_envs"], signals["train/data/obs_dead_dims"]) == (1, 1)
    assert signals["train/data/obs_std"] == pytest.approx(float(obs.std()), rel=0.05)


# Actions


def saturation(actions: Any, action: ActionSpec, rescaled: bool) -> float:
    return action_signals(f32(actions), action, rescaled)["train/data/action_saturation"]


def test_saturation_with_rescaling_is_reaching_one() -> None:
    actions = [[-1.5, 0], [1.0, 0.5], [0.99, -0.99], [3.0, -1.0]]
    assert saturation(actions, box([-2, 0], [2, 10]), True) == 4 / 8


def test_saturation_without_rescaling_is_reaching_the_bounds() -> None:
    actions = [[-1.5, 0], [1.0, 0.5], [2.0, 11.0], [-3.0, -1.0]]
    assert saturation(actions, box([-2, 0], [2, 10]), False) == 5 / 8


@pytest.mark.parametrize("rescaled", [True, False])
def test_an_action_without_bounds_does_not_saturate(rescaled: bool) -> None:
    """Rescaling is for finite bounds; others pass what the policy puts out."""
    assert saturation([[-5.0], [5.0], [0.0]], box([-np.inf], [np.inf]), rescaled) == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_an_action_bounded_on_one_side_saturates_at_that_bound(sign: int) -> None:
    low, high = sorted([-np.inf * sign, 2.0 * sign])
    assert saturation([[1.5 * sign], [2.0 * sign], [-9.0 * sign], [0.0]], box([low], [high]), True) == 1 / 4


def test_continuous_action_statistics() -> None:
    signals = action_signals(f32([[1, 3], [5, 7]]), box([-9, -9], [9, 9]), False)
    assert signals["train/data/action_mean"] == 4
    assert signals["train/data/action_std"] == pytest.approx(np.sqrt(5))


def test_action_shares_count_every_action() -> None:
    assert action_signals(np.array([0, 0, 0, 1, 2, 2, 0, 1], np.int32), ARROWS, True) == {
        "train/data/action_top_share": 4 / 8,
        "train/data/action_share/0": 4 / 8,
        "train/data/action_share/1": 2 / 8,
        "train/data/action_share/2": 2 / 8,
        "train/data/action_share/3": 0,
    }


def test_many_actions_have_only_the_largest_share() -> None:
    signals = action_signals(np.array([3, 3, 20], np.int32), ActionSpec("discrete", (21,), 1), True)
    assert signals == {"train/data/action_top_share": pytest.approx(2 / 3)}


def test_the_largest_share_of_several_components_is_that_of_the_most_settled() -> None:
    actions = np.array([[0, 1], [1, 1], [2, 1], [0, 0]], np.int32)
    signals = action_signals(actions, ActionSpec("multi_discrete", (3, 2), 2), True)
    assert signals == {"train/data/action_top_share": 3 / 4}


# Rewards and endings


def batch(**arrays: Any) -> dict[str, np.ndarray]:
    """Two environments over three steps; the second environment resets in the last step."""
    filled: dict[str, np.ndarray] = {
        "obs": noise(4, 2, 3),
        "action": np.zeros((3, 2), np.int32),
        "reward": f32([[0, 1], [0, 3], [1, 99]]),
        "terminated": np.zeros((3, 2), bool),
        "truncated": np.array([[False, False], [False, True], [False, False]]),
        "valid": np.array([[True, True], [True, True], [True, False]]),
    }
    return filled | arrays


def test_rewards_are_those_of_valid_steps() -> None:
    signals = data_signals(batch(), ARROWS, True)
    assert signals["train/data/reward_mean"] == 1
    assert signals["train/data/reward_std"] == pytest.approx(np.sqrt(1.2))  # (1 + 1 + 0 + 0 + 4) / 5
    assert (signals["train/data/reward_min"], signals["train/data/reward_max"]) == (0, 3)
    assert signals["train/data/reward_zero_share"] == 2 / 5


def test_shares_of_valid_steps_and_of_endings_that_are_cuts() -> None:
    signals = data_signals(batch(), ARROWS, True)
    assert signals["train/data/valid_share"] == pytest.approx(5 / 6)
    assert signals["train/data/truncated_share"] == 1, "the one episode that ended was cut"


def test_actions_of_reset_steps_do_not_count() -> None:
    signals = data_signals(batch(action=np.array([[0, 0], [0, 0], [0, 3]], np.int32)), ARROWS, True)
    assert signals["train/data/action_share/0"] == 1


def test_a_batch_of_nothing_but_resets_has_no_rewards_to_judge() -> None:
    signals = data_signals(batch(valid=np.zeros((3, 2), bool)), ARROWS, True)
    assert signals["train/data/valid_share"] == 0
    assert not [name for name in signals if "reward" in name or "action" in name]


# What the critic knows


def explained(value: Any, target: Any, valid: Any = True) -> float:
    value, target = f32(value), f32(target)
    mask = np.broadcast_to(np.asarray(valid), target.shape)
    return estimate_signals(Estimates(target - value, value, target), mask)["train/metrics/explained_variance"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([[1, 2], [3, 4]], 1.0),  # predicts them
        ([[6, 7], [8, 9]], 1.0),  # off by a constant, which has no variance
        ([[5, 5], [5, 5]], 0.0),  # knows the mean at best
        ([[4, 3], [2, 1]], -3.0),  # errors −3 −1 1 3: variance 5 against 1.25
        ([[1, 2], [3, 2]], 0.4),  # errors 0 0 0 2: variance 0.75 against 1.25
    ],
)
def test_explained_variance_by_hand(value: Any, expected: float) -> None:
    assert explained(value, [[1, 2], [3, 4]]) == pytest.approx(expected, abs=1e-6)


def test_explained_variance_leaves_out_reset_steps() -> None:
    value, target = [[1, 2], [3, -50]], [[1, 2], [3, 4]]
    assert explained(value, target) < 0
    assert explained(value, target, [[True, True], [True, False]]) == pytest.approx(1)


def test_statistics_of_estimates_by_hand() -> None:
    valid = np.array([[True, True, False]])
    signals = estimate_signals(Estimates(f32([[1, 3, 99]]), f32([[2, 6, 99]]), f32([[3, 9, 99]])), valid)
    del signals["train/metrics/explained_variance"]
    assert signals == {
        "train/data/advantage_mean": 2,
        "train/data/advantage_std": 1,
        "train/data/value_mean": 4,
        "train/data/value_std": 2,
        "train/data/return_mean": 6,
        "train/data/return_std": 3,
    }


def test_no_valid_step_gives_no_estimates() -> None:
    empty = np.zeros((2, 2), np.float32)
    assert estimate_signals(Estimates(empty, empty, empty), np.zeros((2, 2), bool)) == {}


# Dynamics


def dynamics(obs: np.ndarray, actions: np.ndarray, action: ActionSpec = ARROWS) -> dict[str, float]:
    return dynamics_signals(obs, actions, np.ones(actions.shape[:2], bool), action)


def test_an_action_that_makes_the_whole_change_explains_all_of_it() -> None:
    actions = np.random.default_rng(0).integers(0, 4, (200, 2)).astype(np.int32)
    obs = np.zeros((201, 2, 3), np.float32)
    obs[1:, :, 1] = np.cumsum(actions, axis=0)
    assert dynamics(obs, actions)["train/data/action_effect"] == pytest.approx(1, abs=0.01)


def test_an_action_that_is_ignored_explains_nothing() -> None:
    actions = np.random.default_rng(0).integers(0, 4, (2000, 2)).astype(np.int32)
    assert dynamics(np.cumsum(noise(2001, 2, 3), axis=0), actions)["train/data/action_effect"] < 0.003


def test_half_of_a_change_is_half_explained_by_a_box_action() -> None:
    actions = noise(4000, 1, 1)
    other = np.random.default_rng(1).normal(size=(4000, 1, 1)).astype(np.float32)
    obs = np.concatenate([np.zeros((1, 1, 1), np.float32), np.cumsum(actions + other, axis=0)])
    assert dynamics(obs, actions, box([-1], [1]))["train/data/action_effect"] == pytest.approx(0.5, abs=0.05)


def test_noise_is_told_from_motion() -> None:
    time = np.linspace(0, 20, 2001, dtype=np.float32)[:, None, None]
    actions = np.zeros((2000, 1), np.int32)
    motion = np.sin(time)
    assert dynamics(motion, actions)["train/data/obs_noise_share"] < 0.01
    noisy = motion + np.sqrt(0.5) * noise(2001, 1, 1)  # as much noise as motion
    assert dynamics(noisy, actions)["train/data/obs_noise_share"] == pytest.approx(0.5, abs=0.05)


def test_dynamics_of_images_and_of_few_steps_are_not_judged() -> None:
    assert dynamics(noise(60, 1, 30, 30), np.zeros((59, 1), np.int32)) == {}
    assert dynamics(noise(10, 1, 3), np.zeros((9, 1), np.int32)) == {}
