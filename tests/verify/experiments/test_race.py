"""The race and its test: who wins, how often nothing is taken for something, and when nothing is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from gymnasium_solver.verify.experiments.race import BASELINE, Entry, Measure, Rules, confirm, race
from gymnasium_solver.verify.objective import Score, as_numbers, difference, middle, score, standing
from gymnasium_solver.verify.trials import Trained

CANDIDATES = [f"candidate {i}" for i in range(6)]
FRESH = range(2000, 2010)


def drawn_by(draw: Callable[[str, np.random.Generator], Score], seed: int) -> Measure:
    rng = np.random.default_rng(seed)
    return lambda entries: {entry: draw(entry[0], rng) for entry in entries}


def optimized(measure: Measure, rules: Rules) -> str:
    """The decisions of an optimisation, without the trainings."""
    standings = race([BASELINE, *CANDIDATES], measure, (1000, 1001, 1002))
    contenders = [label for label in standings.ranking() if label != BASELINE][: rules.attempts]
    for label in contenders:
        if confirm(label, measure, FRESH, rules).verdict == "better":
            return label
    return BASELINE


def same(_: str, rng: np.random.Generator) -> Score:
    return (-float(rng.normal(10, 0.5)), 0.0)


def sometimes_never(_: str, rng: np.random.Generator) -> Score:
    return (-float(rng.normal(10, 0.5)), 1.0) if rng.random() < 0.6 else (-math.inf, float(rng.normal()))


def heavy_tailed(_: str, rng: np.random.Generator) -> Score:
    return (float(rng.standard_t(2)), 0.0)


@pytest.mark.integration
@pytest.mark.parametrize("draw", [same, sometimes_never, heavy_tailed])
def test_false_discoveries_when_nothing_is_better(draw: Callable[[str, np.random.Generator], Score]) -> None:
    found = [optimized(drawn_by(draw, repetition), Rules()) for repetition in range(200)]
    assert sum(label != BASELINE for label in found) / 200 <= 0.05


def test_what_is_twice_as_fast_is_found() -> None:
    def draw(label: str, rng: np.random.Generator) -> Score:
        return (-float(rng.normal(10 - math.log(2.5) * (label == "candidate 3"), 0.4)), 0.0)

    found = [optimized(drawn_by(draw, repetition), Rules()) for repetition in range(50)]
    assert found.count("candidate 3") >= 40
    assert set(found) <= {"candidate 3", BASELINE}


def test_what_alone_gets_there_is_found_with_five_seeds() -> None:
    def draw(label: str, rng: np.random.Generator) -> Score:
        return (-10.0, 1.0) if label == "candidate 1" else (-math.inf, float(rng.normal()))

    asked: list[Entry] = []

    def measure(entries: Sequence[Entry]) -> Mapping[Entry, Score | None]:
        asked.extend(entries)
        return drawn_by(draw, 0)(entries)

    assert confirm("candidate 1", measure, FRESH, Rules()).verdict == "better"
    assert len(asked) == 10


def test_the_worse_half_is_dropped_after_each_round() -> None:
    order = {label: i for i, label in enumerate(CANDIDATES)}
    standings = race(CANDIDATES, lambda entries: {e: (-float(order[e[0]]), 0.0) for e in entries}, (1, 2, 3))
    assert standings.ranking()[:3] == CANDIDATES[:3]
    assert [len(standings.of(label)) for label in CANDIDATES] == [3, 3, 2, 1, 1, 1]


def test_a_budget_that_ends_claims_nothing() -> None:
    def measure(entries: Sequence[Entry]) -> Mapping[Entry, Score | None]:
        return {entry: ((100.0 * (entry[0] != BASELINE), 0.0) if i < 7 else None) for i, entry in enumerate(entries)}

    assert confirm("candidate 1", measure, FRESH, Rules()).verdict == "too few seeds"
    assert not race(CANDIDATES, lambda entries: dict.fromkeys(entries), (1,)).is_complete


def test_a_budget_that_ends_after_the_first_look_leaves_what_it_said() -> None:
    asked = 0

    def measure(entries: Sequence[Entry]) -> Mapping[Entry, Score | None]:
        nonlocal asked
        asked += 1
        return {entry: (float(entry[1] % 5), 0.0) if asked == 1 else None for entry in entries}

    found = confirm("candidate 1", measure, FRESH, Rules())
    assert found.verdict == "no difference shown" and len(found.candidate) == 5


def test_too_few_seeds_are_said_to_be() -> None:
    rules = Rules(looks=(3,))
    apart = drawn_by(lambda label, rng: (-10.0, 1.0) if label != BASELINE else (-math.inf, float(rng.normal())), 0)
    assert confirm("candidate 1", apart, FRESH, rules).verdict == "too few seeds"
    assert rules.seeds_needed == 5 and Rules().seeds_needed == 5


def trained(steps: float | None, reward: float | None, status: str = "completed") -> Trained:
    return Trained("a", 1, status, final_reward=reward, steps_to_threshold=steps)


def test_scores_put_the_fast_before_the_slow_before_those_that_never_got_there() -> None:
    fast, slow, never, worse, broken = (
        score(one, "steps")
        for one in (
            trained(1000, 90),
            trained(5000, 99),
            trained(None, 50),
            trained(None, 10),
            trained(None, 70, "failed"),
        )
    )
    assert fast > slow > never > worse > broken
    assert middle([fast, slow], "steps") == pytest.approx(3000)
    assert middle([score(trained(None, 5.0), "return")], "return") == 5.0
    assert standing([fast, never]) > standing([never, never]) > standing([worse, never])


def test_ranks_take_the_place_of_infinite_steps() -> None:
    assert as_numbers([(-2.0, 0.0)], [(-1.0, 0.0)]) == [[-2.0], [-1.0]]
    assert as_numbers([(-math.inf, 3.0), (-math.inf, 1.0)], [(-1.0, 0.0)]) == [[1.0, 0.0], [2.0]]
    never = [(-math.inf, float(reward)) for reward in range(5)]
    assert difference(never, [(-float(i), 0.0) for i in range(5)]) == pytest.approx(2 / 252)
