"""What random play of a run's environment says about the causes that lie in the environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.diagnose.evidence import Answer
from gymnasium_solver.diagnose.questions.data import LARGE_OBSERVATION, LARGE_REWARD, NOISE_SHARE, TINY_REWARD
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.errors import EnvironmentFault, SolverError, TrustError
from gymnasium_solver.verify.probing.probe import CONFIRMED, HINTED, PROVEN, REFUTED, UNLIKELY, Outcome, Probe, Say
from gymnasium_solver.verify.probing.random_play import N_ENVS, Facts, look

SAMPLE_EPISODES = 4  # fewer tell nothing about returns and lengths


class Finding(NamedTuple):
    cause: str
    factor: float
    text: str
    answers: dict[str, Answer]


def can_make(config: Config) -> bool:
    """Whether there is an environment to play; one that fails in play still counts."""
    try:
        build_env(config).close()
    except TrustError:
        raise
    except SolverError:
        return False
    return True


def run(probe: Probe, diagnosis: Diagnosis, config: Config, say: Say) -> Outcome:
    say(f"playing {config.env_id} at random")
    try:
        facts = look(config)
    except EnvironmentFault as error:
        answers = {"environment-failed": Answer(True, None, "an environment that can be stepped")}
        return Outcome(
            probe.name, "the environment fails on its own", str(error), {"environment-error": PROVEN}, answers
        )
    played = f"{facts.steps:,} random steps"
    if (changed := difference(facts, diagnosis.readings)) is not None:
        verdict = "not the environment that the run was trained in, so this says nothing about it"
        return Outcome(probe.name, verdict, f"{changed} ({played} of the environment as the config builds it now)")
    findings = list(judge(facts, diagnosis, config))
    texts = [finding.text for finding in findings if finding.factor > 1 or finding.cause in probe.causes]
    return Outcome(
        probe.name,
        _verdict(findings, probe),
        "; ".join([*dict.fromkeys(texts), f"in {played}"]),
        {finding.cause: finding.factor for finding in findings if finding.factor != 1},
        {name: answer for finding in findings for name, answer in finding.answers.items()},
    )


def _verdict(findings: Sequence[Finding], probe: Probe) -> str:
    shown = [finding.cause for finding in findings if finding.factor > 1]
    asked = [finding for finding in findings if finding.cause in probe.causes]
    parts = [
        ("shows", shown),
        ("speaks against", [finding.cause for finding in asked if finding.factor < 1]),
        ("cannot tell about", [finding.cause for finding in asked if finding.factor == 1]),
    ]
    return "; ".join(f"{verb} {', '.join(causes)}" for verb, causes in parts if causes) or "finds nothing wrong"


def difference(facts: Facts, readings: Readings) -> str | None:
    """What shows that the run met another environment: code changed since, or a wrapper that is not in its config.
    Its first rows are compared, when its policy was still random."""
    spread = readings.series("train/data/obs_std")
    if spread is not None and facts.obs_std > 0:
        ratio = float(spread.values[0]) / facts.obs_std
        if not 1 / 3 < ratio < 3:
            return f"the run's first observations varied by {spread.values[0]:.3g}, now by {facts.obs_std:.3g}"
    low, high = readings.series("train/data/reward_min"), readings.series("train/data/reward_max")
    if low is not None and high is not None:
        slack = 0.5 * (high.high - low.low) + 1e-6
        if facts.reward_low < low.low - slack or facts.reward_high > high.high + slack:
            return (
                f"the run's rewards were within {low.low:.3g} and {high.high:.3g}, now they are within "
                f"{facts.reward_low:.3g} and {facts.reward_high:.3g}"
            )
    noise = readings.series("train/data/obs_noise_share")
    if noise is not None and facts.noise_share is not None and abs(noise.values[0] - facts.noise_share) > NOISE_SHARE:
        return f"the noise in the run's observations was {noise.values[0]:.0%} of them, now {facts.noise_share:.0%}"
    return None


def judge(facts: Facts, diagnosis: Diagnosis, config: Config) -> Iterator[Finding]:
    yield from _of_observations(facts, config)
    yield from _of_actions_and_seeds(facts)
    yield from _of_rewards(facts, diagnosis, config)
    yield from _of_endings(facts)


def _of_observations(facts: Facts, config: Config) -> Iterator[Finding]:
    def told(name: str, holds: bool, value: float, expected: str) -> dict[str, Answer]:
        return {name: Answer(holds, value, f"{expected} (random play)")}

    if not facts.finite:
        answers = {"non-finite": Answer(True, None, "finite numbers only (random play)")}
        yield Finding("non-finite-values", PROVEN, "observations or rewards are not finite", answers)
    answers = told("observations-constant", facts.blind, float(facts.blind), "0: something changes")
    text = "no component of the observation ever changes" if facts.blind else "observations change"
    yield Finding("constant-observation", PROVEN if facts.blind else REFUTED, text, answers)
    if not facts.blind and facts.still is not None:
        still = len(facts.still)
        names = f"components {', '.join(map(str, facts.still[:8]))} of {facts.columns} never change"
        yield Finding(
            "partial-observability",
            CONFIRMED if still else UNLIKELY,
            names if still else "every component of the observation varies",
            told("observation-part-constant", bool(still), still, "0 constant components"),
        )
    if facts.noise_share is not None:
        noisy = facts.noise_share > NOISE_SHARE
        yield Finding(
            "observation-noise",
            CONFIRMED if noisy else HINTED if not facts.repeatable else REFUTED,
            f"{facts.noise_share:.0%} of what is observed is noise"
            + ("" if facts.repeatable else ", and the same seed and actions do not give the same result twice"),
            told("observations-noisy", noisy, facts.noise_share, f"at most {NOISE_SHARE:g}"),
        )
    large = facts.obs_size > LARGE_OBSERVATION and not config.normalize_obs
    yield Finding(
        "observation-scale",
        HINTED if large else 1.0 if facts.obs_std < 0.02 else UNLIKELY,
        f"observations reach {facts.obs_size:.3g}",
        told("observations-large", large, facts.obs_size, f"within ±{LARGE_OBSERVATION:g}, or normalised"),
    )


def _of_actions_and_seeds(facts: Facts) -> Iterator[Finding]:
    if facts.listens is not None:
        deaf = not facts.listens
        yield Finding(
            "actions-have-no-effect",
            PROVEN if deaf else REFUTED,
            "different actions from the same seed change " + ("nothing at all" if deaf else "what follows"),
            {"actions-without-effect": Answer(deaf, float(not deaf), "1: the steps differ (random play)")},
        )
    if facts.alike is not None:
        yield Finding(
            "duplicate-seeds",
            PROVEN if facts.alike else REFUTED,
            f"the environments give {'the same stream' if facts.alike else 'different streams'}",
            {"streams-identical": Answer(facts.alike, float(N_ENVS if facts.alike else 1), "1 (random play)")},
        )


def _of_rewards(facts: Facts, diagnosis: Diagnosis, config: Config) -> Iterator[Finding]:
    low, high, returns = facts.reward_low, facts.reward_high, facts.returns
    share = f"{facts.rewarded_share:.1%} of the steps are rewarded"
    varied = len(returns) > 1 and float(np.ptp(returns)) > 1e-6 * max(1.0, float(np.abs(returns).max()))
    usual = diagnosis.readings.baseline.get("random_return")
    if low == high == 0:
        # Too rare to be met by chance looks the same, unless random play is known to be paid.
        text = "no step is rewarded" + (f", where random play usually earns {usual:.3g}" if usual else "")
        answers = {"no-reward": Answer(True, 0.0, "a reward other than 0 (random play)")}
        yield Finding("constant-reward", HINTED if usual else 1.0, text, answers)
    elif varied or low < high:
        text = f"rewards lie between {low:.3g} and {high:.3g}, and returns differ; {share}"
        answers = {"no-reward": Answer(False, high, "a reward other than 0 (random play)")}
        yield Finding("constant-reward", REFUTED, text, answers)
        if facts.rewarded_share > 0.05:
            yield Finding("sparse-reward", UNLIKELY, share, {})
    elif len(returns) >= SAMPLE_EPISODES:
        text = f"all {len(returns)} episodes returned {returns[0]:.3g}"
        answers = {"returns-equal": Answer(True, 0.0, "returns that vary (random play)")}
        yield Finding("constant-reward", 1.0 if usual == returns[0] else HINTED, text, answers)
    yield from _of_sign(facts, diagnosis)
    if low == high == 0 or config.normalize_reward:
        return
    size = max(abs(low), abs(high))
    factor = abs(float(returns.mean()) / usual) if usual and len(returns) >= SAMPLE_EPISODES else 1.0
    odd = size > LARGE_REWARD or size < TINY_REWARD
    scaled = not 1 / 5 < factor < 5
    text = f"rewards are up to {size:.3g}" + (f", returns {factor:.3g} times the environment's own" if scaled else "")
    answers = {"rewards-large": Answer(size > LARGE_REWARD, size, f"at most {LARGE_REWARD:g} (random play)")}
    yield Finding("reward-scale", CONFIRMED if scaled else HINTED if odd else UNLIKELY, text, answers)


def _of_sign(facts: Facts, diagnosis: Diagnosis) -> Iterator[Finding]:
    threshold = diagnosis.performance.threshold
    low, high = facts.reward_low, facts.reward_high
    if not threshold or low == high == 0:
        return
    opposed = high <= 0 if threshold > 0 else low >= 0
    text = f"rewards between {low:.3g} and {high:.3g} " + ("can never" if opposed else "can")
    name, expected = "rewards-oppose-threshold", f"rewards that can add up to {threshold:g} (random play)"
    answers = {name: Answer(opposed, high if threshold > 0 else low, expected)}
    factor = PROVEN if opposed and facts.rewarded_share > 0.5 else HINTED if opposed else REFUTED
    yield Finding("reward-sign-flipped", factor, f"{text} add up to the threshold of {threshold:g}", answers)


def _of_endings(facts: Facts) -> Iterator[Finding]:
    if facts.truncated_share is None or len(facts.lengths) < SAMPLE_EPISODES:
        return
    equal = int(np.ptp(facts.lengths)) == 0 and int(facts.lengths[0]) >= 20
    if facts.truncated_share == 0 and not equal:
        return  # no time limit was met
    cut = facts.truncated_share == 0
    text = (
        f"all {len(facts.lengths)} episodes terminate after {facts.lengths[0]} steps"
        if cut
        else f"{facts.truncated_share:.0%} of the episodes are truncated"
    )
    expected = "truncations, as all episodes are equally long (random play)"
    answers = {"equal-lengths-not-truncated": Answer(cut, float(facts.lengths[-1]), expected)}
    yield Finding("truncation-as-termination", CONFIRMED if cut else REFUTED, text, answers)
