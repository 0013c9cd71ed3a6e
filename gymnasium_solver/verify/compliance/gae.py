"""A GAE function against the reference: values and invariants, whatever shapes it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.verify.compliance.formulas import GAE_MISTAKES, advantages
from gymnasium_solver.verify.compliance.functions import Backend, Function, Subject, settle, to_numpy
from gymnasium_solver.verify.compliance.mistakes import Changes, Mistake, changes_of, explain, mistake
from gymnasium_solver.verify.compliance.report import (
    UNEXPLAINED,
    Check,
    Findings,
    as_checked,
    bug_behind,
    close,
    compare,
)
from gymnasium_solver.verify.compliance.samples import Rollout, rollouts

Array = np.ndarray
TOLERANCE = 1e-4
NONE: Changes = {}


class Layout(NamedTuple):
    name: str
    rows: Callable[[Array], Array]  # [T, N] → as the function takes it; also the way back
    last: Callable[[Array], Array]  # [N] → the value after the last row
    single: bool = False  # one environment per call


LAYOUTS = (
    Layout("[T, N]", lambda x: x, lambda x: x),
    Layout("[T, N], last value [1, N]", lambda x: x, lambda x: x[None]),
    Layout("[N, T]", lambda x: x.T, lambda x: x),
    Layout("[N, T], last value [N, 1]", lambda x: x.T, lambda x: x[:, None]),
    Layout("[T]", lambda x: x[:, 0], lambda x: x[0], True),
    Layout("[T], last value [1]", lambda x: x[:, 0], lambda x: x, True),
)
# Name, which row of the first environment ends, where to look, why.
ENDINGS: tuple[tuple[str, dict[str, int], Any, str], ...] = (
    ("a terminated row does not bootstrap", {"terminated": 2}, np.s_[2:, :1], "otherwise values never converge"),
    ("the last row bootstraps from the value after it", {}, np.s_[2:], "a rollout's end is not an episode's end"),
    ("an ending cuts the trace", {"terminated": 1}, np.s_[:2, :1], "otherwise credit leaks between episodes"),
    ("a truncated row bootstraps", {"truncated": 2}, np.s_[2:, :1], "a time limit is no ending (Pardo et al. 2018)"),
)


class Gae(NamedTuple):
    subject: Subject
    layout: Layout
    boolean: bool  # dones as booleans, not as 0.0 and 1.0

    @property
    def knows_truncation(self) -> bool:
        return sum(map(self.subject.takes, ("terminated", "truncated", "dones"))) >= 2

    def split(self, x: Rollout) -> list[Rollout]:
        """What goes into one call each."""
        envs = range(x.rewards.shape[1])
        return [x.part(slice(None), slice(i, i + 1)) for i in envs] if self.layout.single else [x]

    def estimate(self, x: Rollout) -> tuple[Array, Array | None]:
        """Advantages and, where they come out, returns. [T, N]"""
        parts = [self._outputs(self.subject(self.arguments(one)), one.rewards.shape) for one in self.split(x)]
        found = [np.concatenate(out, axis=1) for out in zip(*parts, strict=True)]
        return found[0], found[1] if len(found) > 1 else None

    def arguments(self, x: Rollout) -> dict[str, Any]:
        rows, last, takes = self.layout.rows, self.layout.last, self.subject.takes
        starts = np.concatenate([np.zeros_like(x.done[:1]), x.done[:-1]])
        # With the flag after the last row given apart, the others tell which rows begin an episode.
        dones = starts if takes("last_done") else x.done
        bare = not takes("last_value") and not takes("next_values")
        flags = {"dones": dones, "episode_starts": starts, "terminated": x.terminated, "truncated": x.truncated}
        kind = bool if self.boolean else float
        return {
            "rewards": rows(x.rewards),
            "values": rows(np.concatenate([x.values, x.next_values[-1:]]) if bare else x.values),
            "next_values": rows(x.next_values),
            "last_value": np.array(last(x.next_values[-1])),
            **{name: rows(flag.astype(kind)) for name, flag in flags.items()},
            "masks": rows(1 - dones),
            "last_done": np.array(last(x.done[-1].astype(kind))),
            "discounts": rows(x.gamma * (1 - x.done)),
            "gamma": x.gamma,
            "gae_lambda": x.gae_lambda,
        }

    def _outputs(self, output: Any, shape: tuple[int, ...]) -> list[Array]:
        if isinstance(output, Mapping):
            order = sorted(output, key=lambda name: str(name).lower())  # advantages before returns
            output = tuple(output[name] for name in order if str(name).lower().startswith(("adv", "ret")))
        elif not isinstance(output, tuple) and not (isinstance(output, list) and len(output) == 2 != shape[0]):
            output = (output,)
        wanted = self.layout.rows(np.zeros(shape)).shape
        arrays = [to_numpy(part) for part in output[:2] if part is not None]
        if not arrays:
            raise ValueError("it returns no advantages")
        for array in arrays:
            if array.shape != wanted:
                raise ValueError(f"it returns shape {array.shape} for rewards of shape {wanted}")
        return [array[:, None] if self.layout.single else self.layout.rows(array) for array in arrays]

    def expected(self, x: Rollout, changes: Changes = NONE) -> Array:
        """A function of one environment normalises each by itself."""
        return np.concatenate([advantages(changes, one) for one in self.split(x)], axis=1)

    def error(self, output: int = 0) -> float:
        """The largest over all rollouts, as a share of the largest number; infinite where nothing comes out."""
        worst = 0.0
        for x in rollouts(truncation=self.knows_truncation):
            got, wanted = self.estimate(x)[output], self.expected(x)
            worst = max(worst, np.inf if got is None else np.abs(got - wanted).max() / (1 + np.abs(wanted).max()))
        return float(worst)


def settle_gae(function: Function, parameters: Mapping[str, str], framework: str | None) -> Gae:
    def ways(backend: Backend) -> list[tuple[str, Gae]]:
        called = Subject(function, parameters, backend)
        return [(f" {layout.name}", Gae(called, layout, kind)) for kind in (False, True) for layout in LAYOUTS]

    return settle(function, framework, ways, lambda gae: gae.error() <= TOLERANCE)


def check_gae(gae: Gae) -> Findings:
    samples = rollouts(truncation=gae.knows_truncation)
    seen = [gae.estimate(x)[0] for x in samples]

    def same(changes: Changes) -> bool:
        return all(close(got, gae.expected(x, changes), TOLERANCE) for got, x in zip(seen, samples, strict=True))

    mistakes = explain(GAE_MISTAKES, same) or ()
    if any(found.name == "returns-for-advantages" for found in mistakes) and gae.error(output=1) <= TOLERANCE:
        mistakes = (mistake("outputs-swapped"),)
    if not gae.subject.takes("next_values"):  # it cannot know the value of a final observation that has no row
        mistakes = tuple(
            replace(found, harmless=True) if found.name == "truncation-as-termination" else found for found in mistakes
        )
    checks = list(_checks(gae, mistakes, bug_behind(mistakes) or UNEXPLAINED))
    return Findings(checks, mistakes, [as_checked(5, checks)])


def _checks(gae: Gae, mistakes: tuple[Mistake, ...], bug: str) -> Iterator[Check]:
    if gae.layout.name.startswith("[N, T]"):
        why = "right if your arrays are [environments, time]; with [time, environments] it mixes environments"
        yield Check("time runs along the first axis", "different", "[T, N]", gae.layout.name, why)
    samples = rollouts(truncation=gae.knows_truncation)
    base = samples[0]
    conventions = [found for found in mistakes if found.harmless]
    output = int(any(found.name == "outputs-swapped" for found in conventions))

    def numbers(name: str, xs: list[Rollout], why: str, rows: Any = ...) -> Check:
        def got() -> Array:
            return np.concatenate([np.ravel(gae.estimate(x)[output][rows]) for x in xs])  # type: ignore[index]

        wanted = np.concatenate([np.ravel(gae.expected(x, changes_of(conventions))[rows]) for x in xs])
        return compare(name, got, wanted, TOLERANCE, why, bug)

    if conventions:
        yield numbers("advantages, apart from the convention", samples, "the reference with the convention above")
        return
    yield numbers("advantages, endings in the middle and at the end", samples, "the estimate itself")
    for value, name in ((0.0, "lambda 0 is the one-step error"), (1.0, "lambda 1 is the return minus the value")):
        yield numbers(name, [base._replace(gae_lambda=value)], "one end of the range")

    for name, ends, rows, why in ENDINGS[: None if gae.knows_truncation else -1]:
        x = base.part(slice(3), slice(2))
        x.terminated[:], x.truncated[:] = 0, 0
        for flags, row in ends.items():
            getattr(x, flags)[row, 0] = 1
        x.next_values[-1] += 10  # what must not be seen from a terminated row, and must from the others
        yield numbers(name, [x], why, rows)
    if not gae.knows_truncation:
        why = (
            "matters where time limits cut episodes: pass terminated, or add gamma · V(final observation) to the last "
            "reward (Pardo et al. 2018; on Pendulum the fault benchmark found it harmless)"
        )
        yield Check("a truncated row bootstraps", "absent", "two kinds of ending", "only one", why)
    yield from _outputs(gae, base, bug)


def _outputs(gae: Gae, base: Rollout, bug: str) -> Iterator[Check]:
    returns = gae.estimate(base)[1]
    if returns is not None:
        name, sampled = "returns are advantages + values", gae.expected(base._replace(gae_lambda=1.0)) + base.values
        wanted = gae.expected(base) + base.values
        if close(returns, sampled, TOLERANCE) and not close(returns, wanted, TOLERANCE):
            why = "Monte-Carlo returns as targets of the critic: no bias, but more variance"
            yield Check(name, "different", "advantages + values", "discounted sums of rewards", why)
        else:
            yield compare(name, returns, wanted, TOLERANCE, "targets of the critic", bug)
    called, given = gae.subject, gae.arguments(gae.split(base)[0])
    passed = {ours: called.native(value) for ours, value in given.items()}
    called._replace(backend=called.backend._replace(array=lambda x: x))(passed)  # the arrays themselves, not copies
    same = {ours: np.allclose(to_numpy(passed[ours]), to_numpy(given[ours])) for ours in called.parameters}
    changed = [theirs for ours, theirs in called.parameters.items() if not same[ours]]
    got, why = f"modifies {', '.join(changed)}" if changed else "unchanged", "a caller may reuse them"
    yield Check("inputs are not modified", "different" if changed else "pass", "unchanged", got, why)
