"""The reference that PPO is validated against, and our own PPO against it."""

from __future__ import annotations

import inspect
from typing import Any
from unittest import mock

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from gymnasium_solver.config.cards.ppo import PPOConfig
from gymnasium_solver.envs.wrappers import NAMED
from gymnasium_solver.verify import compliance
from gymnasium_solver.verify.compliance import formulas, own_details, own_update
from gymnasium_solver.verify.compliance.mistakes import Mistake
from gymnasium_solver.verify.compliance.report import Findings, document, finding, published
from gymnasium_solver.verify.compliance.samples import loss_batches, rollouts
from gymnasium_solver.verify.compliance.text import to_text

pytestmark = pytest.mark.integration


# The reference itself


def test_the_reference_loss_agrees_with_rlax() -> None:
    for batch in loss_batches():
        ratio, advantages = jnp.asarray(batch.ratio), jnp.asarray(batch.advantages)
        oracle = rlax.clipped_surrogate_pg_loss(ratio, advantages, batch.clip_range)
        assert formulas.surrogate({}, batch) == pytest.approx(float(oracle), rel=1e-5)


def test_the_reference_gradient_is_the_analytic_one() -> None:
    for batch in loss_batches():
        ratio, a, clip = batch.ratio, batch.advantages, batch.clip_range
        gone = ((a > 0) & (ratio > 1 + clip)) | ((a < 0) & (ratio < 1 - clip))
        by_hand = np.where(gone, 0.0, -ratio * a / len(ratio))
        np.testing.assert_allclose(formulas.surrogate_gradient({}, batch), by_hand, atol=1e-8)


def test_the_reference_estimate_agrees_with_rlax() -> None:
    rollout, _ = rollouts(truncation=False)
    for env in range(rollout.rewards.shape[1]):
        one = rollout.part(slice(None), slice(env, env + 1))
        oracle = rlax.truncated_generalized_advantage_estimation(
            jnp.asarray(one.rewards[:, 0]),
            jnp.asarray(one.gamma * (1 - one.done[:, 0])),
            one.gae_lambda,
            jnp.asarray(np.append(one.values[:, 0], one.next_values[-1])),
        )
        np.testing.assert_allclose(formulas.advantages({}, one)[:, 0], oracle, rtol=1e-4, atol=1e-5)


def test_the_reference_estimate_is_the_double_sum_of_the_paper() -> None:
    """An ending cuts the sum; only a termination takes the successor's value away."""
    for x in rollouts(truncation=True):
        delta = x.rewards + x.gamma * x.next_values * (1 - x.terminated) - x.values
        wanted = np.zeros_like(delta)
        for start in range(len(delta)):
            going = np.ones(delta.shape[1])
            for t in range(start, len(delta)):
                wanted[start] += going * (x.gamma * x.gae_lambda) ** (t - start) * delta[t]
                going *= 1 - x.done[t]
        np.testing.assert_allclose(formulas.advantages({}, x), wanted)


@pytest.mark.parametrize("mistake", formulas.LOSS_MISTAKES, ids=lambda mistake: mistake.name)
def test_every_mistake_of_a_loss_shows_in_the_batches(mistake: Mistake) -> None:
    apart = 0.0
    for batch in loss_batches():
        value, right = (formulas.surrogate(changes, batch) for changes in (mistake.changes, {}))
        gradient, wanted = (formulas.surrogate_gradient(changes, batch) for changes in (mistake.changes, {}))
        apart = max(apart, abs(value - right), np.abs(gradient - wanted).max())
    assert apart > 0.005


@pytest.mark.parametrize("mistake", formulas.GAE_MISTAKES, ids=lambda mistake: mistake.name)
def test_every_mistake_of_gae_shows_in_the_rollouts(mistake: Mistake) -> None:
    wrong = [formulas.advantages(mistake.changes, x) for x in rollouts(truncation=True)]
    right = [formulas.advantages({}, x) for x in rollouts(truncation=True)]
    assert max(np.abs(a - b).max() for a, b in zip(wrong, right, strict=True)) > 0.01


# Our own PPO


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return compliance.validate("ppo")


def test_our_ppo_is_compliant(own: dict[str, Any]) -> None:
    assert own["compliant"], own["verdict"]
    assert not [check for check in own["checks"] if check["status"] == "fail"]


def test_all_details_of_the_published_list_are_judged(own: dict[str, Any]) -> None:
    groups = [detail["group"] for detail in own["details"]]
    assert [detail["number"] for detail in own["details"]] == list(range(1, 38))
    assert [groups.count(group) for group in dict.fromkeys(groups)] == [13, 9, 9, 5, 1]
    status = {detail["number"]: detail["status"] for detail in own["details"]}
    assert {number for number, found in status.items() if found == "absent"} == {17, 32, 33, 34, 35, 36}
    assert {number for number, found in status.items() if found == "different"} == {4, 9, 16, 19}
    assert {detail["matters"] for detail in own["details"]} == {"yes", "no", "sometimes"}
    assert all(detail["evidence"] and detail["why"] for detail in own["details"])


def test_the_report_has_every_check_and_detail(own: dict[str, Any]) -> None:
    text = to_text(own)
    assert all(words["detail"] in text for _, words in published())
    assert all(check["check"] in text for check in own["checks"])
    assert max(map(len, text.splitlines())) < 160


def test_a_wrong_loss_of_ours_would_be_seen_in_the_whole_update() -> None:
    def flipped(log_ratio: jax.Array, advantage: jax.Array, weight: jax.Array, clip_range: Any) -> jax.Array:
        return jnp.sum(jnp.exp(log_ratio) * advantage * weight) / jnp.sum(weight)

    own_update.updated.cache_clear()
    with mock.patch("gymnasium_solver.ops.losses.clipped_surrogate", flipped):
        assert own_update.updated("discrete").gradient_error > 0.1
    own_update.updated.cache_clear()


def test_other_initial_weights_would_be_seen() -> None:
    assert own_details.initial_weights()[1]
    assert not own_details.initial_weights(ortho_init=False)[1]


def test_a_detail_that_matters_and_is_missing_breaks_compliance() -> None:
    present, absent = (finding(5, status, "") for status in ("present", "absent"))
    assert document("x", "gae", Findings([], (), [present]))["compliant"]
    without = document("x", "gae", Findings([], (), [absent]))
    assert (without["compliant"], "generalised advantage" in without["verdict"]) == (False, True)
    assert document("x", "gae", Findings([], (), [absent._replace(matters="sometimes")]))["compliant"]


def test_options_that_the_details_name_exist() -> None:
    named = {"max_and_skip", "grey", "resize", "reward_clip", "sticky_actions"}
    assert named <= set(NAMED)
    offered = inspect.signature(gymnasium.wrappers.AtariPreprocessing).parameters
    assert {"noop_max", "terminal_on_life_loss"} <= set(offered)
    assert {"frame_stack", "shared_network", "normalize_obs"} <= set(PPOConfig.model_fields)
