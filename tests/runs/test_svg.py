"""Curves where they belong: pixels against values, round ticks, and data that no axis holds."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gymnasium_solver.runs.svg import Line, Panel, Scale, svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def drawn(*panels: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(svg(panels))


def line(y: list[float], label: str = "reward") -> Line:
    return Line(label, np.arange(len(y), dtype=float), np.array(y, dtype=float))


def texts(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NAMESPACE}text")]


def points(root: ElementTree.Element) -> list[np.ndarray]:
    found = [element.attrib["points"] for element in root.iter(f"{NAMESPACE}polyline")]
    return [np.array([pair.split(",") for pair in pairs.split()], float) for pairs in found]


def tick_pixel(root: ElementTree.Element, label: str) -> float:
    """Of a label of the y axis."""
    found = [x for x in root.iter(f"{NAMESPACE}text") if x.text == label and x.attrib.get("text-anchor") == "end"]
    return float(found[0].attrib["y"]) - 4


def test_a_value_is_drawn_at_its_tick() -> None:
    root = drawn(Panel("return", [line([0, 100, 50])]))
    (curve,) = points(root)
    assert np.all(np.diff(curve[:, 0]) > 0)
    assert curve[0, 1] == pytest.approx(tick_pixel(root, "0"), abs=0.11)
    assert curve[1, 1] == pytest.approx(tick_pixel(root, "100"), abs=0.11)
    assert curve[1, 1] < curve[2, 1] < curve[0, 1]  # up is up


def test_decades_are_equally_far_apart() -> None:
    root = drawn(Panel("norms", [line([0.1, 1, 10, 0, -1])], is_log=True))
    assert tick_pixel(root, "0.1") - tick_pixel(root, "1") == pytest.approx(
        tick_pixel(root, "1") - tick_pixel(root, "10"), abs=0.2
    )
    assert len(points(root)[0]) == 3  # what is not positive has no logarithm


@pytest.mark.parametrize(
    "low, high, labels",
    [
        (0, 20_300, ["0", "5k", "10k", "15k", "20k"]),
        (0, 1_200_000, ["0", "0.2M", "0.4M", "0.6M", "0.8M", "1M", "1.2M"]),
        (-0.028, -0.002, ["−0.025", "−0.020", "−0.015", "−0.010", "−0.005"]),
        (0, 5000, ["0", "1000", "2000", "3000", "4000", "5000"]),
        (0, 1.1e-5, ["0", "2e−06", "4e−06", "6e−06", "8e−06", "1e−05"]),
        (0.5, 2.0, ["0.50", "0.75", "1.00", "1.25", "1.50", "1.75", "2.00"]),
    ],
)
def test_ticks_are_round_and_tell_values_apart(low: float, high: float, labels: list[str]) -> None:
    assert [text for _, text in Scale(low, high, 0, 400).ticks] == labels


@pytest.mark.parametrize(
    "values",
    [
        [],
        [7.0],
        [3.0, 3.0, 3.0],
        [0.0, 0.0],
        [1e9, 1e9 + 1e-7],
        [float("nan"), float("inf"), -float("inf")],
        [1.0, float("inf"), 2.0],
        [1.7e308, -1.7e308, 0.0],
        [5e-324, 0.0],
        [1e-300, 1e300],
    ],
)
@pytest.mark.parametrize("is_log", [False, True])
def test_any_values_are_drawn(values: list[float], is_log: bool) -> None:
    text = svg([Panel("loss", [line(values)], is_log=is_log)]).decode()
    assert not re.search(r"\b(nan|inf)\b", text)
    pixels = np.concatenate([np.empty((0, 2)), *points(ElementTree.fromstring(text))])
    assert np.all((pixels >= 0) & (pixels <= 1000))


def test_only_what_needs_a_name_has_one() -> None:
    assert "only" not in texts(drawn(Panel("loss", [line([1, 2], "only")])))
    both = drawn(Panel("loss", [line([1, 2], "a < b"), line([2, 3], "other")], level=("threshold 475", 475.0)))
    assert {"a < b", "other", "threshold 475"} <= set(texts(both))


def test_the_healthy_range_is_shown_as_far_as_it_is_in_sight() -> None:
    def height(low: float | None, high: float | None) -> float:
        root = drawn(Panel("KL", [line([0, 1])], healthy=(low, high)))
        return sum(float(x.attrib["height"]) for x in list(root.iter(f"{NAMESPACE}rect"))[1:])

    assert 0 < height(None, 0.5) < height(None, 0.9) < height(None, 50.0)
    assert height(None, None) == height(-50.0, 50.0)
    assert height(20.0, 50.0) == 0


def test_panels_stand_in_two_columns() -> None:
    panels = [Panel(f"panel {n}", [line([0, n])]) for n in range(3)]
    places = [group.attrib["transform"] for group in drawn(*panels) if group.tag == f"{NAMESPACE}g"]
    assert places == ["translate(0 0)", "translate(495 0)", "translate(0 285)"]
