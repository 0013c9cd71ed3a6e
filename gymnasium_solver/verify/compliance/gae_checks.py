"""A GAE function against the reference: values, invariants, and the mistake behind what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gymnasium_solver.verify.compliance import gae_mistakes, reference
from gymnasium_solver.verify.compliance.functions import describe, to_numpy
from gymnasium_solver.verify.compliance.gae_subject import GaeSubject
from gymnasium_solver.verify.compliance.mistakes import Mistake, explain
from gymnasium_solver.verify.compliance.results import Check, judged
from gymnasium_solver.verify.compliance.samples import Rollout

Array = np.ndarray
TOLERANCE = 1e-4

SWAPPED = Mistake(
    "outputs-swapped",
    {"output": "returns"},
    "returns come out first and advantages second",
    "right if your caller unpacks them so; the usual order is advantages, returns",
    harmless=True,
)


def reference_gae(rollout: Rollout) -> Array:
    return reference.gae(
        rollout.rewards,
        rollout.values,
        rollout.next_values,
        rollout.terminated,
        rollout.done,
        rollout.gamma,
        rollout.gae_lambda,
    )


def is_right(subject: GaeSubject) -> bool:
    return all(_close(subject.estimate(rollout).advantages, reference_gae(rollout)) for rollout in subject.rollouts())


def check_gae(subject: GaeSubject) -> tuple[list[Check], tuple[Mistake, ...]]:
    mistakes = recognise(subject) or ()
    if any(mistake.name == "returns-for-advantages" for mistake in mistakes) and _second_is_right(subject):
        return [_reference_check(subject, "", swapped=True)], (SWAPPED,)
    if not subject.takes("next_values"):  # it cannot know the value of a final observation that has no row
        mistakes = tuple(
            replace(mistake, harmless=True) if mistake.name == "truncation-as-termination" else mistake
            for mistake in mistakes
        )
    harmless = {step: done for m in mistakes if m.harmless for step, done in m.changes.items()}
    likely = "; ".join(mistake.says for mistake in mistakes if not mistake.harmless)
    return list(_checks(subject, harmless, likely)), mistakes


def recognise(subject: GaeSubject) -> tuple[Mistake, ...] | None:
    rollouts = subject.rollouts()
    seen = [subject.estimate(rollout).advantages for rollout in rollouts]

    def same(steps: dict[str, str]) -> bool:
        return all(_close(got, _expected(steps, rollout, subject)) for got, rollout in zip(seen, rollouts, strict=True))

    return explain(gae_mistakes.MISTAKES, same)


def _expected(steps: dict[str, str], rollout: Rollout, subject: GaeSubject) -> Array:
    """A function of one environment normalises each by itself."""
    if not subject.layout.single:
        return gae_mistakes.advantages(steps, rollout)
    columns = [gae_mistakes.advantages(steps, rollout.env(index)) for index in range(rollout.rewards.shape[1])]
    return np.concatenate(columns, axis=1)


def _second_is_right(subject: GaeSubject) -> bool:
    estimates = [(subject.estimate(rollout).returns, reference_gae(rollout)) for rollout in subject.rollouts()]
    return all(returns is not None and _close(returns, wanted) for returns, wanted in estimates)


def _close(got: Array, wanted: Array) -> bool:
    return got.shape == wanted.shape and bool(np.abs(got - wanted).max() <= TOLERANCE * (1 + np.abs(wanted).max()))


def _reference_check(subject: GaeSubject, likely: str, swapped: bool = False) -> Check:
    worst = 0.0
    for rollout in subject.rollouts():
        estimate = subject.estimate(rollout)
        got = estimate.returns if swapped else estimate.advantages
        worst = max(worst, float(np.abs(got - reference_gae(rollout)).max()))
    return judged(
        "advantages, endings in the middle and at the end",
        worst <= 10 * TOLERANCE,
        f"error up to {10 * TOLERANCE:.0e}",
        f"error {worst:.1e}",
        "the estimate itself",
        likely or "no single known mistake gives these numbers",
    )


def _checks(subject: GaeSubject, harmless: dict[str, str], likely: str) -> Iterator[Check]:
    base = subject.rollouts()[0]
    if subject.layout.time_axis == 1:
        why = "right if your arrays are [environments, time]; with [time, environments] it mixes environments"
        yield Check("time runs along the first axis", "different", "[T, N]", subject.layout.name, why)
    if harmless:
        error = max(
            float(np.abs(subject.estimate(r).advantages - _expected(harmless, r, subject)).max())
            for r in subject.rollouts()
        )
        name, expected = "advantages, but for another convention", f"error up to {10 * TOLERANCE:.0e}"
        why = "the reference with the convention named below"
        yield judged(name, error <= 10 * TOLERANCE, expected, f"error {error:.1e}", why, likely)
        return
    yield _reference_check(subject, likely)

    def numbers(name: str, rollout: Rollout, wanted: Array, why: str, rows: Any = slice(None)) -> Check:
        try:
            got = subject.estimate(rollout).advantages
        except Exception as raised:  # anything may happen in someone else's function
            return Check(name, "fail", "numbers", describe(raised), why, likely)
        error = float(np.abs(got - wanted)[rows].max())
        holds = error <= TOLERANCE * (1 + float(np.abs(wanted).max()))
        return judged(name, holds, f"error up to {TOLERANCE:.0e}", f"error {error:.1e}", why, likely)

    one_step = reference.temporal_difference(base.rewards, base.values, base.next_values, base.terminated, base.gamma)
    yield numbers("lambda 0 is the one-step error", replace(base, gae_lambda=0.0), one_step, "one end of the range")
    sampled = reference.monte_carlo(base.rewards, base.next_values, base.terminated, base.done, base.gamma)
    why = "the other end of the range"
    yield numbers("lambda 1 is the return minus the value", replace(base, gae_lambda=1.0), sampled - base.values, why)
    yield from _endings(numbers, subject, base)
    yield from _outputs(subject, base, likely)


def _endings(numbers: Callable[..., Check], subject: GaeSubject, base: Rollout) -> Iterator[Check]:
    def short(steps: int, terminated: int | None, truncated: int | None = None) -> Rollout:
        """The first rows of two environments; in the first of them one row ends."""
        ends: Any = {"terminated": np.zeros((steps, 2)), "truncated": np.zeros((steps, 2))}
        for name, row in (("terminated", terminated), ("truncated", truncated)):
            if row is not None:
                ends[name][row, 0] = 1
        rows: Any = {name: getattr(base, name)[:steps, :2].copy() for name in ("rewards", "values", "next_values")}
        rows["next_values"][-1] += 10  # what must not be seen from a terminated row, and must from the others
        return replace(base, **rows, **ends)

    last = short(3, 2)
    yield numbers("a terminated row does not bootstrap", last, reference_gae(last), "else values never settle", (2, 0))
    open_end = short(3, None)
    why = "else the end of a rollout looks like the end of an episode"
    yield numbers("the last row bootstraps from the value after it", open_end, reference_gae(open_end), why, 2)
    cut = short(3, 1)
    why = "else what happens in one episode is credited to the one before"
    yield numbers("an ending cuts the trace", cut, reference_gae(cut), why, (slice(0, 2), 0))
    if subject.knows_truncation:
        limit = short(3, None, 2)
        why = "a time limit is not the end of the world (Pardo et al. 2018)"
        yield numbers("a truncated row bootstraps", limit, reference_gae(limit), why, (2, 0))
    else:
        why = (
            "matters where time limits cut episodes: pass terminated, or add gamma · V(final observation) to the last "
            "reward (Pardo et al. 2018; on Pendulum the fault benchmark found it harmless)"
        )
        yield Check("a truncated row bootstraps", "absent", "told apart", "endings of one kind only", why)


def _outputs(subject: GaeSubject, base: Rollout, likely: str) -> Iterator[Check]:
    estimate = subject.estimate(base)
    if estimate.returns is not None:
        wanted = reference_gae(base) + base.values
        error = float(np.abs(estimate.returns - wanted).max())
        sampled = reference.monte_carlo(base.rewards, base.next_values, base.terminated, base.done, base.gamma)
        name, expected = "returns are advantages + values", f"error up to {10 * TOLERANCE:.0e}"
        if error > TOLERANCE and _close(estimate.returns, sampled):
            why = "Monte-Carlo returns as targets of the critic: without bias, with more variance"
            yield Check(name, "different", expected, "discounted sums of rewards", why)
        else:
            why = "targets of the critic"
            yield judged(
                name, error <= 10 * TOLERANCE, expected, f"error {error:.1e}", why, likely or "added otherwise"
            )
    yield _inputs_stay(subject, base)


def _inputs_stay(subject: GaeSubject, base: Rollout) -> Check:
    called, names = subject.subject, subject.subject.parameters
    given = subject.arguments(base.env(0) if subject.layout.single else base)
    passed = {ours: called.backend.array(x) if isinstance(x, np.ndarray) else x for ours, x in given.items()}
    replace(called, backend=called.backend._replace(array=lambda x: x))(passed)  # the arrays themselves, not copies
    changed = [names[ours] for ours in names if not np.allclose(to_numpy(passed[ours]), to_numpy(given[ours]))]
    got = f"changes {', '.join(changed)}" if changed else "unchanged"
    why = "a caller that uses them again gets other numbers"
    return judged("inputs stay as they were", not changed, "unchanged", got, why, otherwise="different")
