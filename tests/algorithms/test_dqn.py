"""DQN's update against NumPy: targets with and without double, copies of the target network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.algorithms.single_updates import (
    BATCH,
    N_ACTIONS,
    RATE,
    Case,
    apply,
    changed,
    chosen,
    first,
    make_case,
    require_equal,
    require_report,
)


def dqn_values(params: Any, obs: np.ndarray) -> np.ndarray:
    return apply(params, "critic_head", obs)


def dqn_target(case: Case, row: dict[str, np.ndarray], target: Any) -> np.ndarray:
    allowed = row.get("next_action_mask", np.ones((BATCH, N_ACTIONS), bool))
    worth = np.where(allowed, dqn_values(target, row["next_obs"]), -np.inf)
    if case.config.double:
        preferred = np.where(allowed, dqn_values(case.state.params, row["next_obs"]), -np.inf)
        return row["reward"] + row["discount"] * chosen(worth, preferred.argmax(axis=1))
    return row["reward"] + row["discount"] * worth.max(axis=1)


DQN_CASES = [  # double, target_update_interval, mask
    (True, None, False),
    (False, 100, False),
    (True, 100, True),
    (False, None, True),
]


@pytest.mark.parametrize(("double", "interval", "mask"), DQN_CASES)
def test_dqn(double: bool, interval: int | None, mask: bool) -> None:
    case = make_case("dqn", "discrete", mask=mask, double=double, target_update_interval=interval)
    row = first(case.batch)
    target = dqn_target(case, row, case.state.target)
    errors = chosen(dqn_values(case.state.params, row["obs"]), row["action"]) - target
    after, metrics, error = case.update()
    require_report(metrics, error, target, errors[None])
    size = np.abs(errors)
    assert (size > 1).any() and (size < 1).any(), "both sides of the loss are met"
    loss = np.mean(row["weight"] * np.where(size < 1, size**2 / 2, size - 0.5))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    assert metrics["train/metrics/q_max"] == pytest.approx(
        np.abs(dqn_values(case.state.params, row["obs"])).max(), rel=1e-4
    )
    taken = row["action"][:, None] == np.arange(N_ACTIONS)
    gradient = np.mean(row["weight"][:, None] * np.clip(errors, -1, 1)[:, None] * taken, axis=0)
    moved = after.params["critic_head"]["bias"] - case.state.params["critic_head"]["bias"]
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=1e-3, atol=1e-6)


def test_dqn_with_squared_errors() -> None:
    case = make_case("dqn", "discrete", double=True, target_update_interval=None, value_loss="mse")
    row = first(case.batch)
    target = dqn_target(case, row, case.state.target)
    errors = chosen(dqn_values(case.state.params, row["obs"]), row["action"]) - target
    after, metrics, _ = case.update()
    assert metrics["train/loss/value"] == pytest.approx(np.mean(row["weight"] * errors**2 / 2), rel=1e-4)
    taken = row["action"][:, None] == np.arange(N_ACTIONS)
    gradient = np.mean((row["weight"] * errors)[:, None] * taken, axis=0)
    moved = after.params["critic_head"]["bias"] - case.state.params["critic_head"]["bias"]
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=1e-3, atol=1e-6)


def test_double_and_single_dqn_differ_where_the_networks_do() -> None:
    double = make_case("dqn", "discrete", double=True, target_update_interval=None)
    single = make_case("dqn", "discrete", double=False, target_update_interval=100)
    row = first(single.batch)
    higher = dqn_target(single, row, single.state.target) - dqn_target(double, row, double.state.target)
    assert (higher >= 0).all(), "the largest is never less than another's choice"
    assert (higher > 0.01).any()
    assert single.update()[1]["train/data/return_mean"] > double.update()[1]["train/data/return_mean"]


@pytest.mark.parametrize(("double", "mask"), [(False, False), (True, True)])
def test_dqn_copies_its_network_into_the_target_before_it_learns(double: bool, mask: bool) -> None:
    case = make_case("dqn", "discrete", mask=mask, double=double, target_update_interval=100)
    after, _, _ = case.update()
    require_equal(after.target, case.state.target)
    after, metrics, _ = case.update(hp=case.hp | {"sync_target": np.float32(1)})
    require_equal(after.target, case.state.params)
    assert changed(after.params, case.state.params)
    aim = dqn_target(case, first(case.batch), case.state.params)
    assert metrics["train/data/return_mean"] == pytest.approx(aim.mean(), rel=1e-4)


def test_a_target_without_an_interval_ignores_the_call_to_copy() -> None:
    case = make_case("dqn", "discrete", double=True, target_update_interval=None)
    plain, told = case.update()[0], case.update(hp=case.hp | {"sync_target": np.float32(1)})[0]
    require_equal(plain, told)
