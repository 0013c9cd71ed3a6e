"""What chance brings is compared only with runs whose rewards are the environment's as they were measured."""

from __future__ import annotations

import numpy as np
import pytest

from gymnasium_solver.diagnose.evidence import answers
from gymnasium_solver.diagnose.performance import judge
from gymnasium_solver.diagnose.readings import AS_IT_IS, baselines
from tests.made_runs import flat, make_readings

CAR = "MountainCarContinuous-v0"


def failed(ref: str, value: float, **fields: object) -> tuple[float | None, bool]:
    """What a policy that has learnt nothing is taken to bring, and whether the run is called worse than that."""
    curves = {"train/roll/ep_rew_mean": flat(value, 0.5), "val/roll/ep_rew_mean": flat(value, 0.5)}
    readings = make_readings(curves, ref, reward_threshold=90.0, **fields)
    performance = judge(readings)
    return performance.start, bool(answers(readings, performance)["return-below-random"])


@pytest.mark.parametrize("algo_id", ["sac", "td3", "ddpg"])
def test_a_car_that_stands_still_is_not_worse_than_random(algo_id: str) -> None:
    """Random pushes cost 33; holding each for eight steps reaches the goal often enough to bring 35."""
    start, worse = failed(f"{CAR}:{algo_id}", -1.0)
    assert start is not None and -40 < start < -28
    assert not worse


def test_with_the_frame_skip_of_the_variant_more_is_expected() -> None:
    start, worse = failed(f"{CAR}:ppo", -1.0)
    assert start is not None and 30 < start < 40
    assert worse


@pytest.mark.parametrize("changed", [{"frame_skip": 3}, {"env_wrappers": [{"scale_reward": 0.1}]}])
def test_where_it_was_not_measured_the_first_episodes_tell(changed: dict) -> None:
    for ref in (f"{CAR}:sac", f"{CAR}:ppo"):
        readings = make_readings({"train/roll/ep_rew_mean": flat(-5.0)}, ref, reward_threshold=90.0, **changed)
        assert "random_return" not in readings.baseline and "reward_range" not in readings.baseline
        assert readings.baseline["threshold"] == 90.0, "what rewards do not decide stays known"
        assert judge(readings).start == -5.0


def test_unknown_settings_are_taken_as_usual() -> None:
    readings = make_readings(ref=f"{CAR}:sac", known=False)
    assert readings.baseline["random_return"] == baselines()[CAR]["random_return"]


def test_every_shipped_baseline_has_what_the_environment_brings_as_it_is() -> None:
    for env_id, entry in baselines().items():
        assert np.isfinite(entry["random_return"]) and len(entry["reward_range"]) == 2, env_id
        for other in entry.get("rewards_with", ()):
            assert any(other[name] != plain for name, plain in AS_IT_IS.items()), env_id
