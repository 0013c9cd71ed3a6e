"""Validation of PPO: ours passes, right functions of every library raise no alarm, wrong ones are caught by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify import compliance
from gymnasium_solver.verify.compliance import formulas, own_details, own_update
from gymnasium_solver.verify.compliance.mistakes import Mistake
from gymnasium_solver.verify.compliance.parameters import ALIASES, detect_kind, map_parameters, meaning_of
from gymnasium_solver.verify.compliance.report import published
from gymnasium_solver.verify.compliance.samples import loss_batches, rollouts
from gymnasium_solver.verify.compliance.text import to_text

pytestmark = pytest.mark.integration

Function = Callable[..., Any]


def validate(function: Function, **options: Any) -> dict[str, Any]:
    return compliance.validate("ppo", function, **options)


def names(document: dict[str, Any]) -> set[str]:
    return {mistake["name"] for mistake in document["mistakes"]}


def statuses(document: dict[str, Any]) -> dict[str, str]:
    return {check["check"]: check["status"] for check in document["checks"]}


def failed(document: dict[str, Any]) -> list[str]:
    return [name for name, status in statuses(document).items() if status == "fail"]


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
    assert failed(own) == []


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
    report = compliance.check_function(right_gae, "gae")
    assert report.compliant
    missing = [replace(detail, status="absent") for detail in report.findings.details]
    assert not replace(report, findings=report.findings._replace(details=missing)).compliant


# Right functions: no alarm


def right_loss(logp, old_logp, adv, clip_eps):
    ratio = np.exp(logp - old_logp)
    return -np.minimum(ratio * adv, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv).mean()


def right_loss_of_negated_terms(b_log_probs, b_old_log_probs, b_advantages, clip_coef):
    ratio = jnp.exp(b_log_probs - b_old_log_probs)
    return jnp.maximum(-b_advantages * ratio, -b_advantages * jnp.clip(ratio, 1 - clip_coef, 1 + clip_coef)).mean()


def right_loss_per_row(new_log_prob, old_log_prob, advantages, epsilon):
    ratio = jnp.exp(new_log_prob - old_log_prob)
    return -jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - epsilon, 1 + epsilon) * advantages)


def right_total(
    log_prob, old_log_prob, advantages, clip_range, values, old_values, returns, entropy, vf_coef, ent_coef
):
    log_ratio = log_prob - old_log_prob
    ratio = jnp.exp(log_ratio)
    policy = -jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip_range, 1 + clip_range) * advantages).mean()
    held = old_values + jnp.clip(values - old_values, -clip_range, clip_range)
    value = 0.5 * jnp.maximum((values - returns) ** 2, (held - returns) ** 2).mean()
    total = policy + vf_coef * value - ent_coef * entropy.mean()
    return {
        "loss": total,
        "approx_kl": ((ratio - 1) - log_ratio).mean(),
        "clipfrac": (jnp.abs(ratio - 1) > clip_range).mean(),
    }


def right_with_fixed_weights(logp, old_logp, adv, eps, values, returns, entropy):
    return right_loss(logp, old_logp, adv, eps) + 0.25 * ((values - returns) ** 2).mean() - 0.01 * entropy


def right_with_own_normalisation(logp, old_logp, adv, eps):
    return right_loss(logp, old_logp, (adv - adv.mean()) / (adv.std() + 1e-8), eps)


def right_gae(rewards, values, dones, last_value, gamma, lam):
    advantages, carry = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        following = last_value if t == len(rewards) - 1 else values[t + 1]
        delta = rewards[t] + gamma * following * (1 - dones[t]) - values[t]
        carry = delta + gamma * lam * (1 - dones[t]) * carry
        advantages[t] = carry
    return advantages, advantages + values


def right_gae_of_starts(rewards, values, dones, next_value, next_done, gamma, gae_lambda):
    advantages, carry = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        if t == len(rewards) - 1:
            going, following = 1 - next_done, next_value
        else:
            going, following = 1 - dones[t + 1], values[t + 1]
        carry = rewards[t] + gamma * following * going - values[t] + gamma * gae_lambda * going * carry
        advantages[t] = carry
    return advantages


def right_gae_of_one_list(rewards, values, masks, gamma, tau):
    """Values [T+1], masks = 1 - done, a list that grows at its front."""
    out: list[Any] = []
    carry = 0.0
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * masks[t] - values[t]
        carry = delta + gamma * tau * masks[t] * carry
        out.insert(0, carry)
    return out


def right_gae_of_batches(rewards, values, dones, last_value, gamma, lam):
    """[N, T], booleans."""
    going = ~dones
    advantages, carry = np.zeros_like(rewards), np.zeros(len(rewards))
    following = np.concatenate([values[:, 1:], last_value[:, None]], axis=1)
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + gamma * following[:, t] * going[:, t] - values[:, t]
        carry = delta + gamma * lam * going[:, t] * carry
        advantages[:, t] = carry
    return advantages


@jax.jit
def right_gae_with_truncation(rewards, values, next_values, terminated, truncated, gamma, lambda_):
    delta = rewards + gamma * next_values * (1 - terminated) - values
    decay = gamma * lambda_ * (1 - jnp.maximum(terminated, truncated))
    return jax.lax.scan(
        lambda carry, row: (row[0] + row[1] * carry,) * 2, jnp.zeros_like(delta[0]), (delta, decay), reverse=True
    )[1]


RIGHT_LOSSES = [
    right_loss,
    right_loss_of_negated_terms,
    right_loss_per_row,
    right_total,
    right_with_fixed_weights,
    right_with_own_normalisation,
]
RIGHT_ESTIMATES = [
    right_gae,
    right_gae_of_starts,
    right_gae_of_one_list,
    right_gae_of_batches,
    right_gae_with_truncation,
]


@pytest.mark.parametrize("function", RIGHT_LOSSES + RIGHT_ESTIMATES, ids=lambda f: f.__name__)
def test_a_right_function_raises_no_alarm(function: Function) -> None:
    document = validate(function)
    assert document["compliant"], to_text(document)
    assert not [mistake for mistake in document["mistakes"] if not mistake["harmless"]]


def test_peers_functions_pass() -> None:
    assert validate(rlax.clipped_surrogate_pg_loss)["compliant"]


def test_reported_numbers_are_checked() -> None:
    checks = {check["check"]: check["status"] for check in validate(right_total)["checks"]}
    assert checks["reported approx_kl"] == "pass"
    assert checks["reported clipfrac"] == "pass"

    def first_estimator(log_prob, old_log_prob, advantages, clip_range):
        return {
            "loss": right_loss(log_prob, old_log_prob, advantages, clip_range),
            "kl": (old_log_prob - log_prob).mean(),
        }

    document = validate(first_estimator)
    assert document["compliant"]
    assert {check["check"]: check["status"] for check in document["checks"]}["reported kl"] == "different"


# Other conventions: different, not wrong


def test_a_sum_is_another_convention() -> None:
    def summed(logp, old_logp, adv, eps):
        return right_loss(logp, old_logp, adv, eps) * len(adv)

    document = validate(summed)
    assert document["compliant"]
    assert names(document) == {"sum-reduction"}
    assert "different: sums over the rows" in document["verdict"]


def test_an_objective_is_another_convention_if_it_says_so() -> None:
    def surrogate_objective(logp, old_logp, adv, eps):
        return -right_loss(logp, old_logp, adv, eps)

    document = validate(surrogate_objective)
    assert document["compliant"]
    assert "returns the objective, not the loss" in document["verdict"]

    def ppo_loss(logp, old_logp, adv, eps):
        return -right_loss(logp, old_logp, adv, eps)

    assert names(validate(ppo_loss)) == {"loss-sign"}
    assert not validate(ppo_loss)["compliant"]
    assert validate(ppo_loss, maximize=True)["compliant"]
    assert not validate(right_loss, maximize=True)["compliant"]


def test_time_on_the_last_axis_is_told() -> None:
    statuses = {check["check"]: check["status"] for check in validate(right_gae_of_batches)["checks"]}
    assert statuses["time runs along the first axis"] == "different"


def test_swapped_outputs_are_told() -> None:
    document = validate(
        lambda rewards, values, dones, last_value, gamma, lam: right_gae(
            rewards, values, dones, last_value, gamma, lam
        )[::-1]
    )
    assert names(document) == {"outputs-swapped"}
    assert document["compliant"]


def test_endings_of_one_kind_are_absent_not_wrong() -> None:
    document = validate(right_gae)
    assert {check["check"]: check["status"] for check in document["checks"]}["a truncated row bootstraps"] == "absent"


def test_inputs_that_are_overwritten_are_told() -> None:
    def careless(rewards, values, dones, last_value, gamma, lam):
        out = right_gae(rewards, values, dones, last_value, gamma, lam)[0]
        values += out
        return out

    document = validate(careless)
    assert document["compliant"]
    inputs = next(check for check in document["checks"] if check["check"] == "inputs stay as they were")
    assert (inputs["status"], inputs["got"]) == ("different", "changes values")


# Wrong functions: caught and named


def pg_max(lp, old_lp, adv, eps):
    r = jnp.exp(lp - old_lp)
    return -jnp.maximum(r * adv, jnp.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_inverted(lp, old_lp, adv, eps):
    r = np.exp(old_lp - lp)
    return -np.minimum(r * adv, np.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_no_exp(lp, old_lp, adv, eps):
    r = lp - old_lp
    return -np.minimum(r * adv, np.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_quotient(lp, old_lp, adv, eps):
    r = lp / old_lp
    return -np.minimum(r * adv, np.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_recomputed(lp, old_lp, adv, eps):
    r = jnp.exp(lp - jax.lax.stop_gradient(lp))
    return -jnp.minimum(r * adv, jnp.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_detached(lp, old_lp, adv, eps):
    r = jnp.exp(jax.lax.stop_gradient(lp) - old_lp)
    return -jnp.minimum(r * adv, jnp.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_negated(lp, old_lp, adv, eps):
    return right_loss(lp, old_lp, -adv, eps)


def pg_unclipped(lp, old_lp, adv, eps):
    return -(np.exp(lp - old_lp) * adv).mean()


def pg_only_clipped(lp, old_lp, adv, eps):
    return -(jnp.clip(jnp.exp(lp - old_lp), 1 - eps, 1 + eps) * adv).mean()


def pg_around_zero(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)
    return -np.minimum(r * adv, np.clip(r, -eps, eps) * adv).mean()


def pg_above_only(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)
    return -np.minimum(r * adv, np.minimum(r, 1 + eps) * adv).mean()


def pg_log_clipped(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)
    return -np.minimum(r * adv, np.exp(np.clip(lp - old_lp, -eps, eps)) * adv).mean()


def pg_product(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)
    return -np.minimum(r * adv, np.clip(r * adv, 1 - eps, 1 + eps)).mean()


def pg_missing_factor(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)
    return -np.minimum(r * adv, np.clip(r, 1 - eps, 1 + eps)).mean()


def pg_broadcast(lp, old_lp, adv, eps):
    r = np.exp(lp - old_lp)[:, None]
    return -np.minimum(r * adv, np.clip(r, 1 - eps, 1 + eps) * adv).mean()


def pg_plain(lp, old_lp, adv, eps):
    return -(lp * adv).mean()


def pg_by_variance(lp, old_lp, adv, eps):
    return right_loss(lp, old_lp, (adv - adv.mean()) / (adv.var() + 1e-8), eps)


WRONG_LOSSES = {
    "max-for-min": pg_max,
    "ratio-inverted": pg_inverted,
    "ratio-not-exponentiated": pg_no_exp,
    "ratio-of-log-probs": pg_quotient,
    "old-log-prob-recomputed": pg_recomputed,
    "log-prob-detached": pg_detached,
    "advantage-sign": pg_negated,
    "not-clipped": pg_unclipped,
    "min-missing": pg_only_clipped,
    "clipped-around-zero": pg_around_zero,
    "clipped-above-only": pg_above_only,
    "log-ratio-clipped": pg_log_clipped,
    "product-clipped": pg_product,
    "advantage-missing-in-clipped-term": pg_missing_factor,
    "broadcast": pg_broadcast,
    "no-ratio": pg_plain,
    "advantages-by-variance": pg_by_variance,
}


@pytest.mark.parametrize(("name", "function"), WRONG_LOSSES.items(), ids=list(WRONG_LOSSES))
def test_a_wrong_loss_is_caught_and_named(name: str, function: Function) -> None:
    document = validate(function)
    assert not document["compliant"]
    assert names(document) == {name}
    assert failed(document)
    assert all(check["likely"] for check in document["checks"] if check["status"] == "fail")


def gae_with(
    bootstrap: Function = lambda d, t: 1 - d[t],
    trace: Function = lambda d, t: 1 - d[t],
    delta: Function = lambda r, g, v, nv, lam: r + g * nv - v,
    decay: Function = lambda g, lam: g * lam,
    following: Function = lambda v, last, t: last if t == len(v) - 1 else v[t + 1],
    order: Function = lambda steps: reversed(range(steps)),
    sign: float = 1,
) -> Function:
    """GAE in which one step can be done otherwise, written as people write it."""

    def compute_gae(rewards, values, dones, next_value, gamma, lam):
        advantages, carry = np.zeros_like(rewards), 0.0
        for t in order(len(rewards)):
            going = bootstrap(dones, t)
            error = delta(rewards[t], gamma, values[t], following(values, next_value, t) * going, lam)
            carry = error + decay(gamma, lam) * trace(dones, t) * carry
            advantages[t] = carry
        return sign * advantages

    return compute_gae


def next_flag(d: Any, t: int) -> Any:
    return 1 - d[t + 1] if t + 1 < len(d) else 1


def previous_flag(d: Any, t: int) -> Any:
    return 1 - d[t - 1]  # the last row's, at t = 0


WRONG_ESTIMATES = [
    ("dones-not-masked", gae_with(bootstrap=lambda d, t: 1, trace=lambda d, t: 1)),
    ("trace-not-cut", gae_with(trace=lambda d, t: 1)),
    ("bootstrap-not-masked", gae_with(bootstrap=lambda d, t: 1)),
    ("mask-inverted", gae_with(bootstrap=lambda d, t: d[t], trace=lambda d, t: d[t])),
    ("done-index", gae_with(bootstrap=next_flag, trace=next_flag)),
    ("done-index", gae_with(bootstrap=previous_flag, trace=previous_flag)),
    ("lambda-missing", gae_with(decay=lambda g, lam: g)),
    ("gamma-missing-in-trace", gae_with(decay=lambda g, lam: lam)),
    ("trace-missing", gae_with(decay=lambda g, lam: 0)),
    ("gamma-missing-in-bootstrap", gae_with(delta=lambda r, g, v, nv, lam: r + nv - v)),
    ("gamma-lambda-swapped", gae_with(delta=lambda r, g, v, nv, lam: r + lam * nv - v)),
    ("value-not-subtracted", gae_with(delta=lambda r, g, v, nv, lam: r + g * nv)),
    ("successor-is-own-value", gae_with(following=lambda v, last, t: v[t])),
    ("last-value-ignored", gae_with(following=lambda v, last, t: 0 if t == len(v) - 1 else v[t + 1])),
    ("last-value-everywhere", gae_with(following=lambda v, last, t: last)),
    ("runs-forwards", gae_with(order=range)),
    ("advantage-sign", gae_with(sign=-1)),
]


@pytest.mark.parametrize(("name", "function"), WRONG_ESTIMATES, ids=[name for name, _ in WRONG_ESTIMATES])
def test_a_wrong_estimate_is_caught_and_named(name: str, function: Function) -> None:
    document = validate(function)
    assert not document["compliant"]
    assert names(document) == {name}
    assert failed(document)


def test_the_wrong_flag_among_starts_is_named() -> None:
    def compute(rewards, values, dones, next_value, next_done, gamma, lam):
        return gae_with()(rewards, values, dones, next_value, gamma, lam)

    assert names(validate(compute)) == {"done-index"}


def test_truncation_taken_for_termination_is_named() -> None:
    def compute(rewards, values, next_values, terminated, truncated, gamma, lam):
        done = np.maximum(terminated, truncated)
        return np.asarray(right_gae_with_truncation(rewards, values, next_values, done, done, gamma, lam))

    document = validate(compute)
    assert names(document) == {"truncation-as-termination"}
    assert not document["compliant"]


def test_two_mistakes_at_once_are_both_named() -> None:
    def both(lp, old_lp, adv, eps):
        r = np.exp(old_lp - lp)
        return -np.maximum(r * adv, np.clip(r, 1 - eps, 1 + eps) * adv).sum()

    assert names(validate(both)) == {"ratio-inverted", "max-for-min", "sum-reduction"}


def test_what_no_mistake_explains_still_fails() -> None:
    document = validate(lambda lp, old_lp, adv, eps: np.tanh(lp - old_lp).mean() + 3)
    assert not document["compliant"]
    assert document["mistakes"] == []
    assert "checks fail" in document["verdict"]


def total_with(
    value: Function = lambda v, old, ret, eps: ((v - ret) ** 2).mean(), value_sign: float = 1, entropy_sign: float = -1
) -> Function:
    def loss(logp, old_logp, adv, eps, values, old_values, returns, entropy, vf_coef, ent_coef):
        total = right_loss_of_negated_terms(logp, old_logp, adv, eps)
        total += value_sign * vf_coef * value(values, old_values, returns, eps)
        return total + entropy_sign * ent_coef * entropy.mean()

    return loss


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("entropy-sign", total_with(entropy_sign=1)),
        ("value-loss-sign", total_with(value_sign=-1)),
        ("value-loss-broadcast", total_with(lambda v, old, ret, eps: ((v[:, None] - ret) ** 2).mean())),
        ("value-loss-not-squared", total_with(lambda v, old, ret, eps: (v - ret).mean())),
        ("values-detached", total_with(lambda v, old, ret, eps: ((jax.lax.stop_gradient(v) - ret) ** 2).mean())),
        (
            "value-clip-min",
            total_with(
                lambda v, old, ret, eps: jnp.minimum(
                    (v - ret) ** 2, (old + jnp.clip(v - old, -eps, eps) - ret) ** 2
                ).mean()
            ),
        ),
    ],
)
def test_a_wrong_term_is_caught_and_named(name: str, function: Function) -> None:
    document = validate(function)
    assert not document["compliant"]
    assert name in names(document)


def test_a_gradient_through_advantages_is_caught() -> None:
    def made_inside(stop: Function) -> Function:
        def loss(logp, old_logp, values, returns, eps, vf_coef):
            policy = right_loss_of_negated_terms(logp, old_logp, stop(returns - values), eps)
            return policy + vf_coef * ((values - returns) ** 2).mean()

        return loss

    assert validate(made_inside(jax.lax.stop_gradient))["compliant"]
    document = validate(made_inside(lambda x: x))
    assert failed(document) == ["advantages are constants"]
    assert "detach them" in to_text(document)


# Parameters


def test_names_are_understood() -> None:
    for kind, ours in ALIASES.items():
        assert all(meaning_of(name, kind) == name for name in ours)
    assert meaning_of("mb_advantages", "loss") == "advantages"
    assert meaning_of("b_logprobs", "loss") == "log_prob"
    assert meaning_of("lambda_", "gae") == "gae_lambda"
    assert meaning_of("v_tp1", "gae") == "next_values"
    assert meaning_of("colour", "gae") is None


def test_an_alias_means_one_thing() -> None:
    for table in ALIASES.values():
        every = [alias for aliases in table.values() for alias in aliases.split()]
        assert len(every) == len(set(every))


def test_a_parameter_can_be_mapped_by_hand() -> None:
    def odd(first, second, signal, width):
        return right_loss(first, second, signal, width)

    mapping = {"log_prob": "first", "old_log_prob": "second", "advantages": "signal", "clip_range": "width"}
    assert validate(odd, mapping=mapping)["compliant"]
    with pytest.raises(ConfigError, match="--kind loss"):
        validate(odd)
    with pytest.raises(ConfigError, match=r"'first' of odd is not understood.*log_prob, old_log_prob"):
        validate(odd, kind="loss")
    with pytest.raises(ConfigError, match="no parameter 'frist'"):
        validate(odd, mapping={**mapping, "log_prob": "frist"})
    with pytest.raises(ConfigError, match="'colour' is none of"):
        validate(odd, mapping={**mapping, "colour": "first"})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="takes no clip_range"):
        map_parameters(lambda log_prob, old_log_prob, adv: 0, "loss")
    with pytest.raises(ConfigError, match="takes no gamma"):
        map_parameters(lambda rewards, values, dones, lam: 0, "gae")
    with pytest.raises(ConfigError, match="no old_log_prob"):
        map_parameters(lambda log_prob, adv, eps: 0, "loss")
    assert detect_kind(lambda rewards, values, dones, gamma, lam: 0) == "gae"


def test_parameters_with_a_default_are_left_alone() -> None:
    def loss(logp, old_logp, adv, eps, verbose=False, /):
        return right_loss(logp, old_logp, adv, eps)

    assert validate(loss)["compliant"]


def test_a_function_that_raises_is_told_with_its_error() -> None:
    def broken(logp, old_logp, adv, eps):
        raise RuntimeError("no such layer")

    with pytest.raises(ConfigError, match="calling broken failed with numpy arrays: RuntimeError: no such layer"):
        validate(broken, framework="numpy")
    with pytest.raises(ConfigError, match="no reference here"):
        compliance.validate("dqn")


# torch, where it is installed


def test_torch_functions_are_differentiated_by_autograd() -> None:
    torch = pytest.importorskip("torch")

    def loss(logp, old_logp, adv, eps):
        ratio = torch.exp(logp - old_logp)
        return -torch.min(ratio * adv, torch.clamp(ratio, 1 - eps, 1 + eps) * adv).mean()

    def detached(logp, old_logp, adv, eps):
        return loss(logp.detach(), old_logp, adv, eps)

    def gae(rewards, values, dones, next_value, next_done, gamma, lam):
        advantages = torch.zeros_like(rewards)
        carry = 0
        for t in reversed(range(len(rewards))):
            going = 1 - (next_done if t == len(rewards) - 1 else dones[t + 1])
            following = next_value if t == len(rewards) - 1 else values[t + 1]
            carry = rewards[t] + gamma * following * going - values[t] + gamma * lam * going * carry
            advantages[t] = carry
        return advantages, advantages + values

    assert validate(loss)["framework"] == "torch"
    assert validate(loss)["compliant"]
    assert validate(gae)["compliant"]
    assert names(validate(detached)) == {"log-prob-detached"}
