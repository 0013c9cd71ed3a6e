"""Users' functions: right ones of every library raise no alarm, wrong ones are caught by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from gymnasium_solver.verify import compliance
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


def loss_with(
    ratio: Function = lambda lp, old: jnp.exp(lp - old),
    advantage: Function = lambda adv: adv,
    clipped: Function = lambda r, adv, eps: jnp.clip(r, 1 - eps, 1 + eps) * adv,
    choose: Function = jnp.minimum,
) -> Function:
    """A loss in which one step can be done otherwise, written as people write it."""

    def loss(lp, old_lp, adv, eps):
        r, adv = ratio(lp, old_lp), advantage(adv)
        return -choose(r * adv, clipped(r, adv, eps)).mean()

    return loss


RIGHT = [
    *(right_loss, right_loss_of_negated_terms, right_loss_per_row, loss_with()),
    *(right_total, right_with_fixed_weights, right_with_own_normalisation),
    *(right_gae, right_gae_of_starts, right_gae_of_one_list, right_gae_of_batches, right_gae_with_truncation),
]


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_a_right_function_raises_no_alarm(function: Function) -> None:
    document = validate(function)
    assert document["compliant"], to_text(document)
    assert not [mistake for mistake in document["mistakes"] if not mistake["harmless"]]


def test_peers_functions_pass() -> None:
    assert validate(rlax.clipped_surrogate_pg_loss)["compliant"]


def test_reported_numbers_are_checked() -> None:
    found = statuses(validate(right_total))
    assert (found["reported approx_kl"], found["reported clipfrac"]) == ("pass", "pass")

    def first_estimator(log_prob, old_log_prob, advantages, clip_range):
        return {
            "loss": right_loss(log_prob, old_log_prob, advantages, clip_range),
            "kl": (old_log_prob - log_prob).mean(),
        }

    document = validate(first_estimator)
    assert document["compliant"]
    assert statuses(document)["reported kl"] == "different"


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
    assert statuses(validate(right_gae_of_batches))["time runs along the first axis"] == "different"


def test_swapped_outputs_are_told() -> None:
    document = validate(
        lambda rewards, values, dones, last_value, gamma, lam: right_gae(
            rewards, values, dones, last_value, gamma, lam
        )[::-1]
    )
    assert names(document) == {"outputs-swapped"}
    assert document["compliant"]


def test_endings_of_one_kind_are_absent_not_wrong() -> None:
    assert statuses(validate(right_gae))["a truncated row bootstraps"] == "absent"


def test_inputs_that_are_overwritten_are_told() -> None:
    def careless(rewards, values, dones, last_value, gamma, lam):
        out = right_gae(rewards, values, dones, last_value, gamma, lam)[0]
        values += out
        return out

    document = validate(careless)
    assert document["compliant"]
    inputs = next(check for check in document["checks"] if check["check"] == "inputs are not modified")
    assert (inputs["status"], inputs["got"]) == ("different", "modifies values")


# Wrong functions: caught and named


stop = jax.lax.stop_gradient
WRONG_LOSSES = {
    "max-for-min": loss_with(choose=jnp.maximum),
    "ratio-inverted": loss_with(lambda lp, old: jnp.exp(old - lp)),
    "ratio-not-exponentiated": loss_with(lambda lp, old: lp - old),
    "ratio-of-log-probs": loss_with(lambda lp, old: lp / old),
    "old-log-prob-recomputed": loss_with(lambda lp, old: jnp.exp(lp - stop(lp))),
    "log-prob-detached": loss_with(lambda lp, old: jnp.exp(stop(lp) - old)),
    "advantage-sign": loss_with(advantage=lambda adv: -adv),
    "not-clipped": loss_with(choose=lambda plain, clipped: plain),
    "min-missing": loss_with(choose=lambda plain, clipped: clipped),
    "clipped-around-zero": loss_with(clipped=lambda r, adv, eps: jnp.clip(r, -eps, eps) * adv),
    "clipped-above-only": loss_with(clipped=lambda r, adv, eps: jnp.minimum(r, 1 + eps) * adv),
    "clipped-below-only": loss_with(clipped=lambda r, adv, eps: jnp.maximum(r, 1 - eps) * adv),
    "log-ratio-clipped": loss_with(clipped=lambda r, adv, eps: jnp.exp(jnp.clip(jnp.log(r), -eps, eps)) * adv),
    "product-clipped": loss_with(clipped=lambda r, adv, eps: jnp.clip(r * adv, 1 - eps, 1 + eps)),
    "advantage-missing-in-clipped-term": loss_with(clipped=lambda r, adv, eps: jnp.clip(r, 1 - eps, 1 + eps)),
    "broadcast": loss_with(lambda lp, old: jnp.exp(lp - old)[:, None]),
    "means-before-product": loss_with(lambda lp, old: jnp.exp(lp - old).mean(), lambda adv: adv.mean()),
    "no-ratio": lambda lp, old_lp, adv, eps: -(lp * adv).mean(),
    "advantages-not-centred": loss_with(advantage=lambda adv: adv / (adv.std() + 1e-8)),
    "advantages-by-variance": loss_with(advantage=lambda adv: (adv - adv.mean()) / (adv.var() + 1e-8)),
    "advantages-only-centred": loss_with(advantage=lambda adv: adv - adv.mean()),
    "absolute-advantages": loss_with(advantage=jnp.abs),
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
    reward: Function = lambda r, t: r[t],
    sign: float = 1,
) -> Function:
    """GAE in which one step can be done otherwise, written as people write it."""

    def compute_gae(rewards, values, dones, next_value, gamma, lam):
        advantages, carry = np.zeros_like(rewards), 0.0
        for t in order(len(rewards)):
            going = bootstrap(dones, t)
            error = delta(reward(rewards, t), gamma, values[t], following(values, next_value, t) * going, lam)
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
    ("rewards-shifted", gae_with(reward=lambda r, t: r[t + 1] if t + 1 < len(r) else 0)),
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


def held_error(v: Any, old: Any, ret: Any, eps: float) -> Any:
    return (old + jnp.clip(v - old, -eps, eps) - ret) ** 2


def total_with(
    value: Function = lambda v, old, ret, eps, adv: ((v - ret) ** 2).mean(),
    value_sign: float = 1,
    entropy_sign: float = -1,
) -> Function:
    def loss(logp, old_logp, adv, eps, values, old_values, returns, entropy, vf_coef, ent_coef):
        total = right_loss_of_negated_terms(logp, old_logp, adv, eps)
        total += value_sign * vf_coef * value(values, old_values, returns, eps, adv)
        return total + entropy_sign * ent_coef * entropy.mean()

    return loss


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("entropy-sign", total_with(entropy_sign=1)),
        ("value-loss-sign", total_with(value_sign=-1)),
        ("value-loss-broadcast", total_with(lambda v, old, ret, eps, adv: ((v[:, None] - ret) ** 2).mean())),
        ("value-loss-not-squared", total_with(lambda v, old, ret, eps, adv: (v - ret).mean())),
        ("value-target-is-advantage", total_with(lambda v, old, ret, eps, adv: ((v - adv) ** 2).mean())),
        ("values-detached", total_with(lambda v, old, ret, eps, adv: ((jax.lax.stop_gradient(v) - ret) ** 2).mean())),
        ("value-clip-alone", total_with(lambda v, old, ret, eps, adv: held_error(v, old, ret, eps).mean())),
        (
            "value-clip-min",
            total_with(lambda v, old, ret, eps, adv: jnp.minimum((v - ret) ** 2, held_error(v, old, ret, eps)).mean()),
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
