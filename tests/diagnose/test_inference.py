"""From curves and settings to causes: the planted one first, none where nothing is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from gymnasium_solver.diagnose.causes import BY_ID, CAUSES
from gymnasium_solver.diagnose.engine import diagnose, severity
from gymnasium_solver.diagnose.evidence import BY_NAME, CATALOGUE, GROUP_OF, answers
from gymnasium_solver.diagnose.inference import likelihood, rank
from gymnasium_solver.diagnose.performance import judge
from gymnasium_solver.recommend.changes import CHANGES
from gymnasium_solver.recommend.diagnosis import document
from tests.made_runs import FAILING, HEALTHY, flat, line, make_readings

STILL = {
    "train/metrics/kl_divergence": flat(1e-8),
    "train/metrics/clip_fraction": flat(0),
    "train/metrics/entropy_relative": flat(0.999),
    "train/metrics/update_norm_ratio": flat(1e-5),
}


def causes(curves: dict[str, np.ndarray], **fields: object) -> list[str]:
    return [entry.cause.id for entry in diagnose(make_readings(FAILING | curves, **fields)).ranked]


def test_the_catalogue_names_only_evidence_that_exists() -> None:
    assert len(BY_NAME) == len(CATALOGUE)
    for cause in CAUSES:
        assert set(cause.evidence) | set(cause.needs) <= set(BY_NAME), cause.id
        assert set(cause.needs) <= set(cause.evidence), cause.id
    assert set(GROUP_OF) <= set(BY_NAME)
    assert set(CHANGES) <= set(BY_ID)


def test_every_cause_has_a_change_or_says_where_to_look() -> None:
    assert not [cause.id for cause in CAUSES if cause.id not in CHANGES and not cause.where]


def test_a_solved_run_gets_a_clean_bill() -> None:
    found = diagnose(make_readings(HEALTHY))
    assert found.performance.verdict == "solved"
    assert found.ranked == []


def test_a_solved_run_with_odd_settings_and_odd_metrics_gets_one_too() -> None:
    odd = HEALTHY | {"train/metrics/clip_fraction": flat(0.6), "train/metrics/kl_divergence": flat(0.2)}
    assert diagnose(make_readings(odd, policy_lr=0.1, n_epochs=50)).ranked == []


def test_a_broken_invariant_in_a_solved_run_is_told_but_not_critical() -> None:
    found = diagnose(make_readings(HEALTHY | {"train/metrics/ratio_deviation_first": flat(0.3)}))
    assert [entry.cause.id for entry in found.ranked] == ["old-log-prob-wrong"]
    assert severity(found, found.ranked[0]) == "low"


@pytest.mark.parametrize(
    ("cause", "curves", "fields"),
    [
        ("learning-rate-too-low", STILL, {"policy_lr": 1e-6}),
        ("gradient-clip-too-tight", STILL | {"train/metrics/grad_clip_fraction": flat(1.0)}, {"max_grad_norm": 1e-4}),
        (
            "clip-range-too-small",
            STILL | {"train/metrics/clip_fraction": flat(0.8), "train/metrics/entropy_relative": flat(0.9)},
            {"clip_range": 1e-3},
        ),
        (
            "learning-rate-too-high",
            {"train/metrics/kl_divergence": flat(2.0), "train/metrics/update_norm_ratio": flat(0.9)},
            {"policy_lr": 0.3},
        ),
        ("entropy-bonus-too-high", {"train/metrics/entropy_relative": flat(0.99)}, {"ent_coef": 3.0}),
        ("old-log-prob-wrong", {"train/metrics/ratio_deviation_first": flat(0.4)}, {}),
        ("constant-observation", STILL | {"train/data/obs_dead_dims": flat(4)}, {}),
        ("partial-observability", {"train/data/obs_dead_dims": flat(2)}, {}),
        ("observation-noise", {"train/data/obs_noise_share": flat(0.7)}, {}),
        ("actions-have-no-effect", {"train/data/action_effect": flat(1e-4)}, {}),
        (
            "reward-scale",
            {
                "train/data/reward_max": flat(1000),
                "train/data/return_mean": flat(20_000),
                "train/loss/value": flat(1e8),
                "train/metrics/grad_norm/all": flat(1e5),
                "train/metrics/grad_clip_fraction": flat(1.0),
            },
            {},
        ),
        (
            "reward-sign-flipped",
            {
                "train/data/reward_min": flat(-1),
                "train/data/reward_max": flat(-1),
                "train/roll/ep_rew_mean": line(-22, -9),
                "val/roll/ep_rew_mean": line(-22, -9),
            },
            {},
        ),
        (
            "advantage-sign-flipped",
            {
                "train/roll/ep_rew_mean": line(22, 9),
                "val/roll/ep_rew_mean": line(22, 9),
                "train/metrics/entropy_relative": line(1.0, 0.01),
            },
            {},
        ),
        ("schedule-not-in-force", {"train/hp/policy_lr": flat(1e-3)}, {"policy_lr": {"start": 1e-3, "end": 0}}),
        (
            "sparse-reward",  # MountainCar that never gets up: the same cost at every step, every episode cut off
            {
                "train/data/reward_min": flat(-1),
                "train/data/reward_max": flat(-1),
                "train/data/reward_zero_share": flat(0),
                "train/data/truncated_share": flat(1),
                "train/roll/ep_rew_mean": flat(-200),
                "val/roll/ep_rew_mean": flat(-200),
                "train/roll/ep_len_mean": flat(200),
                "train/data/return_mean": flat(-60),
            },
            {"env_id": "MountainCar-v0", "reward_threshold": -110.0},
        ),
        (
            "constant-reward",
            {
                "train/data/reward_zero_share": flat(1),
                "train/data/reward_min": flat(0),
                "train/data/reward_max": flat(0),
                "train/roll/ep_rew_mean": flat(0),
                "val/roll/ep_rew_mean": flat(0),
            },
            {},
        ),
        ("time-limit-too-short", {}, {"max_episode_steps": 40}),
        ("network-too-small", {}, {"hidden_dims": [1]}),
        ("target-kl-too-tight", STILL | {"train/metrics/epochs_done": flat(0.05)}, {"target_kl": 1e-6}),
    ],
)
def test_a_planted_cause_comes_first(cause: str, curves: dict[str, np.ndarray], fields: dict[str, object]) -> None:
    assert causes(curves, **fields)[0] == cause


def test_without_its_settings_a_run_that_stands_still_is_told_as_ambiguous() -> None:
    found = diagnose(make_readings(FAILING | STILL, known=False))
    assert "learning-rate-too-low" in [entry.cause.id for entry in found.ranked[:3]]
    assert found.ranked[0].confidence < 0.9
    known = diagnose(make_readings(FAILING | STILL, policy_lr=1e-6))
    assert known.ranked[0].confidence > 0.9


def test_a_schedule_that_is_in_force_is_no_evidence() -> None:
    curves = FAILING | {"train/hp/policy_lr": line(1e-3, 0.0)}
    found = diagnose(make_readings(curves, policy_lr={"start": 1e-3, "end": 0}))
    answer = found.answers["schedule-off"]
    assert answer is not None and not answer.holds


def test_a_setting_in_its_usual_range_speaks_against() -> None:
    assert causes(STILL)[:1] != ["learning-rate-too-low"]


def test_confidences_are_a_distribution_with_room_for_what_is_not_in_the_catalogue() -> None:
    total = sum(entry.confidence for entry in diagnose(make_readings(FAILING | STILL)).ranked)
    assert 0 < total < 1


def test_counted_runs_correct_the_guesses() -> None:
    cause = BY_ID["learning-rate-too-low"]
    guess = likelihood(cause, "kl-tiny", {})
    assert guess == pytest.approx(cause.evidence["kl-tiny"])
    never = {"causes": {cause.id: {"kl-tiny": (0, 94)}}}
    assert likelihood(cause, "kl-tiny", never) == pytest.approx(6 * guess / 100)


def test_evidence_that_was_not_measured_counts_neither_way() -> None:
    curves = {name: FAILING[name] for name in ("train/roll/ep_rew_mean", "val/roll/ep_rew_mean")}
    found = make_readings(curves, known=False)
    performance = judge(found)
    told = answers(found, performance)
    assert told["kl-tiny"] is None and told["policy_lr-low"] is None
    assert all(entry.confidence < 0.7 for entry in rank(told, performance, "ppo"))


@pytest.mark.parametrize(
    ("returns", "verdict"),
    [
        (line(22, 480), "solved"),
        (line(22, 440), "close"),
        (line(22, 300), "partial"),
        (flat(22, 1.0), "failing"),
        (np.concatenate([line(22, 460)[:30], flat(25)[:20]]), "collapsed"),
    ],
)
def test_the_verdict(returns: np.ndarray, verdict: str) -> None:
    curves = HEALTHY | {"train/roll/ep_rew_mean": returns, "val/roll/ep_rew_mean": returns}
    assert judge(make_readings(curves)).verdict == verdict


def test_a_run_without_a_threshold_is_judged_by_whether_it_learnt() -> None:
    for returns, verdict in ((line(-5, 80), "unknown"), (flat(3, 0.5), "failing")):
        curves = HEALTHY | {"train/roll/ep_rew_mean": returns, "val/roll/ep_rew_mean": returns}
        found = make_readings(curves)
        found.record = {}
        found.config = {**found.config, "env_id": "Mine-v0", "reward_threshold": None}
        assert judge(found).verdict == verdict


def test_what_was_learnt_before_the_first_evaluation_was_learnt() -> None:
    """An own environment without a threshold, at its maximum of 20 as soon as it is first evaluated."""
    rose = np.concatenate([[6.8], flat(20.0)[1:]])
    found = make_readings(HEALTHY | {"train/roll/ep_rew_mean": rose, "val/roll/ep_rew_mean": flat(20.0)})
    found.record = {}
    found.config = {**found.config, "env_id": "Mine-v0", "reward_threshold": None}
    assert judge(found).verdict == "unknown"


def test_the_document_has_the_contracts_keys() -> None:
    made = document(diagnose(make_readings(FAILING | STILL, policy_lr=1e-6)))
    assert list(made) == [
        "summary", "metrics", "bottlenecks", "recommendations", "next_steps", "outlook", "missing"
    ]  # fmt: skip
    named = "run_id env_id algo_id status env_steps best_reward last_reward threshold solved verdict"
    assert set(named.split()) <= set(made["summary"])
    first = made["bottlenecks"][0]
    assert {"cause", "category", "severity", "confidence", "evidence", "against"} <= set(first)
    assert first["severity"] == "critical"


def told(name: str, curves: dict[str, np.ndarray], ref: str, **fields: object) -> bool | None:
    answer = diagnose(make_readings(FAILING | curves, ref, **fields)).answers[name]
    return None if answer is None else answer.holds


SAC = {
    "train/metrics/q_bound": flat(100),  # rewards of up to 1, γ = 0.99
    "train/metrics/q_mean": flat(180),
    "train/metrics/q_max": flat(190),
    "train/data/reward_mean": flat(1),
    "train/roll/ep_len_mean": flat(200),
}


@pytest.mark.parametrize(("name", "metric"), [("q-beyond-bound", "q_max"), ("values-beyond-achievable", "q_mean")])
def test_what_entropy_is_worth_is_part_of_a_soft_value(name: str, metric: str) -> None:
    assert told("q-beyond-bound", SAC, "CartPole-v1:dqn")
    assert told("q-beyond-bound", SAC | {"train/metrics/alpha": flat(0.1), "train/metrics/entropy": flat(0.5)}, SOFT)
    warm = SAC | {"train/metrics/alpha": flat(3), "train/metrics/entropy": flat(0.5)}  # 1.5 a step: 250 in all
    assert not told(name, warm, SOFT)
    assert told(name, warm | {f"train/metrics/{metric}": flat(1000)}, SOFT)
    cold = SAC | {"train/metrics/alpha": line(6, 0), "train/metrics/entropy": flat(0.5)}
    assert not told(name, cold, SOFT), "values take time to follow a temperature that falls"
    assert not told("q-beyond-bound", SAC | {"train/metrics/alpha": flat(0.1)}, SOFT), "entropy unknown: within thrice"


SOFT = "CartPole-v1:sac"
EXPLODED = SAC | {
    "train/metrics/alpha": np.geomspace(1, 4000, 50),
    "train/metrics/entropy": flat(0.693),
    "train/metrics/q_mean": np.geomspace(1, 3700, 50),
    "train/metrics/q_max": np.geomspace(1, 3800, 50),
    "train/metrics/td_error": np.geomspace(1, 1000, 50),
    "train/loss/value": np.geomspace(1, 1e6, 50),
    "train/data/obs_noise_share": flat(1.0),
}


def test_a_temperature_in_the_thousands_comes_first() -> None:
    found = diagnose(make_readings(FAILING | EXPLODED, SOFT))
    assert found.ranked[0].cause.id == "temperature-too-high"
    assert found.ranked[0].confidence > 0.5
    assert not {"done-not-masked", "q-value-divergence"} & {entry.cause.id for entry in found.ranked}


@pytest.mark.parametrize(
    "curves",
    [
        {"train/metrics/alpha": flat(4000)},  # as it was set
        {"train/metrics/q_bound": flat(1e6)},  # rewards of 10,000
        {"train/metrics/entropy": flat(-3)},  # the policy is all but random: it is not entropy that pays
    ],
    ids=["high", "rewards", "certain"],
)
def test_a_temperature_that_does_not_run_away(curves: dict[str, np.ndarray]) -> None:
    assert told("alpha-runs-away", EXPLODED, SOFT)
    assert told("alpha-runs-away", EXPLODED | curves, SOFT) is False


@pytest.mark.parametrize(
    ("fields", "curves", "holds"),
    [
        ({}, {"train/hp/epsilon": flat(0.1)}, True),
        ({}, {"train/hp/epsilon": line(1, 0.02)}, True),
        ({}, {"train/hp/epsilon": flat(0)}, None),
        ({"exploration": "ucb"}, {}, None),
    ],
)
def test_equal_streams_are_a_fault_only_where_chance_acts(
    fields: dict[str, object], curves: dict[str, np.ndarray], holds: bool | None
) -> None:
    equal = curves | {"train/data/duplicate_envs": flat(3), "train/data/obs_std": flat(0.1)}
    assert told("streams-identical", equal, "CliffWalking-v1:q_learning", **fields) is holds
    found = {
        entry.cause.id
        for entry in diagnose(make_readings(FAILING | equal, "CliffWalking-v1:q_learning", **fields)).ranked
    }
    assert ("duplicate-seeds" in found) == bool(holds)
