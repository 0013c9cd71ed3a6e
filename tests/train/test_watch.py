"""Breaches of what a sound update keeps are told once."""

from __future__ import annotations

import pytest

from gymnasium_solver.train.watch import Watch

EQUAL = {"train/data/duplicate_envs": 3.0, "train/data/obs_std": 0.2}


def test_equal_streams_are_told_once() -> None:
    watch = Watch(4)
    (message,) = watch.check(EQUAL | {"train/hp/epsilon": 0.05})
    assert message.startswith("train/data/duplicate_envs: all environments show the same stream")
    assert not list(watch.check(EQUAL | {"train/hp/epsilon": 0.05}))


@pytest.mark.parametrize("in_force", [{"epsilon": 0.0}, {"noise_std": 0.0}, {"ucb_coef": 1.0}], ids=str)
def test_without_chance_equal_environments_go_equal_ways(in_force: dict[str, float]) -> None:
    assert not list(Watch(4).check(EQUAL | {f"train/hp/{name}": value for name, value in in_force.items()}))
