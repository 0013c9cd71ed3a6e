"""Changes: computed from the run, valid by construction, written as they can be used."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.recommend.changes import CHANGES, change_for
from gymnasium_solver.recommend.diagnosis import document
from gymnasium_solver.recommend.recommendations import _valid, recommend
from tests.diagnose.test_inference import STILL
from tests.made_runs import FAILING, HEALTHY, flat, line, make_readings


def first(**fields: object) -> dict:
    return document(diagnose(make_readings(FAILING | STILL, **fields)))["recommendations"][0]


def test_a_rate_out_of_range_goes_back_to_one_known_to_work() -> None:
    change = first(policy_lr=1e-6)["set"]
    assert change == {"policy_lr": to_dict(load_config("CartPole-v1:ppo"))["policy_lr"]}


def test_a_rate_within_range_moves_from_where_it_is() -> None:
    assert change_for("learning-rate-too-high", make_readings(policy_lr=1e-3))["policy_lr"] == pytest.approx(2e-4)
    assert change_for("learning-rate-too-low", make_readings(policy_lr=1e-3))["policy_lr"] == pytest.approx(5e-3)


def test_yaml_and_command_say_the_same_as_set() -> None:
    entry = first(policy_lr=1e-6)
    block = yaml.safe_load(entry["yaml"])["ppo"]
    words = shlex.split(entry["cli"])
    assert words[:3] == ["gsolve", "train", "CartPole-v1:ppo"]
    settings = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    by_yaml = load_config("CartPole-v1:ppo", {**block, "max_env_steps": 50_000, "reward_threshold": 475.0})
    by_command = load_config("CartPole-v1:ppo", [*settings, "reward_threshold=475"])
    assert to_dict(by_yaml)["policy_lr"] == to_dict(by_command)["policy_lr"] == entry["set"]["policy_lr"]
    assert by_command.max_env_steps == 50_000  # what the run had otherwise than its variant is kept


@pytest.mark.parametrize("cause", sorted(CHANGES))
@pytest.mark.parametrize("ref", ["CartPole-v1:ppo", "CartPole-v1:dqn", "Pendulum-v1:sac", "FrozenLake-v1:q_learning"])
def test_every_change_is_a_valid_config(cause: str, ref: str) -> None:
    run = make_readings(ref=ref)
    if not BY_ID[cause].applies_to(run.algo):
        return
    change = change_for(cause, run)
    assert _valid(change, run) == change
    if change:
        load_config(ref, {**run.config, **change})


def test_a_change_that_would_not_load_is_cut_down_to_what_does() -> None:
    run = make_readings()
    assert _valid({"policy_lr": 1e-3, "batch_size": 7}, run) == {"policy_lr": 1e-3}


def test_a_healthy_run_gets_no_change() -> None:
    assert document(diagnose(make_readings(HEALTHY)))["recommendations"] == []


def test_at_most_three_and_none_twice() -> None:
    curves = FAILING | STILL | {"train/metrics/epochs_done": flat(0.1)}
    made = document(diagnose(make_readings(curves, known=False)))["recommendations"]
    assert 1 <= len(made) <= 3
    assert len({str(entry["set"]) for entry in made}) == len(made)


def test_a_bug_is_answered_by_where_to_look() -> None:
    curves = FAILING | {"train/metrics/ratio_deviation_first": flat(0.5)}
    entry = document(diagnose(make_readings(curves)))["recommendations"][0]
    assert entry["cause"] == "old-log-prob-wrong"
    assert entry["set"] == {} and entry["yaml"] == ""
    assert "stored" in entry["rationale"]


def test_more_steps_follow_from_the_pace() -> None:
    slow = HEALTHY | {"train/roll/ep_rew_mean": line(22, 300), "val/roll/ep_rew_mean": line(22, 300)}
    change = change_for("training-too-short", make_readings(slow))
    assert 50_000 * 1.5 <= change["max_env_steps"] <= 200_000


def test_without_settings_the_reference_is_recommended_in_full() -> None:
    entry = first(known=False)
    assert entry["set"]
    assert entry["cli"].startswith("gsolve train CartPole-v1:ppo")


def own_file(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, name: str = "CartPole-v1") -> None:
    monkeypatch.chdir(folder)
    file = folder / "config" / "environments" / f"{name}.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


@pytest.mark.parametrize(("field", "value"), [("gamma", 0.0), ("policy_lr", 10.0)])
def test_a_fault_in_the_users_own_file_is_mended_from_what_ships(
    field: str, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = to_dict(load_config("CartPole-v1:ppo"))[field]
    own_file(tmp_path, f"env_id: CartPole-v1\nppo: {{n_envs: 8, {field}: {value}}}\n", monkeypatch)
    run = make_readings(FAILING)
    assert run.config[field] == value
    cause = {"gamma": "discount-too-low", "policy_lr": "learning-rate-too-high"}[field]
    assert change_for(cause, run)[field] == shipped


def test_of_an_own_environment_the_only_file_is_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_file(tmp_path, "env_id: Mine-v0\nppo: {policy_lr: 1.e-6, max_episode_steps: 50}\n", monkeypatch, "Mine-v0")
    diagnosis = diagnose(make_readings(FAILING | STILL, ref="Mine-v0:ppo"))
    entry = recommend(diagnosis)[0]
    assert entry["cause"] == "learning-rate-too-low"
    assert entry["set"]["policy_lr"]["start"] >= 5e-5  # in the usual range
    assert diagnosis.answers["time-limit-set"] is None  # how long this task takes, nobody knows


def test_a_broken_file_of_the_user_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_readings(FAILING | STILL, policy_lr=1e-6)
    own_file(tmp_path, "env_id: CartPole-v1\nppo: [1,\n", monkeypatch)
    entry = document(diagnose(run))["recommendations"][0]
    assert "policy_lr" in entry["set"]
    assert entry["cli"].startswith("gsolve train CartPole-v1:ppo")


def test_a_run_that_nearly_made_it_is_given_more_steps() -> None:
    levelled = np.concatenate([line(22, 440)[:20], flat(440)[:30]])
    run = make_readings(HEALTHY | {"val/roll/ep_rew_mean": levelled, "train/roll/ep_rew_mean": line(22, 440)})
    made = document(diagnose(run))
    assert [entry["set"].keys() for entry in made["recommendations"]] == [{"max_env_steps"}]
    assert made["recommendations"][0]["set"]["max_env_steps"] > 50_000
    assert "still rising" in made["recommendations"][0]["rationale"]
    assert "max_env_steps" in made["next_steps"][0]


@pytest.mark.parametrize("status", ["interrupted", "crashed", "failed"])
@pytest.mark.parametrize("budget", [100_000, 2_000_000])
def test_a_run_that_was_cut_short_is_to_go_on(status: str, budget: int) -> None:
    slow = HEALTHY | {"train/roll/ep_rew_mean": line(22, 200), "val/roll/ep_rew_mean": line(22, 200)}
    run = make_readings(slow, max_env_steps=budget)
    run.status, run.audit = status, []
    made = document(diagnose(run))
    assert not [entry for entry in made["recommendations"] if "max_env_steps" in entry["set"]]
    assert any("gsolve train --resume made-up" in step for step in made["next_steps"])


def test_a_run_that_a_finding_stopped_is_judged() -> None:
    run = make_readings(FAILING | STILL, policy_lr=1e-6, max_env_steps=2_000_000, reward_threshold=400)
    run.status, run.audit = "interrupted", []
    assert document(diagnose(run))["summary"]["verdict"].startswith("it ended after 2% of its budget")
    run.record = {**run.record, "stopped_by": "learning-rate-too-low"}
    made = document(diagnose(run))
    assert made["summary"]["verdict"].startswith("hardly learnt")
    assert "policy_lr" in made["recommendations"][0]["set"]
    assert not any("--resume" in step for step in made["next_steps"])


def test_the_remedy_in_an_error_is_taken_up() -> None:
    run = make_readings({name: curve for name, curve in HEALTHY.items() if "/roll/" not in name})  # no episode ended
    run.status = "failed"
    run.record = {"error": "an episode of Mine-v0 did not end within 27000 steps; set max_episode_steps"}
    made = document(diagnose(run))
    entry = made["recommendations"][0]
    assert entry["cause"] == "environment-error"
    assert entry["set"] == {"max_episode_steps": 1000}
    assert "in its summary" in entry["rationale"] and "27000" not in entry["rationale"], "what the run says stays apart"
    assert "did not end within 27000 steps" in made["summary"]["error"]
    run.record = {"error": "Mine-v0 failed in step(): KeyError: 40"}
    assert document(diagnose(run))["recommendations"][0]["set"] == {}


def test_advice_about_rollouts_does_not_go_in_circles() -> None:
    """Five thousand steps are too few for any rollout of whole episodes: it is the budget that has to grow."""

    def pendulum(**fields: object) -> Readings:
        run = make_readings(ref="Pendulum-v1:reinforce", **fields)
        run.spaces = {"action": {"kind": "box"}, "max_episode_steps": 200}
        return run

    long = pendulum(max_env_steps=5000)
    change = change_for("rollout-too-long", long)
    assert change.keys() == {"max_env_steps"}
    assert change["max_env_steps"] >= 50 * long.rollout
    short = pendulum(max_env_steps=5000, n_steps=6)
    assert change_for("rollout-too-short", short) == {**change, "n_steps": long.config["n_steps"]}
    told = diagnose(pendulum(**change)).answers
    assert not any(told[name].holds for name in ("updates-low", "rollout-low", "rollout-high"))


def test_a_rollout_that_a_budget_has_room_for_leaves_the_budget_alone() -> None:
    assert change_for("rollout-too-long", make_readings(n_steps=4096, n_envs=8)).keys() <= {"n_steps", "batch_size"}
    assert change_for("rollout-too-short", make_readings(n_steps=4, n_envs=4, batch_size=16)).keys() == {"n_steps"}


def test_no_more_steps_are_expected_than_the_budget_has() -> None:
    for budget in (5_000, 12_000, 50_000):
        entry = first(policy_lr=1e-6, max_env_steps=budget)
        impact = entry["expected_impact"]
        most = entry["set"].get("max_env_steps", budget)
        assert all(impact[end] is None or 0 <= impact[end] <= most for end in ("low", "mid", "high")), impact
        if impact["low"] is None:
            assert f"not expected within {most:,} steps" in impact["source"]
