from __future__ import annotations

import pytest

from gymnasium_solver.metrics.catalogue import FAMILIES, METRICS, describe, is_catalogued


def test_names_are_unique_and_every_range_has_a_source() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in (*METRICS, *FAMILIES):
        assert metric.unit
        assert metric.meaning.endswith(".")
        assert metric.has_range == (metric.source is not None)
        if metric.low is not None and metric.high is not None:
            assert metric.low <= metric.high


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("train/metrics/kl_divergence", 0.0, 0.02),
        ("train/metrics/clip_fraction", 0.1, 0.3),
        ("train/metrics/explained_variance", 0.7, 1.0),
    ],
)
def test_the_ranges_of_the_specification(name: str, low: float, high: float) -> None:
    metric = describe(name)
    assert metric is not None
    assert (metric.low, metric.high) == (low, high)
    assert "specification" in (metric.source or "")


def test_members_of_a_family_are_catalogued() -> None:
    metric = describe("train/hp/policy_lr")
    assert metric is not None
    assert metric.name == "train/hp/policy_lr"
    assert is_catalogued("train/data/action_share/3")
    assert not is_catalogued("train/hp/")
    assert not is_catalogued("train/metrics/unheard_of")
    assert describe("") is None
