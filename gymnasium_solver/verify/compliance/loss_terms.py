"""The other terms of a PPO loss: value error and entropy bonus; and the numbers a loss function reports beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gymnasium_solver.verify.compliance import reference
from gymnasium_solver.verify.compliance.loss_subject import LossSubject
from gymnasium_solver.verify.compliance.mistakes import Mistake
from gymnasium_solver.verify.compliance.results import Check, judged
from gymnasium_solver.verify.compliance.samples import LossBatch, loss_batches

Array = np.ndarray
Error = Callable[[LossBatch], float]

PLAIN = "mean squared error"
CLIPPED = "clipped to the old value"


def _held(batch: LossBatch, clip_range: float) -> Array:
    return batch.old_values + np.clip(batch.values - batch.old_values, -clip_range, clip_range)


def _huber(error: Array) -> float:
    size = np.abs(error)
    return float(np.where(size < 1, 0.5 * error**2, size - 0.5).mean())


RIGHT: dict[str, Error] = {
    PLAIN: lambda b: reference.value_loss(b.values, b.returns),
    f"{CLIPPED}, by clip_range_vf": lambda b: reference.clipped_value_loss(
        b.values, b.old_values, b.returns, b.clip_range_vf
    ),
    f"{CLIPPED}, by clip_range": lambda b: reference.clipped_value_loss(
        b.values, b.old_values, b.returns, b.clip_range
    ),
    "Huber loss": lambda b: _huber(b.values - b.returns),
}
WRONG: dict[str, tuple[Error, str, str]] = {
    "value-loss-broadcast": (
        lambda b: float(np.square(b.values[:, None] - b.returns[None, :]).mean()),
        "[B] against [B, 1] in the value loss: every value is compared with every return",
        "give both the same shape, and assert it",
    ),
    "value-loss-not-squared": (
        lambda b: float((b.values - b.returns).mean()),
        "the value error is not squared: it has no minimum",
        "mean((values - returns) ** 2)",
    ),
    "value-target-is-advantage": (
        lambda b: reference.value_loss(b.values, b.advantages),
        "values are drawn to the advantages, not to the returns",
        "the target is returns = advantages + old values",
    ),
    "value-clip-min": (
        lambda b: float(np.minimum((b.values - b.returns) ** 2, (_held(b, b.clip_range) - b.returns) ** 2).mean()),
        "the smaller of plain and clipped value error is taken",
        "take the larger (maximum)",
    ),
    "value-clip-min-vf": (
        lambda b: float(np.minimum((b.values - b.returns) ** 2, (_held(b, b.clip_range_vf) - b.returns) ** 2).mean()),
        "the smaller of plain and clipped value error is taken",
        "take the larger (maximum)",
    ),
    "value-clip-alone": (
        lambda b: reference.value_loss(_held(b, b.clip_range), b.returns),
        "only the clipped value error is taken: a value that moved too far gets no gradient back",
        "take the larger of plain and clipped error",
    ),
}


def check_terms(subject: LossSubject, sign: int) -> tuple[list[Check], tuple[Mistake, ...]]:
    """`sign`: of the policy's part, -1 where all of it is to be maximised."""
    checks: list[Check] = []
    mistakes: list[Mistake] = []
    if subject.takes("values", "returns"):
        check, mistake = _value_term(subject, sign)
        checks.append(check)
        mistakes += [mistake] if mistake else []
    if subject.takes("entropy"):
        check, mistake = _entropy_term(subject, sign)
        checks.append(check)
        mistakes += [mistake] if mistake else []
    return checks, tuple(mistakes)


def added_by_values(subject: LossSubject, batch: LossBatch) -> float:
    """What the value term adds to the loss."""
    prepared = subject.prepared(batch)
    quiet = replace(prepared, entropy=np.zeros_like(batch.entropy), ent_coef=0.0)
    return subject.value(quiet) - subject.value(subject.policy_only(batch))


def _value_term(subject: LossSubject, sign: int) -> tuple[Check, Mistake | None]:
    batches = [subject.prepared(batch) for batch in loss_batches()[:2]]
    added = [added_by_values(subject, batch) for batch in batches]
    name, why = "value loss", "the critic's own error"
    for label, error in RIGHT.items():
        weight = _weight(subject, batches, added, error)
        if weight is None:
            continue
        got = f"{label}, weight {weight:+.3g}" + (" × vf_coef" if subject.takes("vf_coef") else "")
        if weight * sign < 0:
            says = "the value loss has the wrong sign: the critic is driven away from the returns"
            mistake = Mistake("value-loss-sign", {}, says, "add it to what is minimised")
            return Check(name, "fail", "to be minimised", got, why, says), mistake
        if subject.backend.detaches and not subject.gradient(batches[0], "values").any():
            says = "no gradient reaches values: they are detached, so the critic never learns"
            return Check(name, "fail", "a gradient", "none", why, says), Mistake(
                "values-detached", {}, says, "detach old_values and returns, not values"
            )
        usual = label == PLAIN and abs(abs(weight) - 1) < 1e-3
        reason = why if usual else f"{why}; the factor and the clip are conventions, see vf_coef"
        expected = "vf_coef × mean squared error"
        return Check(name, "pass" if label != "Huber loss" and usual else "different", expected, got, reason), None
    for mistake_name, (error, says, remedy) in WRONG.items():
        if _weight(subject, batches, added, error) is not None:
            shown = f"{added[0]:.4g}"
            expected = f"{batches[0].vf_coef * RIGHT[PLAIN](batches[0]):.4g}"
            mistake = Mistake(mistake_name.removesuffix("-vf"), {}, says, remedy)
            return Check(name, "fail", expected, shown, why, says), mistake
    wanted = batches[0].vf_coef * RIGHT[PLAIN](batches[0])
    return judged(name, False, wanted, added[0], why, "no known form of a value loss"), None


def _weight(subject: LossSubject, batches: list[LossBatch], added: list[float], error: Error) -> float | None:
    """The factor between what was added and this error, beyond vf_coef; None if it is not the same in both batches."""
    coefficients = [batch.vf_coef if subject.takes("vf_coef") else 1.0 for batch in batches]
    for rows in ([1, 1], [len(batch.values) for batch in batches]):  # a mean, or a sum
        weights = [
            got / (c * n * error(batch)) for got, c, n, batch in zip(added, coefficients, rows, batches, strict=True)
        ]
        if abs(weights[0]) > 1e-6 and abs(weights[0] - weights[1]) <= 2e-3 * abs(weights[0]):
            return weights[0]
    return None


def _entropy_term(subject: LossSubject, sign: int) -> tuple[Check, Mistake | None]:
    batch = subject.prepared(loss_batches()[0])
    without = replace(subject.policy_only(batch), ent_coef=batch.ent_coef, entropy=np.zeros_like(batch.entropy))
    got = subject.value(replace(without, entropy=batch.entropy)) - subject.value(without)
    coefficient = batch.ent_coef if subject.takes("ent_coef") else 1.0
    wanted = -sign * coefficient * float(batch.entropy.mean())
    name, why = "entropy bonus", "more entropy has to lower the loss, or the policy collapses"
    sizes = (wanted, wanted * len(batch.entropy))
    right = any(abs(got - size) <= 1e-3 * abs(size) for size in sizes)
    if right or (not subject.takes("ent_coef") and got * wanted > 0):
        return Check(name, "pass", f"{wanted:.4g}", f"{got:.4g}", why), None
    if got == 0:
        return Check(name, "absent", f"{wanted:.4g}", "0", "entropy is taken but not used"), None
    if got * wanted < 0:
        says = "the entropy bonus has the wrong sign: the policy is rewarded for becoming deterministic"
        remedy = "loss = policy_loss + vf_coef * value_loss - ent_coef * entropy"
        mistake = Mistake("entropy-sign", {}, says, remedy)
        return Check(name, "fail", f"{wanted:.4g}", f"{got:.4g}", why, says), mistake
    return judged(name, False, wanted, got, why, "another weight than ent_coef"), None


def check_reported(subject: LossSubject) -> Iterator[Check]:
    """Diagnostics that a function returns under a name."""
    batch = subject.prepared(loss_batches()[0])
    for name, value in subject.named_numbers(batch).items():
        plain = name.lower().replace("_", "")
        if "kl" in plain:
            wanted = reference.kl_k3(batch.log_ratio)
            why = "k3 is never negative; k1 = mean(old - new) may be, k2 = half the mean square is biased"
            yield judged(f"reported {name}", abs(value - wanted) < 1e-3, wanted, value, why, otherwise="different")
        elif "clipfrac" in plain:
            wanted = reference.clip_fraction(batch.log_ratio, batch.clip_range)
            why = "share of ratios outside the clip range"
            yield judged(f"reported {name}", abs(value - wanted) < 1e-3, wanted, value, why, otherwise="different")
