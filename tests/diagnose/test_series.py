"""Features of curves whose course is known, whatever their scale."""

from __future__ import annotations

import numpy as np
import pytest

from gymnasium_solver.diagnose.series import POINTS, Series


def series(values: np.ndarray) -> Series:
    return Series(np.arange(1, len(values) + 1) * 100.0, np.asarray(values, float))


def noise(n: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(0).normal(size=n)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_words_do_not_depend_on_the_scale(scale: float) -> None:
    n = 200
    rising = np.linspace(0, 100, n) + noise(n)
    plateau = 100 * (1 - np.exp(-np.arange(n) / 20)) + noise(n, 0.5)
    fallen = np.concatenate([np.linspace(0, 100, 100), np.full(100, 5.0)]) + noise(n)
    assert series(scale * rising).shape().startswith("still rising")
    assert series(scale * plateau).shape().startswith("levelled off")
    assert series(scale * fallen).shape(is_return=True).startswith("collapsed")
    assert series(scale * fallen).shape().startswith("rose to")
    assert series(scale * (50 + noise(n))).shape().startswith("steady")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (0.986 * np.exp(-np.arange(50) / 10), "fell from 0.986 to 0.0148"),  # it never rose
        ([-196, -150, -120, -99.3], "4 points, from -196 to -99.3"),
        ([345, 208, 421, 500], "4 points, from 345 to 500, between 208 and 500"),
        (np.linspace(-200, -100, 10), "10 points, from -200 to -100"),
        ([20.0, 20.1, 19.9, 20.0], "steady around 20"),
    ],
)
def test_words_say_what_the_points_say(values: list[float], words: str) -> None:
    assert series(np.array(values)).shape() == words


def test_a_collapse_is_dated() -> None:
    fallen = np.concatenate([np.linspace(0, 100, 100), np.zeros(100)])
    found = series(fallen).collapse
    assert found is not None
    step, best, late = found
    assert 9_500 <= step <= 11_500
    assert best > 90
    assert late == 0


def test_a_curve_that_stays_up_has_not_collapsed() -> None:
    assert series(np.concatenate([np.linspace(0, 100, 100), np.full(100, 80.0)])).collapse is None


def test_the_change_point_is_where_the_level_jumps() -> None:
    found = series(np.concatenate([np.zeros(60), np.full(40, 7.0)]) + noise(100, 0.1)).change_point
    assert found is not None
    step, before, after = found
    assert step == 6_100
    assert (before, after) == (pytest.approx(0, abs=0.1), pytest.approx(7, abs=0.1))


def test_no_change_point_in_noise() -> None:
    assert series(noise(100)).change_point is None


def test_a_trend_of_noise_is_not_sure_and_one_of_a_line_is() -> None:
    assert abs(series(noise(300)).trend()[1]) < 3
    change, certainty = series(np.linspace(0, 10, 300) + noise(300, 0.1)).trend(0.5)
    assert change == pytest.approx(5, abs=0.2)
    assert certainty > 10


def test_a_wandering_curve_is_not_taken_for_a_trend_as_readily_as_independent_noise_would_be() -> None:
    walk = np.cumsum(noise(300))
    x = np.arange(300)
    independent = np.polyfit(x, walk, 1)[0] * 300 / (walk.std() / np.sqrt(300))
    assert abs(series(walk).trend(1.0)[1]) < abs(independent)


def test_spikes_are_single_points() -> None:
    values = noise(100, 0.1)
    values[40] = 50
    found = series(values).spikes
    assert found.tolist() == [4_100]
    assert series(noise(100)).spikes.size == 0


def test_oscillation_is_high_for_waves_and_low_for_a_rise() -> None:
    assert series(np.sin(np.linspace(0, 30, 300))).oscillation > 0.8
    assert series(np.linspace(0, 1, 300)).oscillation == 0


def test_thinning_keeps_the_mean_of_a_long_series() -> None:
    values = noise(100_000)
    thin = series(values).thin
    assert len(thin.values) == POINTS
    assert thin.values.mean() == pytest.approx(values.mean(), abs=1e-3)


def test_gaps_are_left_out_and_nothing_is_no_series() -> None:
    steps = np.array([1.0, 2.0, 3.0, np.nan])
    found = Series.of(steps, np.array([1.0, np.nan, np.inf, 2.0]))
    assert found is not None and found.values.tolist() == [1.0]
    assert Series.of(steps, np.full(4, np.nan)) is None


@pytest.mark.parametrize("values", [[3.0], [3.0, 4.0], [0.0] * 50])
def test_short_and_constant_series_have_all_features(values: list[float]) -> None:
    curve = series(np.array(values))
    assert curve.shape()
    assert curve.trend() == (0.0, 0.0) or curve.trend()[0] == 0
    assert curve.collapse is None and curve.change_point is None
    assert curve.spikes.size == 0 and curve.oscillation == 0
