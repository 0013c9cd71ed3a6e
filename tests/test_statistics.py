"""Statistics over seeds, against SciPy and values worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gymnasium_solver.statistics import (
    bootstrap_interval,
    compare,
    effect_size,
    holm,
    improvement_interval,
    interquartile_mean,
    iqm_interval,
    power,
    probability_of_improvement,
    rank_test,
    seeds_needed,
    welch,
)


def test_interquartile_mean_drops_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0])) == pytest.approx(3.5)
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == pytest.approx(3.0)  # too few to drop any


@pytest.mark.parametrize("sizes", [(3, 3), (5, 8), (10, 4)])
def test_welch_is_scipys(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, sizes[0]), rng.normal(0.7, 3, sizes[1])
    assert welch(a, b) == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)


def test_welch_without_spread() -> None:
    assert welch([1, 1, 1], [1, 1]) == 1.0
    assert welch([1, 1, 1], [2, 2]) == 0.0
    assert welch([1], [2, 3]) == 1.0


def test_ranks_count_every_arrangement() -> None:
    # 3 against 3 wholly apart: 2 of the 20 ways are as extreme.
    assert rank_test([1, 2, 3], [4, 5, math.inf]) == pytest.approx(0.1)
    a, b = [1.0, 4.0, 6.0, 7.0], [2.0, 8.0, 9.0, 10.0, 11.0]
    assert rank_test(a, b) == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue)
    assert rank_test([math.inf] * 4, [math.inf] * 4) == 1.0


def test_ranks_of_many_seeds_are_sampled() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 20), rng.normal(0.8, 1, 20)
    assert rank_test(a, b) == pytest.approx(stats.mannwhitneyu(a, b).pvalue, abs=0.01)


def test_probability_of_improvement_counts_ties_half() -> None:
    assert probability_of_improvement([1, 2], [2, 3]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    low, high = improvement_interval([1, 2, 3, 4], [2, 3, 4, 5])
    assert low < probability_of_improvement([1, 2, 3, 4], [2, 3, 4, 5]) < high


def test_a_bootstrap_interval_holds_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.normal(0, 1, 20), resamples=500)
        held += low <= 0 <= high
    assert 0.86 <= held / 200 <= 0.99


def test_strata_are_resampled_by_themselves() -> None:
    # All of the spread is between the two strata: none is left when each is resampled by itself.
    low, high = bootstrap_interval([1.0, 1.0, 1.0], [9.0, 9.0, 9.0])
    assert low == high == 5.0
    assert all(math.isnan(bound) for bound in bootstrap_interval([1.0]))


def test_a_bootstrap_of_seeds_that_never_reached_it() -> None:
    low, high = bootstrap_interval([1000.0, 1200.0, math.inf, math.inf])
    assert low < 2000 and high == math.inf


@pytest.mark.parametrize(("effect", "seeds"), [(1.0, 17), (1.5, 9), (2.0, 6)])
def test_seeds_for_four_chances_in_five(effect: float, seeds: int) -> None:
    assert seeds_needed(effect) == seeds
    assert power(effect, seeds) >= 0.8 > power(effect, seeds - 1)


def test_no_number_of_seeds_shows_what_is_not_there() -> None:
    assert seeds_needed(0.0) is None
    assert seeds_needed(0.01) is None


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_effect_in_pooled_deviations() -> None:
    assert effect_size([1, 2, 3], [3, 4, 5]) == pytest.approx(2.0)
    assert effect_size([1, 1], [2, 2]) == math.inf


def test_fewer_steps_are_better() -> None:
    found = compare([100, 110, 120, 90], [50, 40, 60, 45], larger_is_better=False)
    assert (found.verdict, found.probability) == ("better", 1.0)
    assert found.effect > 0


def test_never_reached_is_worse_than_any_number_of_steps() -> None:
    found = compare([math.inf] * 4, [50, 40, 60, 45], larger_is_better=False)
    assert found.verdict == "better" and found.p_value == pytest.approx(2 / 70)


def test_one_seed_claims_nothing() -> None:
    assert compare([1.0], [100.0]).verdict == "too few seeds"
    assert compare([1.0, 1.1], [100.0, 101.0]).verdict == "too few seeds"


def test_false_alarms_stay_at_alpha() -> None:
    rng = np.random.default_rng(5)
    alarms = sum(welch(rng.normal(0, 1, 5), rng.normal(0, 1, 5)) <= 0.05 for _ in range(1000))
    assert alarms <= 70


def test_an_interval_of_few_seeds_ends_where_values_can_be() -> None:
    steps = [1000.0, 9000.0, 20_000.0]
    low, high = iqm_interval(steps)
    assert low < 0 and high > 30_000
    assert iqm_interval(steps, possible=(0.0, 25_000.0)) == (0.0, 25_000.0)
    assert iqm_interval(steps, possible=(0.0, math.inf)) == (0.0, high), "cut, not shifted"
    assert iqm_interval(steps, possible=(0.0, 15_000.0)) == (0.0, 20_000.0), "what was seen is possible"
