"""The catalogue of evidence: yes-or-no questions to a run, each answered with the number it was answered by.

An answer is None where the run does not tell (no such metric, configuration unknown). No question alone names a cause:
healthy runs answer many with yes. The causes say which answers speak for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.readings import EVALUATION, TRAINING, Readings
from gymnasium_solver.diagnose.usual import SOURCE, USUAL

KL = "train/metrics/kl_divergence"
ENTROPY = "train/metrics/entropy_relative"
GRADIENT = "train/metrics/grad_norm/all"


@dataclass(frozen=True)
class Answer:
    holds: bool
    value: float | None
    expected: str
    step: float | None = None  # at which it starts to hold, where that is known

    def __bool__(self) -> bool:
        return bool(self.holds)


Test = Callable[[Readings, Performance], Answer | None]


@dataclass(frozen=True)
class Evidence:
    name: str
    text: str
    metric: str
    test: Test
    kind: Literal["metrics", "config", "checkpoint", "log"] = "metrics"
    invariant: bool = False  # critical on its own: no sound run breaks it


def answers(readings: Readings, performance: Performance) -> dict[str, Answer | None]:
    found = {entry.name: entry.test(readings, performance) for entry in CATALOGUE}
    settings = [answer for name in SETTINGS if (answer := found[name]) is not None]
    unusual = sum(answer.holds for answer in settings)
    found["settings-usual"] = Answer(not unusual, float(unusual), "no setting out of its range") if settings else None
    return found


# --- how questions are asked ---------------------------------------------------------------------------------------


def _above(value: float | None, bound: float, step: float | None = None) -> Answer | None:
    return None if value is None else Answer(value > bound, value, f"at most {bound:g}", step)


def _below(value: float | None, bound: float, step: float | None = None) -> Answer | None:
    return None if value is None else Answer(value < bound, value, f"at least {bound:g}", step)


def _late_above(metric: str, bound: float) -> tuple[str, Test]:
    return metric, lambda r, _: _above(r.late(metric), bound)


def _late_below(metric: str, bound: float) -> tuple[str, Test]:
    return metric, lambda r, _: _below(r.late(metric), bound)


def _ever_above(metric: str, bound: float) -> tuple[str, Test]:
    def test(r: Readings, _: Performance) -> Answer | None:
        curve = r.series(metric)
        if curve is None:
            return None
        at = np.flatnonzero(curve.values > bound)
        return Answer(bool(at.size), curve.high, f"at most {bound:g}", float(curve.steps[at[0]]) if at.size else None)

    return metric, test


def _setting(name: str) -> Callable[[Readings], float | None]:
    """A setting, or a number that follows from several."""

    def value(r: Readings) -> float | None:
        planned = r.planned
        if name == "width":
            dims = r.config.get("hidden_dims")
            return float(min(dims)) if isinstance(dims, list | tuple) and dims else None
        if name == "minibatch":
            return r.minibatch
        if name == "rollout":
            return r.rollout
        if name == "updates":
            usual = r.baseline.get("steps_to_threshold", {}).get(r.algo or "", 0)  # a small budget is another matter
            return max(planned, usual) / r.rollout if planned and r.rollout else None
        if name == "learning_starts_share":
            starts = r.number("learning_starts")
            return starts / planned if planned and starts is not None else None
        if name == "target_share":
            interval = r.number("target_update_interval")
            return interval / planned if planned and interval else None
        if name == "epsilon_late":
            return _final(r.config.get("epsilon"))
        return r.number(name)

    return value


def _final(value: Any) -> float | None:
    """Where a schedule ends."""
    value = value.get("end", 0.0) if isinstance(value, Mapping) else value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _unusual(name: str, side: str) -> Evidence:
    setting = _setting(name)

    def test(r: Readings, _: Performance) -> Answer | None:
        usual = USUAL.get(r.algo or "", {}).get(name)
        value = setting(r) if usual else None
        bound = usual[side == "high"] if usual else None
        if value is None or bound is None:
            return None
        holds = value < bound if side == "low" else value > bound
        return Answer(holds, value, f"{'at least' if side == 'low' else 'at most'} {bound:g} ({SOURCE})")

    word = {"low": "lower", "high": "higher"}[side]
    return Evidence(f"{name}-{side}", f"{name} is {word} than it usually is", name, test, "config")


def _budget_small(r: Readings, _: Performance) -> Answer | None:
    usual = r.baseline.get("steps_to_threshold", {}).get(r.algo or "")
    return _below(r.planned / usual, 0.5) if usual and r.planned else None


def _shortsighted(r: Readings, _: Performance) -> Answer | None:
    """Value targets worth a few rewards only, where episodes go on: the discount leaves no more."""
    target = r.late("train/data/return_mean")
    target = r.late("train/metrics/q_mean") if target is None else target
    reward, spread = r.late("train/data/reward_mean"), r.late("train/data/reward_std")
    length = r.late("train/roll/ep_len_mean")
    if target is None or not reward or spread is None or length is None or spread > 2 * abs(reward):
        return None
    if r.config.get("normalize_reward"):
        return None
    return Answer(abs(target / reward) < 4 and length > 8, abs(target / reward), "worth at least 4 rewards")


def _moves_without_learning(r: Readings, p: Performance) -> Answer | None:
    """The policy changes as much as in any run, and nothing comes of it."""
    kl = r.late(KL)
    if kl is None or p.score is None:
        return None
    return Answer(1e-3 < kl < 0.1 and p.score < 0.15, kl, "a return that follows")


def _any_non_finite(r: Readings, _: Performance) -> Answer | None:
    if not r.curves and not r.non_finite:
        return None
    if not r.non_finite:
        holds = r.status == "diverged"
        return Answer(holds, None, "finite numbers only", None)
    return Answer(
        True, None, f"finite numbers only; not so: {', '.join(sorted(r.non_finite)[:3])}", min(r.non_finite.values())
    )


def _surrogate_dead(r: Readings, _: Performance) -> Answer | None:
    """No gradient reaches the policy's last layer, though the learning rate would let it."""
    gradient, loss, kl = r.series("train/metrics/grad_norm/actor_head"), r.series("train/loss/policy"), r.late(KL)
    rate = r.series("train/hp/policy_lr")
    if rate is not None and float(np.median(rate.part(0.3, 0.8))) < 0.05 * rate.high:
        return None  # nothing moves for another reason
    if gradient is not None and len(gradient.values) >= 5:
        size = float(np.median(gradient.part(0.3, 0.8)))
        return Answer(size < 1e-7, size, "a gradient above 1e-7")
    if loss is None or kl is None or len(loss.values) < 5:
        return None
    size = float(np.median(np.abs(loss.part(0.3, 0.8))))
    return Answer(size < 1e-7 and abs(kl) < 1e-8, size, "a policy loss above 1e-7")


def _no_reward(r: Readings, _: Performance) -> Answer | None:
    low, high = r.series("train/data/reward_min"), r.series("train/data/reward_max")
    if low is None or high is None:
        return None
    return Answer(low.low == 0 == high.high, high.high, "a reward other than 0")


def _returns_equal(r: Readings, p: Performance) -> Answer | None:
    """Every episode brings the same, whatever is done."""
    curve = r.series(TRAINING)
    if curve is None or len(curve.values) < 4:
        return None
    spread = float(np.ptp(curve.values))
    return Answer(spread <= 1e-6 * max(1.0, abs(curve.high)), spread, "returns that vary")


def _all_observations_constant(r: Readings, _: Performance) -> Answer | None:
    dead, shape = r.series("train/data/obs_dead_dims"), r.spaces.get("obs_shape")
    if dead is None:
        return None
    if shape is not None:
        return Answer(
            dead.low >= int(np.prod(shape)), dead.low, f"fewer than {int(np.prod(shape))} constant components"
        )
    spread = r.series("train/data/obs_std")
    return None if spread is None else Answer(spread.high < 1e-6, spread.high, "a standard deviation above 0")


def _some_observations_constant(r: Readings, p: Performance) -> Answer | None:
    dead = r.series("train/data/obs_dead_dims")
    if dead is None or r.spaces.get("obs_sizes") or r.spaces.get("is_image"):
        return None  # a one-hot component that was never visited is no fault
    if (spread := r.late("train/data/obs_std")) is not None and spread < 0.02:
        return None  # all of them vary so little that it cannot be told
    return Answer(dead.low >= 1 and not _all_observations_constant(r, p), dead.low, "0 throughout the run")


def _q_beyond_bound(r: Readings, _: Performance) -> Answer | None:
    q, bound = r.late("train/metrics/q_max"), r.late("train/metrics/q_bound")
    if q is None or bound is None or bound <= 0:
        return None
    slack = 1.05 if r.series("train/metrics/alpha") is None else 3.0  # SAC's values hold an entropy bonus as well
    return Answer(q > slack * bound, q, f"at most {slack * bound:.4g}, the largest reward / (1 − gamma)")


def _beyond_achievable(r: Readings, _: Performance) -> Answer | None:
    """Values of more than twice what an episode of this length can bring."""
    mean = r.late("train/metrics/q_mean")
    mean = r.late("train/data/return_mean") if mean is None else mean
    gamma = r.number("gamma") or 0.99
    length, reward = r.late("train/roll/ep_len_mean"), r.late("train/data/reward_mean")
    truncated = r.late("train/data/truncated_share") or 0.0
    if mean is None or length is None or reward is None or truncated > 0.2 or r.config.get("normalize_reward"):
        return None
    if (r.late("train/data/reward_zero_share") or 0.0) > 0.9:
        return None  # the mean reward of a few steps says little where reward is rare
    achievable = abs(reward) * (1 - gamma**length) / max(1 - gamma, 1e-9)
    return Answer(
        abs(mean) > 2 * achievable + 1e-6, mean, f"at most {2 * achievable:.4g} in episodes of {length:.0f} steps"
    )


def _target_frozen(r: Readings, _: Performance) -> Answer | None:
    distance = r.series("train/metrics/target_distance")
    if distance is None or len(distance.values) < 4:
        return None
    # A target that is renewed comes closer again; one that is not drifts away with the online network.
    stays = float(distance.part(0.5, 1.0).min()) > 0.8 * distance.late
    return Answer(distance.late > 0.3 and stays, distance.late, "a distance below 0.3, or one that falls again")


def _target_follows(r: Readings, _: Performance) -> Answer | None:
    distance = r.series("train/metrics/target_distance")
    return None if distance is None else Answer(distance.high < 1e-6, distance.high, "above 0")


def _entropy_gone_early(r: Readings, _: Performance) -> Answer | None:
    curve = r.series(ENTROPY)
    if curve is None:
        return None
    middle = float(np.median(curve.part(0.2, 0.5)))
    low = np.flatnonzero(curve.values < 0.1)
    return Answer(
        middle < 0.1, middle, "above 0.1 before half of the run", float(curve.steps[low[0]]) if low.size else None
    )


def _far_above_clip(r: Readings, _: Performance) -> Answer | None:
    norm, limit = r.late(GRADIENT), r.number("max_grad_norm")
    share = r.late("train/metrics/grad_clip_fraction")
    if norm is None or share is None:
        return None
    if limit is None:
        return Answer(False, norm, "near max_grad_norm") if share == 0 else None
    return Answer(share > 0.95 and norm > 30 * limit, norm / limit, "at most 30 times max_grad_norm")


def _trunk_without_gradient(r: Readings, _: Performance) -> Answer | None:
    trunk, whole = r.late("train/metrics/grad_norm/trunk"), r.late(GRADIENT)
    if trunk is None or whole is None:
        return None
    return Answer(trunk < 1e-7 and whole > 1e-6, trunk, "above 0 like that of the heads")


def _critic_poor(r: Readings, _: Performance) -> Answer | None:
    explained, spread = r.late("train/metrics/explained_variance"), r.late("train/data/return_std")
    if explained is None or (spread is not None and spread < 1e-3):
        return None
    return Answer(explained < 0.2, explained, "above 0.2 where returns vary")


def _largest_reward(r: Readings) -> float | None:
    ends = [abs(c.late) for n in ("min", "max") if (c := r.series(f"train/data/reward_{n}")) is not None]
    return max(ends) if ends else None


def _observations_large(r: Readings, _: Performance) -> Answer | None:
    low, high = r.late("train/data/obs_min"), r.late("train/data/obs_max")
    if low is None or high is None or r.spaces.get("is_image"):
        return None
    size = max(abs(low), abs(high))
    return Answer(size > 50 and not r.config.get("normalize_obs"), size, "within ±50, or normalised")


def _targets_large(r: Readings, _: Performance) -> Answer | None:
    mean, spread = r.late("train/data/return_mean"), r.late("train/data/return_std")
    if mean is None:
        mean, spread = r.late("train/metrics/q_mean"), 0.0
    if mean is None or spread is None:
        return None
    return Answer(abs(mean) + spread > 500, abs(mean) + spread, "at most 500")


def _value_swamps(r: Readings, _: Performance) -> Answer | None:
    value, policy = r.late("train/loss/value"), r.series("train/loss/policy")
    weight = r.number("vf_coef")
    if value is None or policy is None or weight is None or r.config.get("shared_network") is not True:
        return None
    ratio = weight * value / max(float(np.median(np.abs(policy.part(0.3, 1.0)))), 1e-9)
    return Answer(ratio > 1e4, ratio, "at most 1e4 where policy and value share a trunk")


def _return_flat(_: Readings, p: Performance) -> Answer | None:
    return None if p.score is None else Answer(p.score < 0.1, p.score, "above 0.1 of the way to the threshold")


def _return_below_start(r: Readings, p: Performance) -> Answer | None:
    curve = r.series(TRAINING) or r.returns
    if curve is None or p.start is None or len(curve.values) < 4:
        return None
    scale = abs(p.threshold - p.start) if p.threshold is not None else abs(p.start)
    drop = p.start - curve.late
    worse = drop > 0.1 * scale or (drop > 0.25 * abs(p.start) and drop > 0.02 * scale)
    holds = worse and drop > 2 * curve.noise
    return Answer(holds, curve.late, f"about {p.start:.4g}, as at random, or more")


def _return_collapsed(r: Readings, _: Performance) -> Answer | None:
    curve = r.returns
    if curve is None or len(curve.values) < 6:
        return None
    found = curve.collapse
    return Answer(found is not None, curve.late, "what was reached before", found[0] if found else None)


def _return_unstable(r: Readings, _: Performance) -> Answer | None:
    curve = r.returns
    if curve is None or len(curve.values) < 8:
        return None
    swings = curve.oscillation if np.ptp(curve.smooth) > 3 * curve.noise else 0.0
    return _above(swings, 0.4)


def _still_improving(r: Readings, p: Performance) -> Answer | None:
    return (
        None if r.returns is None or len(r.returns.values) < 4 else Answer(p.improving, r.returns.trend()[0], "level")
    )


def _grows(metric: str, factor: float) -> tuple[str, Test]:
    def test(r: Readings, _: Performance) -> Answer | None:
        curve = r.series(metric)
        if curve is None or len(curve.values) < 6:
            return None
        earlier = abs(float(np.median(curve.part(0.1, 0.4))))
        return Answer(
            abs(curve.late) > factor * max(earlier, 1e-9), curve.late, f"at most {factor:g} times {earlier:.3g}"
        )

    return metric, test


def _updates_begin_late(r: Readings, _: Performance) -> Answer | None:
    count = r.series("train/cnt/gradient_steps")
    if count is None or not r.planned:
        return None
    at = np.flatnonzero(count.values > 0)
    begin = float(count.steps[at[0]]) if at.size else r.steps
    return Answer(
        begin / r.planned > 0.4 and r.steps > 0.3 * r.planned, begin / r.planned, "within 0.4 of the run", begin
    )


def _few_updates(r: Readings, _: Performance) -> Answer | None:
    count = r.series("train/cnt/gradient_steps")
    return None if count is None or r.algo in ("q_learning", "sarsa") else _below(count.high, 300)


def _gap(r: Readings, p: Performance) -> float | None:
    """Evaluation above training episodes, as a share of the way to the threshold."""
    evaluated, trained = r.late(EVALUATION), r.late(TRAINING)
    if evaluated is None or trained is None or p.start is None or p.threshold is None or p.threshold <= p.start:
        return None
    return (evaluated - trained) / (p.threshold - p.start)


def _epsilon_high(r: Readings, _: Performance) -> Answer | None:
    return _above(r.late("train/hp/epsilon"), 0.5)


def _epsilon_none(r: Readings, _: Performance) -> Answer | None:
    curve = r.series("train/hp/epsilon")
    return None if curve is None else Answer(float(curve.values.max()) < 0.02, curve.high, "above 0.02 at first")


def _equal_lengths_without_truncation(r: Readings, _: Performance) -> Answer | None:
    length, truncated = r.series("train/roll/ep_len_mean"), r.series("train/data/truncated_share")
    if length is None or truncated is None or len(length.values) < 6:
        return None
    tail = length.part(0.6, 1.0)
    equal = float(np.ptp(tail)) == 0 and tail[-1] >= 50 and float(tail[-1]).is_integer()
    return Answer(equal and truncated.high == 0, float(tail[-1]), "a truncation where all episodes are equally long")


def _no_effect(r: Readings, _: Performance) -> Answer | None:
    curve = r.series("train/data/action_effect")
    return None if curve is None else _below(curve.early, 0.01)


def _noisy(r: Readings, _: Performance) -> Answer | None:
    share = r.early("train/data/obs_noise_share")
    return None if share is None or r.spaces.get("obs_sizes") else _above(share, 0.3)


def _duplicates(r: Readings, _: Performance) -> Answer | None:
    curve, n_envs = r.series("train/data/duplicate_envs"), r.number("n_envs")
    if curve is None or n_envs is None or n_envs < 2:
        return None
    varied = r.late("train/data/obs_std") or 0.0
    return Answer(curve.late >= n_envs - 1 and varied > 0, curve.late, "0 identical streams")


def _rewards_oppose_threshold(r: Readings, p: Performance) -> Answer | None:
    low, high = r.series("train/data/reward_min"), r.series("train/data/reward_max")
    if low is None or high is None or not p.threshold:
        return None
    opposed = high.high <= 0 and low.low < 0 if p.threshold > 0 else low.low >= 0 and high.high > 0
    return Answer(opposed, high.high if p.threshold > 0 else low.low, f"rewards that can add up to {p.threshold:g}")


def _rate_gone(r: Readings, _: Performance) -> Answer | None:
    curve = r.series("train/hp/policy_lr")
    if curve is None or curve.high <= 0 or len(curve.values) < 8:
        return None
    idle = float((curve.values < 0.02 * curve.high).mean())
    return Answer(idle > 0.35, idle, "at most 0.35 of the run with a learning rate of nearly nothing")


def _share_of_time(part: str, bound: float) -> tuple[str, Test]:
    def test(r: Readings, _: Performance) -> Answer | None:
        spent = {n: r.series(f"train/sys/time_{n}") for n in ("rollout", "update", "eval")}
        sums = {n: float(c.values.sum()) for n, c in spent.items() if c is not None}
        total = sum(sums.values())
        return _above(sums[part] / total, bound) if part in sums and total > 30 else None  # short runs need no speed

    return f"train/sys/time_{part}", test


def _logged(pattern: str) -> Test:
    def test(r: Readings, _: Performance) -> Answer | None:
        if not r.log and not r.curves:
            return None
        found = [message for _, message in r.log if pattern in message]
        return Answer(bool(found), float(len(found)), "none in the log")

    return test


def _audited(*kinds: str) -> Test:
    def test(r: Readings, _: Performance) -> Answer | None:
        found = [f for f in r.audit if f["kind"] in kinds]
        return Answer(bool(found), None, "none in the checkpoint") if r.audit or not r.missing else None

    return test


def _configured(field: str, holds: Callable[[Any], bool], expected: str) -> tuple[str, Test]:
    def test(r: Readings, _: Performance) -> Answer | None:
        if field not in r.config:
            return None
        value = r.config[field]
        number = float(value) if isinstance(value, int | float) else None
        return Answer(holds(value), number, expected)

    return field, test


def _limit_shorter(r: Readings, _: Performance) -> Answer | None:
    limit, usual = r.number("max_episode_steps"), r.reference.get("max_episode_steps")
    if "max_episode_steps" not in r.config:
        return None
    shorter = limit is not None and (usual is None or limit < usual)
    return Answer(shorter, limit, "unset" if usual is None else f"at least {usual}")


def _horizon_short(r: Readings, _: Performance) -> Answer | None:
    """Where the reward lies further ahead than the discount looks."""
    gamma, length = r.number("gamma"), r.late("train/roll/ep_len_mean")
    if gamma is None or length is None:
        return None
    horizon = 1 / max(1 - gamma, 1e-9)
    return Answer(
        horizon < 0.1 * length and horizon < 20, horizon, f"at least a tenth of an episode ({0.1 * length:.0f} steps)"
    )


def _value_clip_binds(r: Readings, _: Performance) -> Answer | None:
    clip, spread = r.number("clip_range_vf"), r.late("train/data/return_std")
    if clip is None or spread is None:
        return None
    return Answer(clip < 0.05 * spread, clip, f"at least {0.05 * spread:.3g}, a twentieth of the returns' spread")


# Questions that mostly have the same answer; what they say together counts little more than once.
GROUPS = {
    "still": ("entropy-uniform", "entropy-high", "kl-none", "kl-tiny", "clip-none", "update-tiny", "gradient-vanishes"),
    "moving": (
        "kl-large",
        "kl-huge",
        "kl-ever-huge",
        "clip-high",
        "update-large",
        "return-unstable",
        "return-collapsed",
    ),
    "certain": ("entropy-gone-early", "entropy-gone", "one-action", "std-tiny"),
    "clipped": ("clipped-always", "gradient-far-above-clip"),
    "sizes": ("rewards-large", "targets-large", "value-loss-huge", "gradient-explodes"),
    "values": ("q-beyond-bound", "q-grows", "td-error-grows", "values-beyond-achievable"),
    "units": ("units-dead", "units-dying"),
    "empty": ("no-reward", "returns-equal", "reward-sparse"),
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}


def _metric(name: str, text: str, asked: tuple[str, Test], **options: Any) -> Evidence:
    return Evidence(name, text, *asked, **options)


# --- the questions --------------------------------------------------------------------------------------------------

CATALOGUE: tuple[Evidence, ...] = (
    Evidence("non-finite", "a metric is NaN or infinite", "any", _any_non_finite, invariant=True),
    _metric(
        "ratio-off-one", "the policy ratio is not 1 before the first step of an update",
        _late_above("train/metrics/ratio_deviation_first", 1e-3), invariant=True,
    ),
    _metric("kl-negative", "the estimate of a divergence is negative", (
        KL, lambda r, _: None if (c := r.series(KL)) is None else Answer(c.low < -1e-5, c.low, "at least 0")
    ), invariant=True),
    Evidence("surrogate-dead", "the policy gets no gradient", "train/metrics/grad_norm/actor_head", _surrogate_dead,
             invariant=True),
    Evidence("no-reward", "every reward is 0", "train/data/reward_max", _no_reward, invariant=True),
    Evidence("returns-equal", "every episode brings the same return", TRAINING, _returns_equal),
    Evidence(
        "observations-constant", "no component of the observation ever changes", "train/data/obs_dead_dims",
        _all_observations_constant, invariant=True,
    ),
    Evidence(
        "observation-part-constant", "a component of the observation never changes", "train/data/obs_dead_dims",
        _some_observations_constant,
    ),
    Evidence("q-beyond-bound", "action values exceed what rewards can add up to", "train/metrics/q_max",
             _q_beyond_bound, invariant=True),
    Evidence("values-beyond-achievable", "values exceed what episodes of this length can bring", "train/metrics/q_mean",
             _beyond_achievable),
    Evidence("target-frozen", "the target network stays behind for good", "train/metrics/target_distance",
             _target_frozen),
    Evidence("target-follows", "the target network is the online one", "train/metrics/target_distance",
             _target_follows),
    _metric("entropy-uniform", "the policy is as good as uniform towards the end", _late_above(ENTROPY, 0.97)),
    _metric("entropy-high", "the policy is still nearly uniform towards the end", _late_above(ENTROPY, 0.9)),
    Evidence("entropy-gone-early", "the policy became deterministic before half of the run", ENTROPY,
             _entropy_gone_early),
    _metric("entropy-gone", "the policy is deterministic", _late_below(ENTROPY, 0.05)),
    _metric("std-huge", "the policy's noise grew large", _late_above("train/metrics/policy_std", 2.0)),
    _metric("std-tiny", "the policy's noise is gone", _late_below("train/metrics/policy_std", 0.05)),
    _metric("one-action", "one action is taken nearly always", _late_above("train/data/action_top_share", 0.9)),
    _metric("kl-none", "updates leave the policy as it is", _late_below(KL, 1e-6)),
    _metric("kl-tiny", "updates hardly change the policy", _late_below(KL, 2e-4)),
    _metric("kl-large", "updates change the policy much", _late_above(KL, 0.05)),
    _metric("kl-huge", "updates replace the policy", _late_above(KL, 0.3)),
    _metric("kl-ever-huge", "an update replaced the policy", _ever_above(KL, 0.5)),
    _metric("clip-high", "most samples leave the clip range", _late_above("train/metrics/clip_fraction", 0.35)),
    _metric("clip-none", "no sample leaves the clip range", _late_below("train/metrics/clip_fraction", 0.002)),
    _metric("update-tiny", "an update moves parameters by next to nothing",
            _late_below("train/metrics/update_norm_ratio", 3e-4)),
    _metric("update-large", "an update moves parameters far", _late_above("train/metrics/update_norm_ratio", 0.15)),
    _metric("clipped-always", "the gradient is clipped in nearly every step",
            _late_above("train/metrics/grad_clip_fraction", 0.98)),
    Evidence("gradient-far-above-clip", "the gradient is far larger than what clipping leaves of it", GRADIENT,
             _far_above_clip),
    _metric("gradient-vanishes", "there is next to no gradient", _late_below(GRADIENT, 1e-5)),
    _metric("gradient-explodes", "the gradient is very large", _late_above(GRADIENT, 1e3)),
    Evidence("trunk-without-gradient", "no gradient reaches the layers below the heads",
             "train/metrics/grad_norm/trunk", _trunk_without_gradient),
    Evidence("critic-poor", "the value function explains little", "train/metrics/explained_variance", _critic_poor),
    _metric("critic-good", "the value function explains the returns",
            _late_above("train/metrics/explained_variance", 0.8)),
    Evidence("rewards-large", "rewards are large", "train/data/reward_max",
             lambda r, _: None if r.config.get("normalize_reward") else _above(_largest_reward(r), 25)),
    Evidence("rewards-tiny", "rewards are tiny", "train/data/reward_max",
             lambda r, _: None if r.config.get("normalize_reward") else _below(_largest_reward(r), 0.02)),
    Evidence("targets-large", "value targets are large", "train/data/return_mean", _targets_large),
    _metric("value-loss-huge", "the value loss is huge", _late_above("train/loss/value", 3e3)),
    Evidence("observations-large", "observations are large and not normalised", "train/data/obs_max",
             _observations_large),
    _metric("observations-tiny", "observations hardly vary", _late_below("train/data/obs_std", 0.02)),
    Evidence("value-swamps-policy", "the value loss outweighs the policy's in a shared trunk", "train/loss/value",
             _value_swamps),
    Evidence("return-flat", "the return never left that of random actions", TRAINING, _return_flat),
    Evidence("return-below-random", "the return is worse than that of random actions", TRAINING, _return_below_start),
    Evidence("return-collapsed", "what was learnt was lost again", TRAINING, _return_collapsed),
    Evidence("return-unstable", "the return swings up and down", TRAINING, _return_unstable),
    Evidence("improving-at-end", "the return was still rising at the end", TRAINING, _still_improving),
    _metric("td-error-grows", "errors of the values grow", _grows("train/metrics/td_error", 3)),
    _metric("q-grows", "action values grow without a bound in sight", _grows("train/metrics/q_mean", 4)),
    _metric("value-loss-grows", "the value loss grows", _grows("train/loss/value", 5)),
    _metric("alpha-grows", "the temperature keeps rising", _grows("train/metrics/alpha", 2)),
    _metric("alpha-high", "the temperature is high", _late_above("train/metrics/alpha", 1.5)),
    _metric("alpha-gone", "the temperature is nearly 0", _late_below("train/metrics/alpha", 1e-3)),
    Evidence("actions-saturated", "most actions are at their bounds", "train/data/action_saturation",
             lambda r, _: _above(r.late("train/metrics/action_saturation"), 0.5)
             or _above(r.late("train/data/action_saturation"), 0.5)),
    _metric("units-dead", "most hidden units do nothing", _late_above("train/metrics/dead_units", 0.5)),
    _metric("units-dying", "hidden units fall silent", _grows("train/metrics/dead_units", 3)),
    Evidence("updates-begin-late", "learning begins late in the run", "train/cnt/gradient_steps", _updates_begin_late),
    Evidence("updates-few", "few gradient steps were made", "train/cnt/gradient_steps", _few_updates),
    Evidence("evaluation-above-training", "evaluations do much better than training episodes", EVALUATION,
             lambda r, p: _above(_gap(r, p), 0.3)),
    Evidence("training-above-evaluation", "training episodes do much better than evaluations", EVALUATION,
             lambda r, p: _above(None if (g := _gap(r, p)) is None else -g, 0.3)),
    Evidence("epsilon-stays-high", "actions are mostly random to the end", "train/hp/epsilon", _epsilon_high),
    Evidence("epsilon-none", "no random actions are taken", "train/hp/epsilon", _epsilon_none),
    _metric("updates-cut-short", "target KL ends updates early", _late_below("train/metrics/epochs_done", 0.4)),
    Evidence("equal-lengths-not-truncated", "all episodes are equally long, yet none counts as truncated",
             "train/data/truncated_share", _equal_lengths_without_truncation),
    Evidence("actions-without-effect", "what is observed does not depend on the action", "train/data/action_effect",
             _no_effect),
    Evidence("observations-noisy", "observations jump from step to step like noise", "train/data/obs_noise_share",
             _noisy),
    Evidence("streams-identical", "all environments show the same stream", "train/data/duplicate_envs", _duplicates,
             invariant=True),
    Evidence("rewards-oppose-threshold", "all rewards have the opposite sign of the threshold",
             "train/data/reward_max", _rewards_oppose_threshold),
    _metric("reward-sparse", "hardly any step is rewarded", _late_above("train/data/reward_zero_share", 0.95)),
    Evidence("learning-rate-gone", "the learning rate is nearly 0 for much of the run", "train/hp/policy_lr",
             _rate_gone),
    _metric("stepping-dominates", "most of the time goes into stepping environments", _share_of_time("rollout", 0.8)),
    _metric("evaluation-dominates", "most of the time goes into evaluations", _share_of_time("eval", 0.5)),
    Evidence("traceback-logged", "the log holds a stack trace", "run.log", _logged("Traceback"), "log"),
    Evidence("environment-failed", "the environment failed", "run.log", lambda r, _: (
        Answer(r.status == "failed", None, "a run that does not fail") if r.record else None), "log", invariant=True),
    Evidence("checkpoint-non-finite", "parameters are NaN or infinite", "checkpoint",
             _audited("non-finite-parameters", "non-finite-state", "non-finite-optimizer-state"),
             "checkpoint", invariant=True),
    Evidence("units-identical", "hidden units are copies of each other", "checkpoint",
             _audited("duplicate-units", "zero-layer"), "checkpoint"),
    Evidence("part-frozen", "a part of the network never moved", "checkpoint",
             _audited("frozen-part", "parameters-unchanged", "part-without-gradient", "optimizer-never-stepped"),
             "checkpoint"),
    Evidence("budget-small", "the budget is less than half of what the shipped configuration needs", "max_env_steps",
             _budget_small, "config"),
    Evidence("targets-shortsighted", "values are worth a few rewards only", "train/data/return_mean", _shortsighted),
    Evidence("moves-without-learning", "the policy changes, and nothing comes of it", KL, _moves_without_learning),
    Evidence("settings-usual", "no setting is out of its usual range", "config", lambda r, _: None, "config"),
    *(_unusual(name, side) for name, side in (
        ("policy_lr", "low"), ("policy_lr", "high"), ("max_grad_norm", "low"), ("clip_range", "low"),
        ("clip_range", "high"), ("ent_coef", "high"), ("ent_coef", "low"), ("gamma", "low"), ("gae_lambda", "low"),
        ("n_epochs", "high"), ("minibatch", "low"), ("minibatch", "high"), ("rollout", "low"), ("rollout", "high"),
        ("updates", "low"), ("vf_coef", "high"), ("vf_coef", "low"), ("width", "low"), ("target_kl", "low"),
        ("learning_starts_share", "high"), ("epsilon_late", "high"), ("epsilon_late", "low"), ("tau", "high"),
        ("tau", "low"), ("target_share", "high"), ("target_update_interval", "low"), ("buffer_size", "low"),
        ("log_std_init", "low"), ("log_std_init", "high"), ("noise_std", "low"), ("noise_std", "high"),
        ("update_to_data", "low"), ("update_to_data", "high"),
    )),
    Evidence("horizon-short", "the discount looks far less ahead than an episode lasts", "gamma", _horizon_short,
             "config"),
    Evidence("value-clip-binds", "value clipping allows far less than the returns' spread", "clip_range_vf",
             _value_clip_binds, "config"),
    _metric("wrapper-in-use", "the environment is wrapped", _configured("env_wrappers", bool, "none"), kind="config"),
    Evidence("time-limit-set", "the time limit is shorter than that of a configuration known to work",
             "max_episode_steps", _limit_shorter, "config"),
    _metric("actions-not-rescaled", "Box actions are not rescaled",
            _configured("rescale_actions", lambda v: v is False, "true"), kind="config"),
    _metric("observations-not-normalized", "observations are not normalised",
            _configured("normalize_obs", lambda v: not v, "true where they are large"), kind="config"),
    _metric("rewards-not-normalized", "rewards are not normalised",
            _configured("normalize_reward", lambda v: not v, "true where they are large"), kind="config"),
    _metric("no-baseline", "returns are used without a baseline",
            _configured("baseline", lambda v: v == "none", "value"), kind="config"),
    _metric("not-double", "targets take the largest value of one network",
            _configured("double", lambda v: v is False, "true"), kind="config"),
    _metric("images-into-mlp", "images go into a network without convolutions", ("network", lambda r, _: (
        None if not r.spaces or "network" not in r.config
        else Answer(bool(r.spaces.get("is_image")) and r.config["network"] == "mlp", None, "auto or cnn"))),
        kind="config"),
)  # fmt: skip

SETTINGS = tuple(entry.name for entry in CATALOGUE if entry.name.endswith(("-low", "-high")) and entry.kind == "config")
BY_NAME: Mapping[str, Evidence] = {entry.name: entry for entry in CATALOGUE}
