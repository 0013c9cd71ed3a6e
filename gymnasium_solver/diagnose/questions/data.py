"""What the environment gives: rewards, observations, the effect of actions, the ends of episodes, the streams."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence, above, below, late_above, late_below
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.diagnose.series import Series

REWARD_MAX = "train/data/reward_max"
CONSTANT = "train/data/obs_dead_dims"
OBS_STD = "train/data/obs_std"
NOISE = "train/data/obs_noise_share"
EFFECT = "train/data/action_effect"
TRUNCATED = "train/data/truncated_share"
DUPLICATES = "train/data/duplicate_envs"
LARGE_OBSERVATION, LARGE_REWARD, TINY_REWARD, NOISE_SHARE = 50.0, 25.0, 0.02, 0.3


def _no_reward(r: Readings, p: Performance) -> Answer | None:
    low, high = r.series("train/data/reward_min"), r.series(REWARD_MAX)
    if low is None or high is None:
        return None
    same = low.low == high.high and (high.high == 0 or _all_equal(r.series("train/roll/ep_rew_mean")))
    return Answer(same and not _goal_never_reached(r, p), high.high, "rewards or episodes that differ")


def _goal_never_reached(r: Readings, _: Performance) -> Answer | None:
    """Every step costs the same and every episode runs into its time limit: what would end it was never met."""
    low, high, truncated = r.series("train/data/reward_min"), r.series(REWARD_MAX), r.series(TRUNCATED)
    if low is None or high is None or truncated is None:
        return None
    ended = truncated.values[truncated.values > 0]  # 0 where no episode ended at all
    holds = low.low == high.high < 0 and ended.size > 0 and float(ended.min()) == 1.0
    return Answer(holds, high.high, "an episode that ends before its time limit")


def _all_equal(curve: Series | None) -> bool:
    return curve is not None and len(curve.values) >= 4 and float(np.ptp(curve.values)) == 0


def _rewards_oppose_threshold(r: Readings, p: Performance) -> Answer | None:
    low, high = r.series("train/data/reward_min"), r.series(REWARD_MAX)
    if low is None or high is None or not p.threshold:
        return None
    opposed = high.high <= 0 and low.low < 0 if p.threshold > 0 else low.low >= 0 and high.high > 0
    # Costs on the way to a reward that is never found have the wrong sign too: only a constant reward, or what is known
    # of the environment, tells.
    known = r.baseline.get("reward_range")
    if known is not None:
        opposed = opposed and (known[0] >= 0 if p.threshold > 0 else known[1] <= 0)
    else:
        opposed = opposed and low.low == high.high
    return Answer(opposed, high.high if p.threshold > 0 else low.low, f"rewards that can add up to {p.threshold:g}")


def _largest_reward(r: Readings) -> float | None:
    """None where rewards are normalised: then their size does not matter."""
    if r.config.get("normalize_reward"):
        return None
    ends = [abs(c.late) for n in ("min", "max") if (c := r.series(f"train/data/reward_{n}")) is not None]
    return max(ends) if ends else None


def _all_observations_constant(r: Readings, _: Performance) -> Answer | None:
    dead, shape = r.series(CONSTANT), r.spaces.get("obs_shape")
    if dead is None:
        return None
    if shape is not None:
        return Answer(
            dead.low >= int(np.prod(shape)), dead.low, f"fewer than {int(np.prod(shape))} constant components"
        )
    spread = r.series(OBS_STD)
    return None if spread is None else Answer(spread.high < 1e-6, spread.high, "a standard deviation above 0")


def _some_observations_constant(r: Readings, p: Performance) -> Answer | None:
    dead = r.series(CONSTANT)
    if dead is None or r.spaces.get("obs_sizes") or r.spaces.get("is_image"):
        return None  # a one-hot component that was never visited is no fault
    if (spread := r.late(OBS_STD)) is not None and spread < 0.02:
        return None  # all of them vary so little that it cannot be told
    return Answer(dead.low >= 1 and not _all_observations_constant(r, p), dead.low, "0 throughout the run")


def _observations_large(r: Readings, _: Performance) -> Answer | None:
    low, high = r.late("train/data/obs_min"), r.late("train/data/obs_max")
    if low is None or high is None or r.spaces.get("is_image"):
        return None
    size = max(abs(low), abs(high))
    large = size > LARGE_OBSERVATION and not r.config.get("normalize_obs")
    return Answer(large, size, f"within ±{LARGE_OBSERVATION:g}, or normalised")


def _noisy(r: Readings, _: Performance) -> Answer | None:
    share = r.early(NOISE)
    return None if share is None or r.spaces.get("obs_sizes") else above(share, NOISE_SHARE)


def _duplicates(r: Readings, _: Performance) -> Answer | None:
    curve, n_envs = r.series(DUPLICATES), r.number("n_envs")
    if curve is None or n_envs is None or n_envs < 2 or _acts_without_chance(r):
        return None
    varied = r.late(OBS_STD) or 0.0
    return Answer(curve.late >= n_envs - 1 and varied > 0, curve.late, "no identical streams")


def _acts_without_chance(r: Readings) -> bool:
    """Then equal environments go equal ways, whatever their seeds. UCB comes to it once all is tried often enough."""
    late = (r.late(f"train/hp/{name}") for name in ("epsilon", "noise_std"))
    return r.config.get("exploration") == "ucb" or any(value == 0 for value in late if value is not None)


def _equal_lengths_without_truncation(r: Readings, _: Performance) -> Answer | None:
    length, truncated = r.series("train/roll/ep_len_mean"), r.series(TRUNCATED)
    if length is None or truncated is None or len(length.values) < 6:
        return None
    tail = length.part(0.6, 1.0)
    equal = float(np.ptp(tail)) == 0 and tail[-1] >= 50 and float(tail[-1]).is_integer()
    return Answer(equal and truncated.high == 0, float(tail[-1]), "truncations, as all episodes are equally long")


def _saturated(r: Readings, _: Performance) -> Answer | None:
    """As they leave the policy, or as the environment gets them."""
    return above(r.late("train/metrics/action_saturation"), 0.5) or above(r.late("train/data/action_saturation"), 0.5)


QUESTIONS = (
    Evidence("no-reward", "the reward is the same whatever the agent does", REWARD_MAX, _no_reward, invariant=True),
    late_above("reward-sparse", "hardly any step is rewarded", "train/data/reward_zero_share", 0.95),
    Evidence("rewards-large", "rewards are large", REWARD_MAX, lambda r, _: above(_largest_reward(r), LARGE_REWARD)),
    Evidence("rewards-tiny", "rewards are tiny", REWARD_MAX, lambda r, _: below(_largest_reward(r), TINY_REWARD)),
    Evidence("goal-never-reached", "no episode ends before its time limit", TRUNCATED, _goal_never_reached),
    Evidence(
        "rewards-oppose-threshold",
        "all rewards have the opposite sign of the threshold",
        REWARD_MAX,
        _rewards_oppose_threshold,
        invariant=True,
    ),
    Evidence(
        "observations-constant",
        "no component of the observation ever changes",
        CONSTANT,
        _all_observations_constant,
        invariant=True,
    ),
    Evidence(
        "observation-part-constant",
        "a component of the observation never changes",
        CONSTANT,
        _some_observations_constant,
    ),
    Evidence(
        "observations-large", "observations are large and not normalised", "train/data/obs_max", _observations_large
    ),
    late_below("observations-tiny", "observations hardly vary", OBS_STD, 0.02),
    Evidence("observations-noisy", "observations jump from step to step like noise", NOISE, _noisy),
    Evidence("streams-identical", "all environments give the same stream", DUPLICATES, _duplicates, invariant=True),
    late_above("one-action", "one action is taken almost always", "train/data/action_top_share", 0.9),
    Evidence("actions-saturated", "most actions are at their bounds", "train/data/action_saturation", _saturated),
    Evidence(
        "actions-without-effect",
        "observations do not depend on the actions",
        EFFECT,
        lambda r, _: below(r.early(EFFECT), 0.01),
    ),
    Evidence(
        "equal-lengths-not-truncated",
        "all episodes are equally long, yet none counts as truncated",
        TRUNCATED,
        _equal_lengths_without_truncation,
    ),
)
