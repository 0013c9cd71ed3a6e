"""A loss function against the reference: values, gradients, invariants, and the mistake behind what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gymnasium_solver.verify.compliance import loss_mistakes, loss_terms, reference
from gymnasium_solver.verify.compliance.loss_subject import LossSubject
from gymnasium_solver.verify.compliance.mistakes import SIGN_MEASURED, Mistake, explain
from gymnasium_solver.verify.compliance.results import Check, judged
from gymnasium_solver.verify.compliance.samples import LossBatch, at_ratio_one, loss_batch, loss_batches

Array = np.ndarray

SIGN = Mistake(
    "loss-sign",
    {"sign": "objective"},
    "the sign is flipped: descending it makes good actions less likely",
    "a loss is the negative mean of the minimum; if an objective to be maximised is meant, say so by --maximize",
    measured=SIGN_MEASURED,
)


@dataclass(frozen=True)
class Conventions:
    """Harmless choices that were recognised: every expectation follows them."""

    sign: int = 1  # -1: to be maximised
    sums: bool = False
    ddof: int | None = None  # of the deviation that advantages are divided by inside; None: they are taken as given

    def expected(self, batch: LossBatch) -> tuple[float, Array]:
        """Value and gradient of the policy's part."""
        advantages = batch.advantages
        if self.ddof is not None:
            advantages = reference.standardised(advantages, self.ddof)
        scale = self.sign * (len(advantages) if self.sums else 1)
        arguments = (batch.log_prob, batch.old_log_prob, advantages, batch.clip_range)
        return scale * reference.surrogate_loss(*arguments), scale * reference.surrogate_gradient(*arguments)


def conventions_of(mistakes: tuple[Mistake, ...]) -> Conventions:
    steps = {step: done for mistake in mistakes for step, done in mistake.changes.items()}
    ddof = {"standardised": 0, "standardised, ddof 1": 1}.get(steps.get("advantage", ""))
    return Conventions(-1 if steps.get("sign") == "objective" else 1, steps.get("reduce") == "sum", ddof)


def check_loss(subject: LossSubject, maximize: bool) -> tuple[list[Check], tuple[Mistake, ...]]:
    """`maximize`: the function is meant to return the objective."""
    mistakes = recognise(subject) or ()
    conventions, wanted = conventions_of(mistakes), -1 if maximize else 1
    if conventions.sign != wanted:
        mistakes = (SIGN, *(mistake for mistake in mistakes if mistake.name != "objective"))
        conventions = replace(conventions, sign=wanted)
    checks = list(_of_policy(subject, conventions, _likely(mistakes)))
    terms, term_mistakes = loss_terms.check_terms(subject, wanted)
    return checks + terms, (*mistakes, *term_mistakes)


def recognise(subject: LossSubject) -> tuple[Mistake, ...] | None:
    """The computation that puts out the same values and gradients on every batch."""
    batches = [subject.policy_only(batch) for batch in loss_batches()]
    seen = [(subject.value(batch), subject.gradient(batch)) for batch in batches]
    tolerance = subject.backend.tolerance

    def same(steps: dict[str, str]) -> bool:
        values = (
            _close(value, loss_mistakes.surrogate(steps, batch, batch.log_prob), tolerance)
            for (value, _), batch in zip(seen, batches, strict=True)
        )
        return all(values) and all(
            _close(gradient, loss_mistakes.surrogate_gradient(steps, batch), tolerance)
            for (_, gradient), batch in zip(seen, batches, strict=True)
        )

    return explain(loss_mistakes.MISTAKES, same)


def _likely(mistakes: tuple[Mistake, ...]) -> str:
    return "; ".join(mistake.says for mistake in mistakes if not mistake.harmless)


def _close(got: Array | float, wanted: Array | float, tolerance: float) -> bool:
    """To a share of the largest number wanted, because gradients of single rows may be zero."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    return got.shape == wanted.shape and bool(np.abs(got - wanted).max() <= tolerance * (1 + np.abs(wanted).max()))


def _of_policy(subject: LossSubject, conventions: Conventions, likely: str) -> Iterator[Check]:
    tolerance = subject.backend.tolerance
    plain, first = subject.policy_only(loss_batch()), subject.policy_only(at_ratio_one())

    def value_check(name: str, batch: LossBatch, why: str, hint: str) -> Check:
        got, (wanted, _) = subject.value(batch), conventions.expected(batch)
        return judged(name, _close(got, wanted, tolerance), wanted, got, why, likely or hint)

    def gradient_check(
        name: str, batch: LossBatch, rows: Array, why: str, hint: str, wanted: Array | None = None
    ) -> Check:
        expected = conventions.expected(batch)[1] if wanted is None else wanted
        error = np.abs(subject.gradient(batch) - expected)[rows].max()
        bound = tolerance * (1 + np.abs(expected).max())
        return judged(name, bool(error <= bound), f"error up to {bound:.0e}", f"error {error:.1e}", why, likely or hint)

    everywhere = np.ones(len(plain.ratio), bool)
    yield value_check(
        "loss at ratio 1 is -mean(advantage)",
        first,
        "the first minibatch of every update looks so",
        "sign, reduction, or a ratio that is not exp(new - old)",
    )
    vanilla = conventions.expected(first)[1]
    yield gradient_check(
        "gradient at ratio 1 is the policy gradient",
        first,
        everywhere,
        "PPO starts every update as the plain policy gradient",
        "log_prob is detached, or the sign is flipped",
        vanilla,
    )
    for index, batch in enumerate(map(subject.policy_only, loss_batches()[:2])):
        name = f"loss, ratios on both sides of the clip range {batch.clip_range:g}"
        yield value_check(name, batch, "the objective itself", "the clipped surrogate is put together otherwise")
        if index == 0:
            yield gradient_check(
                "gradient of every row", batch, everywhere, "what the optimiser gets", "detached or clipped otherwise"
            )
    ratio, advantages, clip = plain.ratio, _signs(plain, conventions), plain.clip_range
    over = ((advantages > 0) & (ratio > 1 + clip)) | ((advantages < 0) & (ratio < 1 - clip))
    back = ((advantages < 0) & (ratio > 1 + clip)) | ((advantages > 0) & (ratio < 1 - clip))
    yield gradient_check(
        "no gradient where the ratio went far enough",
        plain,
        over,
        "this is what limits the step: advantage > 0 beyond 1 + eps, advantage < 0 below 1 - eps",
        "nothing is clipped there",
    )
    yield gradient_check(
        "a gradient where the ratio went the wrong way",
        plain,
        back,
        "the minimum keeps the way back open; clipping alone closes it",
        "the minimum is missing or a maximum",
    )
    yield _advantages_are_constants(subject, plain)
    if subject.takes("advantages"):
        yield _mixed_shapes(subject, plain, conventions)
    if conventions.ddof is not None:
        yield _equal_advantages(subject, plain)
    yield from loss_terms.check_reported(subject)


def _signs(batch: LossBatch, conventions: Conventions) -> Array:
    return batch.advantages if conventions.ddof is None else reference.standardised(batch.advantages, conventions.ddof)


def _advantages_are_constants(subject: LossSubject, batch: LossBatch) -> Check:
    name, why = "advantages are constants", "a gradient through them would train the critic to please the policy"
    if not subject.backend.detaches:
        return Check(name, "pass", "0", "no gradients in NumPy", why)
    if subject.makes_advantages:
        size = float(np.abs(subject.gradient(batch, "values")).max())
        hint = "gradient flows through the advantages: detach them"
        return judged(name, size == 0, 0, size, why, hint)
    size = float(np.abs(subject.gradient(batch, "advantages")).max())
    harmless = "not detached inside: harmless as long as they are passed detached (no graph, or stop_gradient)"
    return judged(name, size == 0, 0, size, why if size == 0 else harmless, otherwise="different")


def _mixed_shapes(subject: LossSubject, batch: LossBatch, conventions: Conventions) -> Check:
    name, wanted = "advantages of shape [B, 1]", conventions.expected(batch)[0]
    try:
        got = subject.value(replace(batch, advantages=batch.advantages[:, None]))
    except Exception as error:  # a refusal is what one hopes for
        return Check(
            name, "pass", "refused, or the same loss", type(error).__name__, "a critic's [B, 1] is easily passed on"
        )
    why = "silently B × B rows if a caller mixes [B] and [B, 1]; an assertion on the shapes costs nothing"
    return judged(name, _close(got, wanted, 1e-3), wanted, got, why, otherwise="different")


def _equal_advantages(subject: LossSubject, batch: LossBatch) -> Check:
    got = subject.value(replace(batch, advantages=np.ones_like(batch.advantages)))
    why = "a batch of equal advantages happens; NaN would end the training"
    hint = "divide by the deviation plus a small number such as 1e-8"
    return judged("equal advantages stay finite", bool(np.isfinite(got)), "finite", got, why, hint)
