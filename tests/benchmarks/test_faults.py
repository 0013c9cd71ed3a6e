"""The fault benchmark: cases are well formed, faults are planted and taken away again, verdicts follow the numbers."""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from faults import admission, diagnosis, experiments, impact, intervals, score, tables, training
from faults.cases import SEEDS, Case, all_cases
from faults.patches import PATCHES
from faults.references import REFERENCES
from faults.wrappers import ConstantObservation

from gymnasium_solver.config.load import to_dict
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter

pytestmark = pytest.mark.integration

CASES = all_cases()
BROKEN = [case for case in CASES.values() if case.cause]

# Every cause that a case may name.
CAUSES = set(
    """
    learning-rate-too-low learning-rate-too-high learning-rate-decays-too-soon gradient-clip-too-tight
    clip-range-too-small entropy-bonus-too-high premature-entropy-collapse discount-too-low gae-lambda-unsuited
    too-many-update-epochs batch-too-small batch-too-large rollout-too-short rollout-too-long too-few-updates
    learning-starts-too-late exploration-too-high exploration-too-low target-network-stale target-network-missing
    temperature-too-high value-loss-swamps-policy value-clip-too-tight training-too-short replay-too-small
    plasticity-loss target-kl-too-tight reinforce-variance q-overestimation missing-advantage-normalization
    network-too-small images-without-cnn dead-units constant-observation partial-observability observation-scale
    observation-noise reward-scale constant-reward reward-sign-flipped sparse-reward actions-have-no-effect
    action-scaling action-saturation duplicate-seeds time-limit-too-short environment-error slow-environment
    evaluation-dominates normalizer-mismatch old-log-prob-wrong advantage-sign-flipped done-not-masked
    wrong-action-value zero-initialization kl-estimator-wrong non-finite-values dead-surrogate
    truncation-as-termination q-value-divergence
    """.split()  # noqa: SIM905
)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_every_case_builds_a_config_that_differs_from_its_reference_as_it_says(case: Case) -> None:
    ours, clean = case.config(3), case.reference.config({}, 3)
    changed = {name for name in type(ours).model_fields if getattr(ours, name) != getattr(clean, name)}
    # An epoch of an off-policy run is derived from other fields.
    assert changed - {"n_steps"} == set(case.overrides) - {"n_steps"} or not case.overrides
    assert ours.seed == 3
    assert case.name.startswith(case.reference.name + ".")


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_every_fault_has_one_way_in_and_a_known_cause(case: Case) -> None:
    assert set(case.causes) <= CAUSES
    assert case.wrapper or case.patch or case.overrides
    assert case.fix, "what would repair it"
    assert case.patch is None or case.patch in PATCHES


def test_splits_are_about_sixty_to_forty_and_hold_every_cause_that_has_two_cases() -> None:
    by_cause: dict[str, list[str]] = defaultdict(list)
    for case in BROKEN:
        by_cause[str(case.cause)].append(case.split)
    for cause, splits in by_cause.items():
        assert len(splits) == 1 or set(splits) == {"calibration", "test"}, cause
    share = sum(case.split == "test" for case in BROKEN) / len(BROKEN)
    assert 0.35 < share < 0.5
    assert not set(SEEDS["calibration"]) & set(SEEDS["test"]) & set(SEEDS["fresh"])


def test_the_benchmark_is_as_large_and_as_wide_as_it_claims() -> None:
    assert len({case.reference.env_id for case in BROKEN}) >= 4
    assert {case.reference.algo_id for case in BROKEN} >= {"ppo", "a2c", "reinforce", "dqn", "ddpg", "td3", "sac"}
    bites = admission.admitted()
    measured = {row["case"] for row in json.loads(admission.TABLE.read_text())}
    assert measured == set(CASES), "train and admit after a change of the catalogue"
    assert sum(bites.values()) >= 45
    assert sum(not bitten for bitten in bites.values()) >= 45
    assert not any(bitten for name, bitten in bites.items() if CASES[name].cause is None)


def test_wrapped_environment_is_unseen_in_the_registry_and_gone_afterwards() -> None:
    before = gym.spec("CartPole-v1")
    case = CASES["ppo-cartpole.constant-observation"]
    with case.planted():
        assert gym.spec("CartPole-v1").reward_threshold == before.reward_threshold
        env = gym.make("CartPole-v1", disable_env_checker=True)
        assert any(isinstance(layer, ConstantObservation) for layer in _chain(env))
        obs, _ = env.reset(seed=0)
        assert not obs.any()
    assert gym.spec("CartPole-v1") is before
    assert gym.make("CartPole-v1").reset(seed=0)[0].any()


def _chain(env: gym.Env) -> list[gym.Env]:
    return [env, *(_chain(env.env) if isinstance(env, gym.Wrapper) else [])]


@pytest.mark.parametrize("name", PATCHES)
def test_patches_are_undone(name: str) -> None:
    from gymnasium_solver.algorithms import dqn, ppo, sac, td3
    from gymnasium_solver.envs import local
    from gymnasium_solver.networks import actor_critic, critics, layers, policy
    from gymnasium_solver.ops import losses, tanh_gaussian
    from gymnasium_solver.train import learner, replay_feed

    modules = (td3, dqn, ppo, sac, local, actor_critic, critics, layers, policy, losses, tanh_gaussian)
    owners = (*modules, replay_feed, learner, replay_feed.Replay, replay_feed.ReplayFeed)
    before = [dict(vars(owner)) for owner in owners]
    with PATCHES[name]():
        assert any(dict(vars(owner)) != old for owner, old in zip(owners, before, strict=True)), "it changes something"
    assert all(dict(vars(owner)) == old for owner, old in zip(owners, before, strict=True))


def first_update(case: Case) -> dict[str, float]:
    """What one update of the case reports, on made-up experience."""
    import jax

    from gymnasium_solver.envs import describe
    from gymnasium_solver.train import learner

    config = case.config(0, {"n_envs": 2, "n_steps": 8, "batch_size": 8, "n_epochs": 1, "hidden_dims": [4]})
    rng = np.random.default_rng(0)
    with case.planted():
        algorithm = learner.make_algorithm(config, describe(config))
        batch = {
            "obs": rng.standard_normal((9, 2, 4)).astype(np.float32),
            "action": rng.integers(0, 2, (8, 2)),
            "reward": np.ones((8, 2), np.float32),
            "terminated": rng.random((8, 2)) < 0.3,
            "truncated": np.zeros((8, 2), bool),
            "valid": np.ones((8, 2), bool),
        }
        hp = {name: np.float32(0.0 if name == "ent_coef" else 1e-2) for name in algorithm.scheduled}
        update = jax.jit(algorithm.update)
        _, metrics, _ = update(algorithm.init(rng), batch, hp, algorithm.update_noise(rng))
    return metrics.to_dict()


@pytest.fixture(scope="module")
def sound() -> dict[str, float]:
    return first_update(CASES["ppo-cartpole.clean"])


@pytest.mark.parametrize(
    ("name", "metric", "low", "high"),
    [
        ("ppo-cartpole.dead-surrogate", "train/metrics/grad_norm/actor_head", 0.0, 1e-9),
        ("ppo-cartpole.zero-init", "train/metrics/dead_units", 1.0, 1.0),
        ("ppo-cartpole.old-log-prob-missing", "train/metrics/ratio_deviation_first", 0.3, 0.8),
    ],
)
def test_planted_fault_shows_where_it_should_and_only_with_the_fault(
    name: str, metric: str, low: float, high: float, sound: dict[str, float]
) -> None:
    assert low <= first_update(CASES[name])[metric] <= high
    assert not low <= sound[metric] <= high


def test_score_is_zero_for_nothing_learnt_and_one_from_the_threshold_on() -> None:
    reference = REFERENCES["ppo-cartpole"]
    assert reference.score(reference.floor) == 0
    assert reference.score(500) == reference.score(475) == 1
    scaled = CASES["ppo-cartpole.reward-scale"]
    assert scaled.score(475_000) == 1 and scaled.score(22_000) == 0


def test_welch_interval_against_scipy() -> None:
    from scipy import stats

    before, after = [0.1, 0.2, 0.05], [0.9, 1.0, 0.6]
    expected = stats.ttest_ind(after, before, equal_var=False).confidence_interval(0.95)
    assert intervals.welch_interval(before, after) == pytest.approx((expected.low, expected.high))
    assert intervals.welch_interval([0, 0, 0], [1, 1, 1]) == (1, 1)


def test_calibration_error_by_hand() -> None:
    assert intervals.calibration_error([0.85, 0.85, 0.25, 0.25], [True, False, False, False]) == pytest.approx(0.3)
    assert intervals.calibration_error([1.0, 1.0], [True, True]) == 0
    assert intervals.calibration_error([], []) is None


def test_bootstrap_holds_the_mean_and_narrows_with_more_cases() -> None:
    few, many = intervals.over_cases([1, 0, 1, 1]), intervals.over_cases([1, 0, 1, 1] * 25)
    assert few is not None and many is not None
    assert few.low <= few.value == many.value <= few.high
    assert many.high - many.low < few.high - few.low
    assert intervals.over_cases([]) is None


@pytest.mark.parametrize(
    ("after", "fixed", "harmed"),
    [
        ([1.0, 1.0, 0.95], True, False),
        ([0.5, 0.5, 0.52], False, False),  # better, but not by 80 % of the gap
        ([1.0, 0.1, 1.0], False, False),  # not on every seed
        ([0.0, 0.0, 0.01], False, True),
    ],
)
def test_verdict(after: list[float], fixed: bool, harmed: bool) -> None:
    assert score.verdict([0.1, 0.12, 0.11], after, [1.0, 1.0, 1.0]) == {"fixed": fixed, "harmed": harmed}


def test_fault_bites_only_beyond_the_spread_of_the_seeds() -> None:
    assert admission.bites([1.0, 1.0, 0.98], [0.1, 0.2, 0.0])
    assert not admission.bites([1.0, 1.0, 1.0], [0.9, 0.88, 0.89])  # too small a drop
    assert not admission.bites([1.0, 1.0, 1.0], [1.0, 0.1, 0.9])  # one bad seed


def advice(cause: str, set_: dict[str, Any], confidence: float = 0.9, severity: str = "critical") -> dict[str, Any]:
    impact = {"metric": "score", "low": 0.9, "mid": 1.0, "high": 1.0, "source": "test"}
    bottleneck = {"cause": cause, "category": "bug", "severity": severity, "confidence": confidence, "evidence": []}
    return {
        "bottlenecks": [bottleneck],
        "recommendations": [{"priority": "critical", "cause": cause, "set": set_, "expected_impact": impact}],
    }


def test_advice_is_trained_as_it_is_given_and_repairs_count_only_for_the_right_cause() -> None:
    config_case, code_case = CASES["ppo-cartpole.lr-low"], CASES["ppo-cartpole.advantage-sign"]
    given = [advice("learning-rate-too-low", {"policy_lr": 1e-3})] * 3
    tasks = experiments.advice_tasks(config_case, given)
    assert [t and (t.case, t.seed, t.changes) for t in tasks] == [
        (config_case.name, seed, {"policy_lr": 1e-3}) for seed in SEEDS["fresh"]
    ]
    right = experiments.advice_tasks(code_case, [advice("advantage-sign-flipped", {})] * 3)
    assert [t and t.case for t in right] == ["ppo-cartpole.clean"] * 3
    wrong = experiments.advice_tasks(code_case, given)
    assert [t and t.case for t in wrong] == [code_case.name] * 3
    invalid = experiments.advice_tasks(config_case, [advice("x", {"batch_size": 7})] * 3)
    assert invalid == [None] * 3


@pytest.mark.parametrize("name", ["ppo-cartpole.lr-low", "dqn-cartpole.late-start", "q-frozenlake.greedy"])
def test_reset_to_defaults_undoes_the_fault_and_keeps_the_task(name: str) -> None:
    case = CASES[name]
    changes = experiments.reset(case)
    assert set(case.overrides) <= set(changes)
    config = case.config(0, changes)
    assert (config.max_env_steps, config.env_id) == (case.config(0).max_env_steps, case.reference.env_id)


def test_random_change_is_drawn_by_name_and_is_valid() -> None:
    case = CASES["ppo-cartpole.lr-low"]
    pool = [{"batch_size": 7}, {"ent_coef": 0.01}, {"policy_lr": 3e-4}]
    first = experiments.random_tasks(case, pool)
    assert first == experiments.random_tasks(case, pool)
    assert first[0] is not None and first[0].changes in pool[1:]
    assert experiments.random_tasks(case, [{"batch_size": 7}]) == [None] * 3


def test_impact_is_judged_in_the_metric_that_was_promised() -> None:
    case = CASES["ppo-cartpole.lr-low"]
    task = training.Task(case.name, 200, "advice", {"policy_lr": 1e-3})
    record = {"score": 0.95, "reward": 460.0, "solved": False, "steps": 50_176}
    document = advice("learning-rate-too-low", {"policy_lr": 1e-3})
    assert impact.covered(document, task, {task.key: record}) is True
    assert impact.covered(document, task, {task.key: record | {"score": 0.2}}) is False
    assert impact.covered(document, None, {}) is None
    assert impact.measured("env_steps_to_threshold", task, {task.key: record}) == math.inf
    assert impact.measured("unheard of", task, {task.key: record}) is None


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Four epochs on record, and a checkpoint."""
    writer = RunWriter.create(tmp_path, to_dict(CASES["ppo-cartpole.clean"].config(0)), command=["test"])
    for epoch in range(1, 5):
        row = {"train/cnt/epochs": epoch, "train/cnt/env_steps": 1024 * epoch, "train/hp/policy_lr": 1e-3}
        writer.metrics(row | {"val/roll/ep_rew_mean": 100.0 * epoch})
    writer.checkpoint(["last"], {"params": np.zeros(2, np.float32)}, {})
    writer.status("completed", solved=False)
    writer.close()
    return Run(writer.path)


def test_view_shows_no_more_than_it_says_and_leaves_the_run_alone(run: Run) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    with diagnosis.view(run.path, "metrics", 1.0) as path:
        seen = Run(path)
        assert set(seen.config) == {"env_id", "algo_id", "seed", "max_env_steps", "reward_threshold"}
        assert not any(name.startswith("train/hp/") for name in seen.metrics.names)
        assert "val/roll/ep_rew_mean" in seen.metrics.names
        assert seen.checkpoints() == []
    with diagnosis.view(run.path, "all", 1.0) as path:
        seen = Run(path)
        assert seen.config == run.config
        assert "last" in seen.checkpoints()
    with diagnosis.view(run.path, "config", 0.5) as path:
        seen = Run(path)
        assert seen.metrics.last("train/cnt/epochs") == 2
        assert "solved" not in seen.status and seen.status["status"] == "interrupted"
        assert seen.checkpoints() == []
    assert before == {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}


def test_summary_and_page_from_judged_cases() -> None:
    case, quiet = CASES["ppo-cartpole.lr-low"], CASES["ppo-cartpole.clean"]
    records: dict[tuple[str, str, int], dict[str, Any]] = {}
    for seed in SEEDS["calibration"]:
        records[case.name, "", seed] = {"score": 0.1}
        records[quiet.name, "", seed] = {"score": 1.0}
    plan = {
        policy: [training.Task(case.name, seed, policy) for seed in SEEDS["fresh"]]
        for policy in ("advice", "defaults", "random")
    }
    for policy, value in (("advice", 1.0), ("defaults", 0.1), ("random", 0.0)):
        for seed in SEEDS["fresh"]:
            records[case.name, policy, seed] = {"score": value, "reward": 1.0, "solved": False, "steps": 1}
    documents = [advice("learning-rate-too-low", {"policy_lr": 1e-3})] * 3
    rows = [
        score._judge(case, True, "calibration", documents, plan, records, [1.0] * 3),
        score._judge(quiet, False, "calibration", documents, {"advice": [None] * 3}, records, [1.0] * 3),
    ]
    summary = score.summarize(rows)
    assert summary["fix_advice"].value == 1 and summary["fix_defaults"].value == summary["fix_random"].value == 0
    assert summary["harm_random"].value == 1 and summary["harm"].value == 0
    assert summary["top1"].value == summary["top3"].value == 1
    assert summary["critical_on_quiet"].value == 1
    assert summary["calibration_error"] == pytest.approx(0.1)
    assert summary["impact_covered"].value == 1
    page = tables.render({"split": "calibration", "summary": summary, "information": {}, "cases": rows})
    assert "| fixed by the first recommendation | 100% (100% to 100%) | ≥ 80 % |" in page
    json.dumps(rows, default=score._plain)


def test_a_finished_run_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[training.Task] = []

    def results(tasks: list[training.Task], work: Path, jobs: int) -> Any:
        asked.extend(tasks)
        for task in tasks:
            yield {"case": task.case, "label": task.label, "seed": task.seed, "score": 1.0, "status": "completed"} | {
                "seconds": 0.0
            }

    monkeypatch.setattr(training, "_results", results)
    tasks = [training.Task("ppo-cartpole.clean", seed) for seed in (0, 1)]
    training.train_all(tasks[:1], tmp_path, 1)
    training.train_all(tasks, tmp_path, 1)
    assert asked == tasks
    assert np.mean([record["score"] for record in training.read_records(tmp_path).values()]) == 1.0
