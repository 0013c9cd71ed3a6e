"""A loss function against the reference: its policy's part, by values, gradients and invariants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance.formulas import LOSS_MISTAKES, OBJECTIVE, surrogate, surrogate_gradient
from gymnasium_solver.verify.compliance.functions import Backend, Function, Subject, settle
from gymnasium_solver.verify.compliance.mistakes import Changes, Mistake, changes_of, explain, mistake
from gymnasium_solver.verify.compliance.report import Check, Status, bug_behind, close, compare
from gymnasium_solver.verify.compliance.samples import LossBatch, loss_batch, loss_batches

Array = np.ndarray
_LOSS_KEYS = ("loss", "total_loss", "total", "policy_loss", "pg_loss", "actor_loss", "objective")


class Loss(NamedTuple):
    """A number and its gradient for a batch."""

    subject: Subject
    entropy_is_mean: bool  # it wants one number, not one per row

    @property
    def makes_advantages(self) -> bool:
        """It subtracts values from returns itself."""
        return not self.subject.takes("advantages")

    def prepared(self, batch: LossBatch) -> LossBatch:
        return batch._replace(returns=batch.values + batch.advantages) if self.makes_advantages else batch

    def policy_only(self, batch: LossBatch) -> LossBatch:
        """Value loss and entropy bonus add nothing: by their weights or, where those are fixed, by themselves."""
        quiet = self.prepared(batch)._replace(vf_coef=0.0, ent_coef=0.0, entropy=np.zeros_like(batch.entropy))
        return quiet if self.makes_advantages else quiet._replace(values=batch.returns, old_values=batch.returns)

    def output(self, batch: LossBatch, live: Mapping[str, Any] | None = None) -> Any:
        given: dict[str, Any] = {**batch._asdict(), **(live or {})}
        if self.entropy_is_mean:
            given["entropy"] = np.array(batch.entropy.mean())
        if self.subject.takes("ratio") or self.subject.takes("log_ratio"):
            log_ratio = self.subject.native(given["log_prob"]) - self.subject.native(given["old_log_prob"])
            given |= {"log_ratio": log_ratio, "ratio": self.subject.backend.exp(log_ratio)}
        return self.subject(given)

    def value(self, batch: LossBatch) -> float:
        return float(_scalar(self.output(batch)))

    def gradient(self, batch: LossBatch, by: str = "log_prob") -> Array:
        return self.subject.backend.gradient(lambda x: _scalar(self.output(batch, {by: x})), getattr(batch, by))

    def reported(self, batch: LossBatch) -> dict[str, float]:
        """The numbers that it returns under a name."""
        output = self.output(self.prepared(batch))
        parts = [part for part in (output if isinstance(output, tuple) else (output,)) if isinstance(part, Mapping)]
        return {str(name): float(x) for part in parts for name, x in part.items() if np.size(x) == 1}


def _scalar(output: Any) -> Any:
    """The loss itself: a number, the mean of one per row, the first of a tuple, or the entry of a dict."""
    if isinstance(output, Mapping):
        found = [output[key] for key in _LOSS_KEYS if key in output]
        if not found:
            keys = ", ".join(map(str, output))
            raise ConfigError(f"validate: it returns a dict without {' or '.join(_LOSS_KEYS)}: {keys}")
        return _scalar(found[0])
    if isinstance(output, (tuple, list)):
        return _scalar(output[0])
    output = getattr(output, "loss", output)
    return output.mean() if getattr(output, "ndim", 0) else output


def settle_loss(function: Function, parameters: Mapping[str, str], framework: str | None) -> Loss:
    if "advantages" not in parameters and not {"values", "returns", "vf_coef"} <= set(parameters):
        raise ConfigError("validate: a loss without advantages must take values, returns and vf_coef")
    if "values" in parameters and "returns" not in parameters:
        raise ConfigError("validate: it takes values but no returns; name the parameter with --map returns=THEIRS")

    def ways(backend: Backend) -> list[tuple[str, Loss]]:
        return [("", Loss(Subject(function, parameters, backend), is_mean)) for is_mean in (False, True)]

    return settle(function, framework, ways, lambda loss: loss.value(loss_batch()) is not None)


def check_policy(loss: Loss, maximize: bool) -> tuple[list[Check], tuple[Mistake, ...]]:
    """`maximize`: the function is meant to return the objective."""
    batches, tolerance = [loss.policy_only(batch) for batch in loss_batches()], loss.subject.backend.tolerance
    seen = [(loss.value(batch), loss.gradient(batch)) for batch in batches]

    def same(changes: Changes) -> bool:
        pairs = list(zip(seen, batches, strict=True))
        return all(close(value, surrogate(changes, batch), tolerance) for (value, _), batch in pairs) and all(
            close(gradient, surrogate_gradient(changes, batch), tolerance) for (_, gradient), batch in pairs
        )

    recognised = explain(LOSS_MISTAKES, same)
    mistakes = tuple(found for found in recognised or () if found.name != "objective")
    conventions = changes_of([found for found in mistakes if found.harmless]) | (OBJECTIVE if maximize else {})
    if recognised is not None and (mistakes != recognised) != maximize:
        mistakes = (mistake("loss-sign"), *mistakes)
    else:
        mistakes = recognised or ()
    return list(_checks(loss, batches, conventions, bug_behind(mistakes))), mistakes


def _checks(loss: Loss, batches: list[LossBatch], conventions: Changes, bug: str) -> Iterator[Check]:
    first, second, _, start = batches
    advantages = conventions["advantage"](first.advantages) if "advantage" in conventions else first.advantages
    moved = np.sign(advantages) * (first.ratio - 1)  # in the direction that the advantage asks for

    def numbers(name: str, batch: LossBatch, rows: Any, why: str, hint: str) -> Check:
        """`rows`: of the gradient; None for the loss itself."""
        got = (lambda: loss.value(batch)) if rows is None else (lambda: loss.gradient(batch)[rows])
        wanted = surrogate(conventions, batch) if rows is None else surrogate_gradient(conventions, batch)[rows]
        return compare(name, got, wanted, loss.subject.backend.tolerance, why, bug or hint)

    why, hint = (
        "the first minibatch of every update is like this",
        "sign, reduction, or a ratio other than exp(new - old)",
    )
    yield numbers("loss at ratio 1 is -mean(advantage)", start, None, why, hint)
    why, hint = "PPO starts every update as the plain policy gradient", "log_prob is detached, or the sign is flipped"
    yield numbers("gradient at ratio 1 is the policy gradient", start, ..., why, hint)
    for batch in (first, second):
        name = f"loss, ratios on both sides of the clip range {batch.clip_range:g}"
        yield numbers(name, batch, None, "the objective itself", "the terms of the surrogate are combined wrongly")
    yield numbers("gradient of every row", first, ..., "what the optimiser gets", "detached or clipped wrongly")
    why = "this is what limits the step: advantage > 0 beyond 1 + eps, advantage < 0 below 1 - eps"
    rows = moved > first.clip_range
    yield numbers("no gradient where the ratio went far enough", first, rows, why, "nothing is clipped there")
    why, hint = "the minimum keeps the way back open; clipping alone closes it", "the minimum is missing or a maximum"
    yield numbers("a gradient where the ratio went the wrong way", first, moved < -first.clip_range, why, hint)
    yield _advantages_are_constants(loss, first)
    if loss.subject.takes("advantages"):
        yield _mixed_shapes(loss, first, surrogate(conventions, first))
    if "advantage" in conventions:
        equal = loss.value(first._replace(advantages=np.ones_like(first.advantages)))
        why, hint = (
            "equal advantages do occur; NaN would end the training",
            "divide by the deviation plus 1e-8",
        )
        status: Status = "pass" if np.isfinite(equal) else "fail"
        yield Check("equal advantages stay finite", status, "finite", f"{equal:.4g}", why, hint * (status == "fail"))
    yield from _reported(loss)


def _advantages_are_constants(loss: Loss, batch: LossBatch) -> Check:
    name, why = "advantages are constants", "a gradient through them would train the critic to please the policy"
    if not loss.subject.backend.detaches:
        return Check(name, "pass", "0", "no gradients in NumPy", why)
    size = float(np.abs(loss.gradient(batch, "values" if loss.makes_advantages else "advantages")).max())
    if size == 0:
        return Check(name, "pass", "0", "0", why)
    if loss.makes_advantages:
        return Check(name, "fail", "0", f"{size:.4g}", why, "gradient flows through the advantages: detach them")
    why = "not detached inside: harmless as long as they are passed detached (no graph, or stop_gradient)"
    return Check(name, "different", "0", f"{size:.4g}", why)


def _mixed_shapes(loss: Loss, batch: LossBatch, wanted: float) -> Check:
    name, why = "advantages of shape [B, 1]", "a critic's [B, 1] is easily passed by mistake"
    try:
        got = loss.value(batch._replace(advantages=batch.advantages[:, None]))
    except Exception as error:  # a refusal is what one hopes for
        return Check(name, "pass", "refused, or the same loss", type(error).__name__, why)
    why = "silently B × B rows if a caller mixes [B] and [B, 1]; an assertion on the shapes costs nothing"
    return compare(name, got, wanted, 1e-3, why, otherwise="different")


def _reported(loss: Loss) -> Iterator[Check]:
    batch = loss_batch()
    ratio = batch.ratio
    k3, clipped = (ratio - 1 - np.log(ratio)).mean(), (np.abs(ratio - 1) > batch.clip_range).mean()
    known = {
        "kl": (k3, "k3 is never negative; k1 = mean(old - new) may be, k2 = half the mean square is biased"),
        "clipfrac": (clipped, "share of ratios outside the clip range"),
    }
    for name, got in loss.reported(batch).items():
        for word, (wanted, why) in known.items():
            if word in name.lower().replace("_", ""):
                yield compare(f"reported {name}", got, wanted, 1e-3, why, otherwise="different")
