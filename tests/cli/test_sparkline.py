from __future__ import annotations

import math

import pytest

from gymnasium_solver.cli.sparkline import Curve, sparkline


@pytest.mark.parametrize(
    ("values", "width", "expected"),
    [
        ([], 10, ""),
        ([math.nan, math.inf], 10, ""),
        ([1.0], 10, "▄"),
        ([2.0, 2.0, 2.0], 10, "▄▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 8, "▁▂▃▄▅▆▇█"),
        ([0, 0, 7, 7], 2, "▁█"),
        ([5, math.nan, -5], 10, "█▁"),
    ],
)
def test_sparkline(values: list[float], width: int, expected: str) -> None:
    assert sparkline(values, width) == expected


def test_sparkline_never_exceeds_its_width() -> None:
    for count in range(1, 60):
        assert len(sparkline([float(i * i) for i in range(count)], 17)) == min(count, 17)


def test_curve_keeps_shape_and_last_value_in_bounded_memory() -> None:
    curve = Curve(capacity=16)
    for value in range(10_000):
        curve.add(float(value))
    assert curve.last == 9999
    assert curve.sparkline(8) == "▁▂▃▄▅▆▇█"
    assert len(curve.sparkline(100)) < 16


def test_curve_ignores_values_that_cannot_be_drawn_but_reports_them() -> None:
    curve = Curve()
    curve.add(1.0)
    curve.add(math.nan)
    assert math.isnan(curve.last)
    assert curve.sparkline(10) == "▄"
