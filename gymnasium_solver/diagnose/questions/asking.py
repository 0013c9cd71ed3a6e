"""What a question is, what an answer is, and the ways in which many questions are asked: of a metric towards the end of
the run, at any time in it, or as growth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.readings import Readings


@dataclass(frozen=True)
class Answer:
    holds: bool
    value: float | None
    expected: str
    step: float | None = None  # at which it starts to hold, where that is known

    def __bool__(self) -> bool:
        return bool(self.holds)


Test = Callable[[Readings, Performance], Answer | None]


@dataclass(frozen=True)
class Evidence:
    name: str
    text: str
    metric: str
    test: Test
    kind: Literal["metrics", "config", "checkpoint", "log"] = "metrics"
    invariant: bool = False  # critical on its own: no sound run breaks it


def above(value: float | None, bound: float, step: float | None = None) -> Answer | None:
    return None if value is None else Answer(value > bound, value, f"at most {bound:g}", step)


def below(value: float | None, bound: float, step: float | None = None) -> Answer | None:
    return None if value is None else Answer(value < bound, value, f"at least {bound:g}", step)


def late_above(name: str, text: str, metric: str, bound: float, invariant: bool = False) -> Evidence:
    return Evidence(name, text, metric, lambda r, _: above(r.late(metric), bound), invariant=invariant)


def late_below(name: str, text: str, metric: str, bound: float) -> Evidence:
    return Evidence(name, text, metric, lambda r, _: below(r.late(metric), bound))


def ever_above(name: str, text: str, metric: str, bound: float) -> Evidence:
    def test(r: Readings, _: Performance) -> Answer | None:
        curve = r.series(metric)
        if curve is None:
            return None
        at = np.flatnonzero(curve.values > bound)
        return Answer(bool(at.size), curve.high, f"at most {bound:g}", float(curve.steps[at[0]]) if at.size else None)

    return Evidence(name, text, metric, test)


def grows(name: str, text: str, metric: str, factor: float) -> Evidence:
    def test(r: Readings, _: Performance) -> Answer | None:
        curve = r.series(metric)
        if curve is None or len(curve.values) < 6:
            return None
        earlier = abs(float(np.median(curve.part(0.1, 0.4))))
        return Answer(
            abs(curve.late) > factor * max(earlier, 1e-9), curve.late, f"at most {factor:g} times {earlier:.3g}"
        )

    return Evidence(name, text, metric, test)
