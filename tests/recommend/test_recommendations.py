"""Changes: computed from the run, valid by construction, written as they can be used."""

from __future__ import annotations

import shlex

import pytest
import yaml

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.diagnose.causes import BY_ID
from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.recommend.changes import CHANGES, change_for
from gymnasium_solver.recommend.diagnosis import whole_document
from gymnasium_solver.recommend.recommendations import _valid
from tests.diagnose.test_inference import STILL
from tests.made_runs import FAILING, HEALTHY, flat, line, make_readings


def first(**fields: object) -> dict:
    return whole_document(diagnose(make_readings(FAILING | STILL, **fields)))["recommendations"][0]


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
    assert whole_document(diagnose(make_readings(HEALTHY)))["recommendations"] == []


def test_at_most_three_and_none_twice() -> None:
    curves = FAILING | STILL | {"train/metrics/epochs_done": flat(0.1)}
    made = whole_document(diagnose(make_readings(curves, known=False)))["recommendations"]
    assert 1 <= len(made) <= 3
    assert len({str(entry["set"]) for entry in made}) == len(made)


def test_a_bug_is_answered_by_where_to_look() -> None:
    curves = FAILING | {"train/metrics/ratio_deviation_first": flat(0.5)}
    entry = whole_document(diagnose(make_readings(curves)))["recommendations"][0]
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
