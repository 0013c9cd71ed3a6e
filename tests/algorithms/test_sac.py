"""SAC's update against NumPy: continuous and discrete actions, the temperature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.algorithms.single_updates import (
    BATCH,
    DIM,
    LEARNED,
    N_ACTIONS,
    RATE,
    apply,
    changed,
    chosen,
    critics,
    first,
    make_case,
    require_report,
    slope,
)


def gaussian_policy(actor: Any, obs: np.ndarray, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Action and its log-probability."""
    mean, log_std = np.split(apply(actor, "actor_head", obs), 2, axis=1)
    log_std = np.clip(log_std, -20, 2)  # all that is computed with
    before = mean + np.exp(log_std) * normal
    slope_of_tanh = 2 * (math.log(2) - np.logaddexp(before, -before))  # log of 1 / cosh²
    log_prob = -0.5 * normal**2 - 0.5 * math.log(2 * math.pi) - log_std - slope_of_tanh
    return np.tanh(before), log_prob.sum(axis=1)


def set_temperature(state: dict[str, Any], alpha: float) -> None:
    state.params["temperature"]["log_alpha"] = np.array(math.log(alpha), np.float32)


def test_sac_with_continuous_actions() -> None:
    case = make_case("sac", "box", **LEARNED)
    set_temperature(case.state, 0.3)
    assert case.noise.shape == (1, 2, BATCH, DIM)
    row, normal = first(case.batch), case.noise[0].astype(np.float64)
    params = case.state.params
    action, log_prob = gaussian_policy(params["actor"], row["next_obs"], normal[1])
    worth = critics(case.state.target, row["next_obs"], action).min(axis=0) - 0.3 * log_prob
    target = row["reward"] + row["discount"] * worth
    q = critics(params["critic"], row["obs"], row["action"])
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)
    loss = 0.5 * np.mean(np.sum(row["weight"] * (q - target) ** 2, axis=0))
    assert metrics["train/loss/value"] == pytest.approx(loss, rel=1e-4)
    assert metrics["train/metrics/alpha"] == pytest.approx(0.3, rel=1e-5)
    for i, head in enumerate(after.params["critic"]["critic_head"]):
        moved = head["bias"] - params["critic"]["critic_head"][i]["bias"]
        np.testing.assert_allclose(moved, -RATE * np.mean(row["weight"] * (q - target)[i]), rtol=1e-3, atol=1e-6)

    head = params["actor"]["actor_head"]

    def actor_loss(bias: np.ndarray) -> float:
        actor = {"trunk": params["actor"]["trunk"], "actor_head": {"weight": head["weight"], "bias": bias}}
        action, log_prob = gaussian_policy(actor, row["obs"], normal[0])
        return float(np.mean(0.3 * log_prob - critics(after.params["critic"], row["obs"], action).min(axis=0)))

    before = head["bias"].astype(np.float64)
    entropy = -gaussian_policy(params["actor"], row["obs"], normal[0])[1].mean()
    assert metrics["train/metrics/entropy"] == pytest.approx(entropy, rel=1e-4)
    assert metrics["train/loss/policy"] == pytest.approx(actor_loss(before), rel=1e-3, abs=1e-5)
    moved = after.params["actor"]["actor_head"]["bias"] - before
    np.testing.assert_allclose(moved, -RATE * slope(actor_loss, before), rtol=2e-3, atol=1e-5)


def test_sac_with_discrete_actions_takes_the_expectation() -> None:
    case = make_case("sac", "discrete", mask=True, **LEARNED)
    set_temperature(case.state, 0.3)
    row, params = first(case.batch), case.state.params

    def policy(obs: np.ndarray, allowed: np.ndarray, shift: np.ndarray | float = 0.0) -> np.ndarray:
        logits = np.where(allowed, apply(params["actor"], "actor_head", obs) + shift, -np.inf)
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def soft_value(q: np.ndarray, p: np.ndarray) -> np.ndarray:
        return np.sum(p * (q.min(axis=0) - 0.3 * np.log(np.maximum(p, 1e-300))), axis=1)

    p = policy(row["next_obs"], row["next_action_mask"])
    target = row["reward"] + row["discount"] * soft_value(critics(case.state.target, row["next_obs"]), p)
    q = chosen(critics(params["critic"], row["obs"]), row["action"])
    after, metrics, error = case.update()
    require_report(metrics, error, target, q - target)

    allowed = row["action_mask"]
    p = policy(row["obs"], allowed)
    entropy = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1).mean()
    assert metrics["train/metrics/entropy"] == pytest.approx(entropy, rel=1e-4)
    q_after = critics(after.params["critic"], row["obs"])
    moved = after.params["actor"]["actor_head"]["bias"] - params["actor"]["actor_head"]["bias"]
    gradient = slope(lambda b: -float(soft_value(q_after, policy(row["obs"], allowed, b)).mean()), np.zeros(N_ACTIONS))
    np.testing.assert_allclose(moved, -RATE * gradient, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "mask", "little", "much", "target"),
    [
        ("box", False, [0, 0, -6, -6], [0, 0, -0.5, -0.5], -DIM),
        ("discrete", True, [0, 60, 0], [0, 0, 0], math.log(N_ACTIONS) / 3),
    ],
)
def test_the_temperature_rises_when_there_is_too_little_entropy(
    kind: str, mask: bool, little: list[float], much: list[float], target: float
) -> None:
    case = make_case("sac", kind, mask=mask, **LEARNED)
    if mask:
        case.batch["action_mask"][:] = True
    set_temperature(case.state, 0.4)
    head = case.state.params["actor"]["actor_head"]
    head["weight"][:] = 0.0
    for bias, move in ((little, 0.1), (much, -0.1)):
        head["bias"][:] = bias
        after, metrics, _ = case.update()
        assert (metrics["train/metrics/entropy"] < target) == (bias == little)
        moved = after.params["temperature"]["log_alpha"] - math.log(0.4)
        assert moved == pytest.approx(move, rel=1e-3), "Adam's first step is its rate"
        gradient = after.optimizer["temperature"]["mean"] / 0.1  # its first mean is a tenth of the gradient
        assert metrics["train/metrics/entropy"] - gradient == pytest.approx(target, rel=1e-3)
        assert metrics["train/metrics/alpha"] == pytest.approx(0.4, rel=1e-5), "the one that was in force"


def test_where_a_mask_allows_less_the_temperature_wants_less() -> None:
    """Two of three actions, then one: a third of log 2, then of nothing."""
    case = make_case("sac", "discrete", mask=True, **LEARNED)
    head = case.state.params["actor"]["actor_head"]
    head["weight"][:] = 0.0
    head["bias"][:] = [0.0, math.log(0.09 / 0.91), 5.0]
    case.batch["action_mask"][:] = [True, True, False]
    after, metrics, _ = case.update()
    assert math.log(2) / 3 < metrics["train/metrics/entropy"] < math.log(N_ACTIONS) / 3
    assert after.optimizer["temperature"]["mean"] / 0.1 == pytest.approx(
        metrics["train/metrics/entropy"] - math.log(2) / 3, rel=1e-3
    )
    half = case.batch["action_mask"].copy()
    half[:, ::2] = [True, False, False]
    after, metrics, _ = case.update(batch=case.batch | {"action_mask": half})
    assert after.optimizer["temperature"]["mean"] / 0.1 == pytest.approx(
        metrics["train/metrics/entropy"] - math.log(2) / 6, rel=1e-3
    )


def test_a_target_that_is_given_stands_whatever_the_mask() -> None:
    case = make_case("sac", "discrete", mask=True, **LEARNED, target_entropy=0.2)
    after, metrics, _ = case.update()
    gradient = after.optimizer["temperature"]["mean"] / 0.1
    assert metrics["train/metrics/entropy"] - gradient == pytest.approx(0.2, rel=1e-3)


def test_the_temperature_starts_where_it_is_told_and_follows_adam() -> None:
    """Networks stand still, so the entropies of three gradient steps are known from their noise."""
    case = make_case("sac", "box", **LEARNED, update_to_data=3)
    fresh = case.algorithm.init(np.random.default_rng(0)).params["temperature"]["log_alpha"]
    assert fresh == pytest.approx(math.log(0.5))
    case.state.params["temperature"]["log_alpha"] = fresh
    obs, normal = case.batch["obs"].astype(np.float64), case.noise.astype(np.float64)
    mean = square = 0.0
    expected = math.log(0.5)
    for step in range(3):
        entropy = -gaussian_policy(case.state.params["actor"], obs[step], normal[step, 0])[1].mean()
        gradient = entropy + DIM
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        corrected = mean / (1 - 0.9 ** (step + 1)), square / (1 - 0.999 ** (step + 1))
        expected -= 0.1 * corrected[0] / (math.sqrt(corrected[1]) + 1e-8)
    after, _, _ = case.update(hp=case.hp | {"policy_lr": np.float32(0)})
    assert after.params["temperature"]["log_alpha"] == pytest.approx(expected, rel=1e-3)
    assert not changed(after.params["actor"], case.state.params["actor"])
