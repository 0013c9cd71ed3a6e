"""Schedules give the values worked out by hand, and refuse what cannot be scheduled."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gymnasium_solver.config.schedules import Number, Schedule, value_at, within

TOTAL = 1000


def schedule(**fields: Any) -> Schedule:
    return Schedule.model_validate(fields)


def curve(made: Schedule, *fractions: float) -> list[float]:
    return [made.at(fraction * TOTAL, TOTAL) for fraction in fractions]


@pytest.mark.parametrize(
    ("kind", "quarter", "middle"),
    [
        ("linear", 3.25, 2.5),
        ("cosine", 3.5606601718, 2.5),  # 1 + 3 · (1 + cos(π/4)) / 2
        ("logarithmic", 2.4643499171, 1.7789119315),  # 4 − 3 · log10(1 + 9x): 0.5118833610, 0.7403626895
        ("exponential", 2.8284271247, 2.0),  # 4 · (1/4)^x
    ],
)
def test_each_kind_at_start_middle_and_end(kind: str, quarter: float, middle: float) -> None:
    made = schedule(start=4, end=1, schedule=kind)
    assert curve(made, 0, 0.25, 0.5, 1) == pytest.approx([4, quarter, middle, 1], rel=1e-9)


@pytest.mark.parametrize("kind", ["linear", "cosine", "logarithmic", "exponential"])
def test_each_kind_can_rise(kind: str) -> None:
    values = curve(schedule(start=1, end=4, schedule=kind), 0, 0.2, 0.4, 0.6, 0.8, 1)
    assert values[0] == 1
    assert values[-1] == pytest.approx(4)
    assert values == sorted(set(values))


def test_constant_stays_at_start_whatever_the_end() -> None:
    assert curve(schedule(start=3, end=1, schedule="constant"), 0, 0.5, 1) == [3, 3, 3]


def test_linear_to_zero_is_what_is_meant_when_only_start_is_given() -> None:
    assert curve(schedule(start=2), 0, 0.5, 1) == [2, 1, 0]


def test_stays_at_the_end_once_training_runs_over() -> None:
    assert curve(schedule(start=2, end=0.5), 1.3) == [0.5]


def test_warmup_rises_from_zero_into_the_schedule() -> None:
    # During warm-up the scheduled value (1 − x) is multiplied by the share of the warm-up that is over.
    made = schedule(start=1, end=0, warmup=0.2)
    assert curve(made, 0, 0.1, 0.2, 0.5) == pytest.approx([0, 0.9 * 0.5, 0.8, 0.5])


def test_warmup_of_a_constant_reaches_it_and_stays() -> None:
    made = schedule(start=2, schedule="constant", warmup=0.5)
    assert curve(made, 0, 0.25, 0.5, 0.75) == pytest.approx([0, 1, 2, 2])


@pytest.mark.parametrize("span", [{"from": 0.2, "to": 0.8}, {"from": 200, "to": 800}, {"from": 0.2, "to": 800}])
def test_from_and_to_as_fraction_and_as_env_steps(span: dict[str, float]) -> None:
    made = schedule(start=4, end=1, **span)
    assert curve(made, 0, 0.2, 0.5, 0.8, 1) == pytest.approx([4, 4, 2.5, 1, 1])


def test_warmup_as_env_steps() -> None:
    assert schedule(start=1, end=0, warmup=200).at(100, TOTAL) == pytest.approx(0.45)


def test_env_steps_do_not_stretch_with_the_length_of_training() -> None:
    made = schedule(start=4, end=1, **{"from": 200, "to": 800})
    assert made.at(500, 10_000) == pytest.approx(2.5)
    assert schedule(start=4, end=1, **{"from": 0.2, "to": 0.8}).at(500, 10_000) == 4


@pytest.mark.parametrize(("start", "end"), [(1, -1), (-1, 1), (1, 0), (0, 1)])
def test_exponential_refuses_to_cross_or_touch_zero(start: float, end: float) -> None:
    with pytest.raises(ValidationError, match="nonzero with the same sign"):
        schedule(start=start, end=end, schedule="exponential")


def test_exponential_error_names_an_end_that_works() -> None:
    with pytest.raises(ValidationError, match=r"try end: 0\.02"):
        schedule(start=2, schedule="exponential")
    assert schedule(start=2, end=0.02, schedule="exponential").at(TOTAL, TOTAL) == pytest.approx(0.02)


def test_exponential_takes_two_negative_ends() -> None:
    assert curve(schedule(start=-4, end=-1, schedule="exponential"), 0.5) == pytest.approx([-2])


@pytest.mark.parametrize("span", [{"from": 0.5, "to": 0.5}, {"from": 0.8, "to": 0.2}, {"from": 800, "to": 200}])
def test_to_comes_after_from(span: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="must come after `from`"):
        schedule(start=1, **span)


@pytest.mark.parametrize(
    "fields",
    [
        {"start": 1, "warmup": -0.1},
        {"start": 1, "from": -0.1},
        {"start": 1, "to": 0},
        {"start": 1, "schedule": "sine"},
        {"start": 1, "stop": 2},
        {"start": float("nan")},
        {"start": float("inf")},
        {"end": 1},
    ],
)
def test_refuses_what_is_no_schedule(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        schedule(**fields)


def test_reads_numbers_that_yaml_took_for_strings() -> None:
    assert schedule(start="3e-4", end="1e-5") == schedule(start=0.0003, end=0.00001)


def test_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        schedule(start=1).start = 2  # type: ignore[misc]


def bounded(*bounds: float, low_open: bool = False) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Schedule | Number, within(*bounds, low_open=low_open)])


@pytest.mark.parametrize("value", [-0.1, 1.1, {"start": -0.1, "end": 1}, {"start": 1.1}, {"start": 1, "end": -0.1}])
def test_bounds_hold_for_a_number_and_for_both_ends_of_a_schedule(value: Any) -> None:
    with pytest.raises(ValidationError, match=r"must be >= 0 and <= 1, got (-0\.1|1\.1)"):
        bounded(0.0, 1.0).validate_python(value)


@pytest.mark.parametrize("value", [0, 1, {"start": 0, "end": 1}, {"start": 1, "end": 0}])
def test_closed_bounds_are_valid_values(value: Any) -> None:
    bounded(0.0, 1.0).validate_python(value)


def test_a_schedule_may_end_but_not_start_at_an_open_bound() -> None:
    open_at_zero = bounded(0.0, low_open=True)
    assert open_at_zero.validate_python({"start": 0.2, "end": 0}).end == 0
    for value in (0, {"start": 0, "end": 0.2}):
        with pytest.raises(ValidationError, match="must be > 0, got 0"):
            open_at_zero.validate_python(value)


def test_value_at_serves_plain_scheduled_and_unset_fields() -> None:
    assert value_at(0.3, 500, TOTAL) == 0.3
    assert value_at(schedule(start=4, end=1), 500, TOTAL) == 2.5
    assert value_at(None, 500, TOTAL) is None
