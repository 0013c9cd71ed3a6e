"""DDPG's and TD3's updates against NumPy: targets, the climb of the policy, noise, delay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import build_config
from tests.algorithms.single_updates import (
    BATCH,
    BOX,
    DIM,
    RATE,
    apply,
    changed,
    critics,
    features,
    first,
    make_case,
    require_report,
    slope,
    spec_of,
)


def td3_target(state: Any, row: dict[str, np.ndarray], noise: np.ndarray) -> np.ndarray:
    action = np.tanh(apply(state.target["actor"], "actor_head", row["next_obs"]))
    action = np.clip(action + noise, -1, 1)
    return row["reward"] + row["discount"] * critics(state.target["critic"], row["next_obs"], action).min(axis=0)


@pytest.mark.parametrize(("algorithm", "n_critics"), [("ddpg", 1), ("td3", 2)])
def test_ddpg_and_td3(algorithm: str, n_critics: int) -> None:
    case = make_case(algorithm, "box")
    case.state.target["actor"]["actor_head"]["bias"][:] = [1.5, 0.0]  # so that noise would lead out of bounds
    row, noise = first(case.batch), case.noise[0].astype(np.float64)
    assert noise.shape == (BATCH, DIM)
    assert noise.any() == (algorithm == "td3"), "ddpg does not smooth"
    target = td3_target(case.state, row, noise)
    q = critics(case.state.params["critic"], row["obs"], row["action"])
    assert q.shape == (n_critics, BATCH)
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)
    loss = np.mean(np.sum(row["weight"] * (q - target) ** 2, axis=0))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    for i, head in enumerate(after.params["critic"]["critic_head"]):
        moved = head["bias"] - case.state.params["critic"]["critic_head"][i]["bias"]
        np.testing.assert_allclose(moved, -RATE * np.mean(2 * row["weight"] * (q - target)[i]), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("algorithm", ["ddpg", "td3"])
def test_a_deterministic_policy_climbs_its_first_critic(algorithm: str) -> None:
    case = make_case(algorithm, "box")
    after, metrics, _ = case.update()
    row, actor = first(case.batch), case.state.params["actor"]
    hidden = features(actor["trunk"], row["obs"])

    def loss(bias: np.ndarray) -> float:
        action = np.tanh(hidden @ actor["actor_head"]["weight"].astype(np.float64) + bias)
        return -float(critics(after.params["critic"], row["obs"], action)[0].mean())

    before = actor["actor_head"]["bias"].astype(np.float64)
    assert metrics["train/loss/policy"] == pytest.approx(loss(before), rel=1e-4, abs=1e-6)
    moved = after.params["actor"]["actor_head"]["bias"] - before
    np.testing.assert_allclose(moved, -RATE * slope(loss, before), rtol=2e-3, atol=1e-6)


def test_the_noise_of_target_actions_is_clipped() -> None:
    fields = {"target_noise": 0.4, "target_noise_clip": 0.5, "batch_size": 256, "update_to_data": 50}
    config = build_config({"env_id": "Fake-v0", "algo_id": "td3", **fields}, "test")
    made = make_algorithm(config, spec_of(BOX))
    noise = made.update_noise(np.random.default_rng(0))
    assert noise.shape == (50, 256, DIM)
    assert np.abs(noise).max() == np.float32(0.5)
    beyond = math.erfc(0.5 / 0.4 / math.sqrt(2))
    assert np.mean(np.abs(noise) == np.float32(0.5)) == pytest.approx(beyond, rel=0.05)
    assert noise[np.abs(noise) < 0.5].std() < 0.4
    assert (made.update_noise(np.random.default_rng(1)) != noise).any()


def test_the_policy_and_the_targets_wait_for_the_critics() -> None:
    case = make_case("td3", "box")
    assert case.config.policy_delay == 2
    state, moves, reports = case.state, [], []
    for _ in range(4):
        after, metrics, _ = case.update(state=state)
        reports.append({name: metrics[name] for name in ("train/loss/policy", "train/metrics/grad_norm/actor_head")})
        assert changed(after.params["critic"], state.params["critic"])
        moved = changed(after.params["actor"], state.params["actor"])
        assert changed(after.target, state.target) == moved
        moves.append(moved)
        state = after
    assert moves in ([True, False, True, False], [False, True, False, True]), "also from one update to the next"
    assert state.steps == 4
    improved = moves.index(True)
    assert reports[improved] == reports[improved + 1] != reports[(improved + 2) % 4]
    assert all(reports[improved].values()), "while it rests, its last step is reported, not nothing"


def test_ddpg_moves_its_policy_every_time() -> None:
    case = make_case("ddpg", "box")
    state = case.state
    for _ in range(3):
        after, _, _ = case.update(state=state)
        assert changed(after.params["actor"], state.params["actor"])
        state = after
