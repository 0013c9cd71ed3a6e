"""A whole loss function: the policy's part, and the other terms, value error and entropy bonus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gymnasium_solver.verify.compliance.loss import Loss, check_policy
from gymnasium_solver.verify.compliance.mistakes import Mistake, mistake
from gymnasium_solver.verify.compliance.report import Check, Findings, as_checked, finding
from gymnasium_solver.verify.compliance.samples import LossBatch, loss_batch, loss_batches

Array = np.ndarray
Error = Callable[[LossBatch], Array]  # a row each; the loss is their mean

PLAIN, CLIPPED = "mean squared error", "clipped to the old value"


def squared(b: LossBatch) -> Array:
    return np.square(b.values - b.returns)


def _held(bound: str, b: LossBatch) -> Array:
    limit = getattr(b, bound)
    return np.square(b.old_values + np.clip(b.values - b.old_values, -limit, limit) - b.returns)


def clipped(bound: str, b: LossBatch) -> Array:
    return np.maximum(squared(b), _held(bound, b))


def _huber(b: LossBatch) -> Array:
    size = np.abs(b.values - b.returns)
    return np.where(size < 1, 0.5 * size**2, size - 0.5)


_BOUNDS = ("clip_range", "clip_range_vf")
_RIGHT: list[tuple[str, Error]] = [
    (PLAIN, squared),
    *((f"{CLIPPED}, by {bound}", partial(clipped, bound)) for bound in _BOUNDS),
    ("Huber loss", _huber),
]
_WRONG: list[tuple[str, Error]] = [
    ("value-loss-broadcast", lambda b: np.square(b.values[:, None] - b.returns[None, :])),
    ("value-loss-not-squared", lambda b: b.values - b.returns),
    ("value-target-is-advantage", lambda b: np.square(b.values - b.advantages)),
    *(("value-clip-min", lambda b, bound=bound: np.minimum(squared(b), _held(bound, b))) for bound in _BOUNDS),
    *(("value-clip-alone", partial(_held, bound)) for bound in _BOUNDS),
]


def check_loss(loss: Loss, maximize: bool) -> Findings:
    checks, mistakes = check_policy(loss, maximize)
    sign = -1 if maximize else 1
    terms = [_value_term(loss, sign)] if loss.subject.takes("values", "returns") else []
    terms += [_entropy_term(loss, sign)] if loss.subject.takes("entropy") else []
    found = tuple(mistake for _, mistake in terms if mistake)
    inside = any(mistake.name == "normalised-inside" for mistake in mistakes)
    normalised = finding(7, *("present", "inside the function") if inside else ("absent", "left to the caller"))
    details = [normalised, as_checked(8, checks)]
    return Findings([*checks, *(check for check, _ in terms)], (*mistakes, *found), details)


def _value_term(loss: Loss, sign: int) -> tuple[Check, Mistake | None]:
    """What the term adds to the loss is a known error times a factor, the same in two batches."""
    name, why = "value loss", "the critic's own error"
    batches = [loss.prepared(batch) for batch in loss_batches()[:2]]
    added = []
    for batch in batches:
        quiet = batch._replace(entropy=np.zeros_like(batch.entropy), ent_coef=0.0)
        added.append(loss.value(quiet) - loss.value(loss.policy_only(batch)))

    def factor(error: Error) -> float | None:
        for reduce in (np.mean, np.sum):
            scales = [(b.vf_coef if loss.subject.takes("vf_coef") else 1.0) * reduce(error(b)) for b in batches]
            one, other = (got / scale for got, scale in zip(added, scales, strict=True))
            if abs(one) > 1e-6 and abs(one - other) <= 2e-3 * abs(one):
                return float(one)
        return None

    for label, error in _RIGHT:
        if (weight := factor(error)) is None:
            continue
        got = f"{label}, weight {weight:+.3g}" + (" × vf_coef" if loss.subject.takes("vf_coef") else "")
        if weight * sign < 0:
            return _failed(name, "to be minimised", got, why, "value-loss-sign")
        if loss.subject.backend.detaches and not loss.gradient(batches[0], "values").any():
            return _failed(name, "a gradient", "none", why, "values-detached")
        usual = label == PLAIN and abs(abs(weight) - 1) < 1e-3
        reason = why if usual else f"{why}; the factor and the clip are conventions, see vf_coef"
        return Check(name, "pass" if usual else "different", "vf_coef × mean squared error", got, reason), None
    shown = f"{batches[0].vf_coef * squared(batches[0]).mean():.4g}", f"{added[0]:.4g}"
    for wrong, error in _WRONG:
        if factor(error) is not None:
            return _failed(name, *shown, why, wrong)
    return Check(name, "fail", *shown, why, "not a known form of value loss"), None


def _entropy_term(loss: Loss, sign: int) -> tuple[Check, Mistake | None]:
    name, why = "entropy bonus", "more entropy must lower the loss, or the policy collapses"
    batch = loss.prepared(loss_batch())
    without = loss.policy_only(batch)._replace(ent_coef=batch.ent_coef)
    got = loss.value(without._replace(entropy=batch.entropy)) - loss.value(without)
    weighted = loss.subject.takes("ent_coef")
    wanted = -sign * (batch.ent_coef if weighted else 1.0) * float(batch.entropy.mean())
    shown = f"{wanted:.4g}", f"{got:.4g}"
    right = any(abs(got - size) <= 1e-3 * abs(size) for size in (wanted, wanted * len(batch.entropy)))
    if right or (not weighted and got * wanted > 0):
        return Check(name, "pass", *shown, why), None
    if got == 0:
        return Check(name, "absent", *shown, "entropy is taken but not used"), None
    if got * wanted < 0:
        return _failed(name, *shown, why, "entropy-sign")
    return Check(name, "fail", *shown, why, "a weight other than ent_coef"), None


def _failed(name: str, expected: str, got: str, why: str, wrong: str) -> tuple[Check, Mistake]:
    found = mistake(wrong)
    return Check(name, "fail", expected, got, why, found.says), found
