"""What values are learnt: action values and their targets, the critic and its loss, the temperature."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence, grows, late_above, late_below
from gymnasium_solver.diagnose.readings import Readings

Q_MEAN = "train/metrics/q_mean"
Q_MAX = "train/metrics/q_max"
TARGET = "train/data/return_mean"
DISTANCE = "train/metrics/target_distance"
EXPLAINED = "train/metrics/explained_variance"
LOSS = "train/loss/value"
Q_BOUND = "train/metrics/q_bound"
ALPHA = "train/metrics/alpha"
ENTROPY = "train/metrics/entropy"


def _gamma(r: Readings) -> float:
    return r.number("gamma") or 0.99


def _entropy_reward(r: Readings) -> float | None:
    """What entropy is worth at each step to SAC, whose values hold that too; 0 elsewhere, None if not known."""
    alpha, entropy = r.series(ALPHA), r.late(ENTROPY)
    if alpha is None:
        return 0.0
    # Values lag behind a temperature that falls.
    return None if entropy is None else float(alpha.part(0.5, 1.0).max()) * abs(entropy)


def _q_beyond_bound(r: Readings, _: Performance) -> Answer | None:
    q, bound, entropy = r.late(Q_MAX), r.late(Q_BOUND), _entropy_reward(r)
    if q is None or bound is None or bound <= 0:
        return None
    most = 3.0 * bound if entropy is None else 1.05 * (bound + entropy / max(1 - _gamma(r), 1e-8))
    most_reward = "(the largest reward + the entropy bonus)" if entropy else "the largest reward"
    return Answer(q > most, q, f"at most {most:.4g}, {most_reward} / (1 − gamma)")


def _beyond_achievable(r: Readings, _: Performance) -> Answer | None:
    """Values of more than twice what an episode of this length can bring."""
    mean = r.late(Q_MEAN)
    mean = r.late(TARGET) if mean is None else mean
    gamma = _gamma(r)
    length, reward = r.late("train/roll/ep_len_mean"), r.late("train/data/reward_mean")
    truncated = r.late("train/data/truncated_share") or 0.0
    if mean is None or length is None or reward is None or truncated > 0.2 or r.config.get("normalize_reward"):
        return None
    if (r.late("train/data/reward_zero_share") or 0.0) > 0.9:
        return None  # the mean reward of a few steps says little where reward is rare
    achievable = (abs(reward) + (_entropy_reward(r) or 0.0)) * (1 - gamma**length) / max(1 - gamma, 1e-9)
    return Answer(
        abs(mean) > 2 * achievable + 1e-6, mean, f"at most {2 * achievable:.4g} in episodes of {length:.0f} steps"
    )


def _target_frozen(r: Readings, _: Performance) -> Answer | None:
    distance = r.series(DISTANCE)
    if distance is None or len(distance.values) < 4:
        return None
    # A target that is renewed comes closer again; one that is not drifts away with the online network.
    stays = float(distance.part(0.5, 1.0).min()) > 0.8 * distance.late
    return Answer(distance.late > 0.3 and stays, distance.late, "a distance below 0.3, or one that falls again")


def _target_follows(r: Readings, _: Performance) -> Answer | None:
    distance = r.series(DISTANCE)
    return None if distance is None else Answer(distance.high < 1e-6, distance.high, "above 0")


def _critic_poor(r: Readings, _: Performance) -> Answer | None:
    explained, spread = r.late(EXPLAINED), r.late("train/data/return_std")
    if explained is None or (spread is not None and spread < 1e-3):
        return None
    return Answer(explained < 0.2, explained, "above 0.2 where returns vary")


def _targets_large(r: Readings, _: Performance) -> Answer | None:
    mean, spread = r.late(TARGET), r.late("train/data/return_std")
    if mean is None:
        mean, spread = r.late(Q_MEAN), 0.0
    if mean is None or spread is None:
        return None
    return Answer(abs(mean) + spread > 500, abs(mean) + spread, "at most 500")


def _shortsighted(r: Readings, _: Performance) -> Answer | None:
    """Value targets worth a few rewards only, where episodes go on: the discount leaves no more."""
    target = r.late(TARGET)
    target = r.late(Q_MEAN) if target is None else target
    reward, spread = r.late("train/data/reward_mean"), r.late("train/data/reward_std")
    length = r.late("train/roll/ep_len_mean")
    if target is None or not reward or spread is None or length is None or spread > 2 * abs(reward):
        return None
    if r.config.get("normalize_reward"):
        return None
    return Answer(abs(target / reward) < 4 and length > 8, abs(target / reward), "at least 4")


def _value_swamps(r: Readings, _: Performance) -> Answer | None:
    value, policy = r.late(LOSS), r.series("train/loss/policy")
    weight = r.number("vf_coef")
    if value is None or policy is None or weight is None or r.config.get("shared_network") is not True:
        return None
    ratio = weight * value / max(float(np.median(np.abs(policy.part(0.3, 1.0)))), 1e-9)
    return Answer(ratio > 1e4, ratio, "at most 1e4 where policy and value share a trunk")


def _alpha_runs_away(r: Readings, p: Performance) -> Answer | None:
    """It rises towards an entropy that cannot be reached, though entropy is all that counts and the policy random."""
    rises, bound, entropy, worth = RISES.test(r, p), r.late(Q_BOUND), r.late(ENTROPY), _entropy_reward(r)
    if rises is None or entropy is None or worth is None or not bound:
        return None
    reward = bound * (1 - _gamma(r))
    holds = rises.holds and entropy > 0 and worth > 10 * reward
    return Answer(holds, rises.value, f"entropy worth at most 10 times the largest reward, {reward:.3g}")


RISES = grows("alpha-grows", "the temperature keeps rising", ALPHA, 2)

QUESTIONS = (
    Evidence(
        "q-beyond-bound", "action values exceed what rewards can add up to", Q_MAX, _q_beyond_bound, invariant=True
    ),
    Evidence(
        "values-beyond-achievable", "values exceed what episodes of this length can return", Q_MEAN, _beyond_achievable
    ),
    grows("q-grows", "action values keep growing", Q_MEAN, 4),
    grows("td-error-grows", "TD errors grow", "train/metrics/td_error", 3),
    Evidence("target-frozen", "the target network never catches up", DISTANCE, _target_frozen),
    Evidence("target-follows", "the target network equals the online one", DISTANCE, _target_follows),
    Evidence("targets-large", "value targets are large", TARGET, _targets_large),
    Evidence(
        "targets-shortsighted", "values amount to only a few rewards", "value targets / mean reward", _shortsighted
    ),
    Evidence("critic-poor", "the value function explains little", EXPLAINED, _critic_poor),
    late_above("value-loss-huge", "the value loss is huge", LOSS, 3e3),
    grows("value-loss-grows", "the value loss grows", LOSS, 5),
    Evidence("value-swamps-policy", "the value loss outweighs the policy loss in a shared trunk", LOSS, _value_swamps),
    RISES,
    Evidence(
        "alpha-runs-away", "the temperature rises until only entropy counts", ALPHA, _alpha_runs_away, invariant=True
    ),
    late_above("alpha-high", "the temperature is high", ALPHA, 1.5),
    late_below("alpha-gone", "the temperature is nearly 0", ALPHA, 1e-3),
)
