"""What many runs say together, on runs whose causes were planted, and on runs where nothing was."""

from __future__ import annotations

import itertools
import json
import math
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.diagnose.history import NOT_SETTINGS, settings_of
from gymnasium_solver.diagnose.insights import insights
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.diagnose.separation import _difference, are_enough, separate
from gymnasium_solver.errors import ConfigError, NotFoundError
from gymnasium_solver.recommend.diagnosis import document
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.statistics import wilson
from tests.made_runs import FAILING, HEALTHY, line, write_run

RATES = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A run that solved its task and one that did not, to be copied."""
    directory = tmp_path_factory.mktemp("templates")
    return {
        solved: write_run(directory, HEALTHY if solved else FAILING, solved=solved).path for solved in (True, False)
    }


class Made:
    """A runs directory filled with copies that differ in what status.json and config.json say."""

    def __init__(self, runs_dir: Path, templates: dict[bool, Path]) -> None:
        self.runs_dir, self._templates, self._count = runs_dir, templates, 0

    def add(self, solved: bool, day: int = 1, record: dict[str, Any] | None = None, **fields: Any) -> Run:
        path = self.runs_dir / f"run-{self._count:04d}"
        self._count += 1
        shutil.copytree(self._templates[solved], path)
        for name, change in (
            ("config.json", fields),
            ("status.json", {"started_at": f"2025-01-{day:02d}T00:00:{self._count % 60:02d}Z", **(record or {})}),
        ):
            (path / name).write_text(json.dumps(json.loads((path / name).read_text()) | change))
        return Run(path)

    def insights(self, metric: str = "frames", env_id: str = "CartPole-v1") -> dict[str, Any]:
        return insights(env_id, metric, self.runs_dir)


@pytest.fixture
def made(tmp_path: Path, templates: dict[bool, Path]) -> Made:
    return Made(tmp_path / "runs", templates)


# What separates


def drawn(rng: np.random.Generator, count: int, settings: int = 10) -> list[dict[str, Any]]:
    return [
        {"algo_id": "ppo", "policy_lr": float(rng.choice(RATES)), "width": float(rng.normal())}
        | {"kind": str(rng.choice(["a", "b"]))}
        | {f"field{index}": float(rng.integers(4)) for index in range(settings)}
        for _ in range(count)
    ]  # fmt: skip


def test_a_planted_setting_is_found_with_its_split_and_no_other() -> None:
    rng = np.random.default_rng(0)
    settings = drawn(rng, 40)
    good = np.array([float(rng.random() < (0.9 if entry["policy_lr"] <= 3e-3 else 0.1)) for entry in settings])
    (found,) = separate(settings, good).found
    assert found.names == ("policy_lr",)
    assert (found.better, found.worse) == ("up to 0.003", "0.01 or more")
    assert found.shares[0] > 0.75 > 0.25 > found.shares[1]
    assert found.interval[0] > 0.3 and sum(found.sizes) == 40
    assert found.is_worse(0.02) and not found.is_worse(2e-4)


@pytest.mark.integration
def test_nothing_is_claimed_where_nothing_was_planted() -> None:
    rng = np.random.default_rng(0)
    repetitions = 200
    claims = sum(
        bool(separate(drawn(rng, 24), rng.integers(2, size=24).astype(float)).found) for _ in range(repetitions)
    )
    assert claims <= 0.05 * repetitions


@pytest.mark.integration
def test_a_strong_setting_does_not_lend_its_effect_to_others() -> None:
    rng = np.random.default_rng(1)
    wrong = found = 0
    for _ in range(100):
        settings = drawn(rng, 40)
        good = np.array([float(entry["policy_lr"] <= 1e-3) for entry in settings])
        names = [entry.names[0] for entry in separate(settings, good).found if not entry.not_apart_from]
        found += "policy_lr" in names
        wrong += any(name != "policy_lr" for name in names)
    assert found == 100
    assert wrong <= 5


def test_both_ends_of_a_range_can_fail() -> None:
    rng = np.random.default_rng(2)
    settings = drawn(rng, 60)
    good = np.array([float(entry["policy_lr"] in (3e-4, 1e-3, 3e-3)) for entry in settings])
    (found,) = separate(settings, good).found
    assert (found.better, found.worse) == ("0.0003 to 0.003", "below 0.0003 or above 0.003")


def test_settings_that_always_change_together_are_named_together() -> None:
    rng = np.random.default_rng(3)
    settings = [entry | {"optimizer": "adam" if entry["policy_lr"] <= 1e-3 else "sgd"} for entry in drawn(rng, 40)]
    for entry in settings:
        entry["batch_size"] = 1000 * entry["policy_lr"]
    good = np.array([float(entry["policy_lr"] <= 1e-3) for entry in settings])
    found = {entry.names[0]: entry for entry in separate(settings, good).found}
    assert found["policy_lr"].names == ("policy_lr", "batch_size")
    assert set(found) == {"policy_lr", "optimizer"}
    assert found["optimizer"].not_apart_from == ("policy_lr",) or found["policy_lr"].not_apart_from == ("optimizer",)


def test_what_changes_with_the_algorithm_is_not_credited_for_it() -> None:
    settings = [{"algo_id": algo, "gamma": gamma, "seeds": float(index % 3)} for index in range(12)
                for algo, gamma in (("ppo", 0.98), ("dqn", 0.9))]  # fmt: skip
    good = np.array([float(entry["algo_id"] == "ppo") for entry in settings])
    result = separate(settings, good)
    assert [entry.names[:1] for entry in result.found] == [("algo_id",)]
    assert "gamma" in {*result.found[0].names, *result.only_by_algorithm}


def test_a_setting_that_only_some_algorithms_have_is_tested_among_those() -> None:
    rng = np.random.default_rng(4)
    settings: list[dict[str, Any]] = [{"algo_id": "dqn", "tau": 1.0} for _ in range(20)]
    settings += [{"algo_id": "ppo", "clip_range": float(rng.choice([0.1, 0.2, 0.4]))} for _ in range(30)]
    good = np.array([float(entry.get("clip_range", 0.4) <= 0.2) for entry in settings])
    found = {entry.names[0]: entry for entry in separate(settings, good).found}
    assert sum(found["clip_range"].sizes) == 30
    assert found["clip_range"].better == "up to 0.2"


def test_one_setting_in_nearly_all_configurations_is_not_tested() -> None:
    settings = [{"algo_id": "ppo", "gamma": 0.9 if index < 2 else 0.99} for index in range(14)]
    result = separate(settings, np.array([1.0, 0.0] * 7))
    assert result.untested == ["gamma"]
    assert not result.tested


def test_unset_and_schedules_are_values() -> None:
    schedule = {"start": 0.002, "end": 0.0, "schedule": "linear"}
    assert settings_of({"policy_lr": schedule, "seed": 3, "target_kl": None, "hidden_dims": [8, 8]}) == {
        "policy_lr": 0.002, "policy_lr.schedule": "linear", "target_kl": None, "hidden_dims": "[8, 8]"
    }  # fmt: skip
    settings = [settings_of({"algo_id": "ppo", "policy_lr": schedule if index % 2 else 0.002}) for index in range(24)]
    (found,) = separate(settings, np.array([0.0, 1.0] * 12)).found
    assert (found.names, found.better, found.worse) == (("policy_lr.schedule",), "linear", "constant")


def test_intervals_against_published_values() -> None:
    assert wilson(1.0, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    # Newcombe 1998, table II, example (a): 56 of 70 against 48 of 80
    assert _difference((56 / 70, 48 / 80), (70, 80)) == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_few_configurations_are_not_enough_however_many_seeds(made: Made) -> None:
    for seed in range(10):
        for rate in RATES[:3]:
            made.add(rate != RATES[0], policy_lr=rate, seed=seed)
    separating = made.insights()["separating"]
    assert separating["status"] == "not enough runs"
    assert "4 more solved and 5 more failed" in separating["why"]
    assert not are_enough(np.array([1.0] * 20 + [0.0] * 5))


def test_from_the_runs_directory(made: Made) -> None:
    rng = np.random.default_rng(5)
    for index in range(30):
        rate = RATES[index % 6]
        made.add(rate <= 3e-3, policy_lr=rate, gamma=float(rng.choice([0.9, 0.95, 0.99])), n_envs=4 + index)
    separating = made.insights()["separating"]
    assert [entry["field"] for entry in separating["fields"]] == ["policy_lr"]
    assert separating["fields"][0]["better"] == "up to 0.003"


def test_without_a_threshold_the_better_half_is_told_from_the_worse(made: Made) -> None:
    for index in range(24):
        made.add(
            index % 2 == 0, record={"threshold": None, "solved": False}, env_id="Own-v0", n_envs=4 + index,
            activation="tanh" if index % 2 == 0 else "relu", reward_threshold=None,
        )  # fmt: skip
    found = made.insights(env_id="Own-v0")
    assert found["metric"] == "return" and found["threshold"] is None
    assert [entry["field"] for entry in found["separating"]["fields"]] == ["activation"]
    assert found["best"][0]["solved"] is None
    assert found["best"][0]["final_reward"]["iqm"] == 500


# Which runs count


def test_the_same_settings_and_seed_count_once(made: Made) -> None:
    for _ in range(3):
        made.add(True, seed=1)
    made.add(True, seed=2)
    made.add(True, seed=2, engine="envpool", checkpoint_freq_epochs=3)  # carried out otherwise, learnt alike
    found = made.insights()
    assert found["configurations"] == 1
    assert found["best"][0]["seeds"] == 2
    assert found["runs"]["repeated"] == 3


def test_runs_that_were_cut_short_are_not_failures(made: Made) -> None:
    made.add(True)
    for status in ("interrupted", "failed", "running"):
        made.add(False, record={"status": status, "pid": None, "heartbeat": 0}, seed=7)
    made.add(False, record={"status": "diverged"}, seed=8)
    runs = made.insights()["runs"]
    assert (runs["solved"], runs["failed"], runs["unfinished"]) == (1, 1, 3)


def test_all_are_judged_by_the_threshold_that_most_aimed_at(made: Made) -> None:
    for seed in range(3):
        made.add(True, seed=seed)
    easy = {"threshold": 20.0, "solved": True}
    made.add(False, record=easy, seed=11, reward_threshold=20.0, stop_when_solved=False)  # went on: never got to 475
    made.add(False, record=easy, seed=12, reward_threshold=20.0)  # stopped at 20: no one knows
    made.add(True, record={"threshold": 600.0, "solved": False}, seed=13, reward_threshold=600.0)
    runs = made.insights()["runs"]
    assert (runs["solved"], runs["failed"], runs["unfinished"]) == (4, 1, 1)


def test_an_imported_run_without_a_verdict_is_judged_by_its_curve(made: Made) -> None:
    run = made.add(True, seed=None)
    record = json.loads((run.path / "status.json").read_text())
    del record["solved"], record["threshold"]
    (run.path / "status.json").write_text(json.dumps(record | {"imported_from": "sb3"}))
    (run.path / "config.json").write_text(json.dumps({"env_id": "CartPole-v1", "algo_id": "trpo", "gamma": 0.9}))
    found = made.insights()
    assert found["runs"]["solved"] == 1 and found["threshold"] == 475
    assert found["best"][0]["command"] is None
    assert found["best"][0]["differs"] == {"algo_id": "trpo", "gamma": 0.9}


# The best


def test_the_share_of_solved_seeds_comes_first_then_frames(tmp_path: Path) -> None:
    fast = HEALTHY | {"val/roll/ep_rew_mean": np.minimum(line(22, 2000), 500)}
    for seed in (1, 2):
        write_run(tmp_path, HEALTHY, solved=True, seed=seed, gamma=0.9)
        write_run(tmp_path, fast, solved=True, seed=seed, gamma=0.95)
    write_run(tmp_path, fast, solved=True, seed=1, gamma=0.99)
    write_run(tmp_path, FAILING, solved=False, seed=2, gamma=0.99)
    best = insights("CartPole-v1", runs_dir=tmp_path)["best"]
    assert [entry["differs"]["gamma"] for entry in best] == [0.95, 0.9, 0.99]
    assert [entry["solved"] for entry in best] == [2, 2, 1]
    assert best[0]["frames_to_threshold"]["iqm"] <= 13_000 < 40_000 < best[1]["frames_to_threshold"]["iqm"]
    assert math.isnan(best[2]["frames_to_threshold"]["interval"][0])
    assert not any(entry["one_seed"] for entry in best)


def test_the_command_trains_the_same_configuration(made: Made) -> None:
    fields: dict[str, Any] = {
        "policy_lr": {"start": 0.003, "end": 1e-5, "schedule": "cosine", "warmup": 0.1, "from": 0.0, "to": 1.0},
        "hidden_dims": [64, 32], "activation": "relu", "target_kl": 0.02, "normalize_obs": True,
    }  # fmt: skip
    made.add(True, **fields)
    (entry,) = made.insights()["best"]
    assert entry["one_seed"] and entry["command"].endswith("--seeds 5")
    program, verb, ref, *rest = shlex.split(entry["command"])
    assert (program, verb) == ("gsolve", "train")
    again = to_dict(load_config(ref, [word for flag, word in itertools.pairwise(rest) if flag == "-s"]))
    trained = Run(made.runs_dir / "run-0000").config
    assert {k: v for k, v in again.items() if k not in NOT_SETTINGS} == {
        k: v for k, v in trained.items() if k not in NOT_SETTINGS
    }


# Over time


def fall(made: Made, sign: int) -> dict[str, Any]:
    """Configurations over twelve days, of which only the later (or the earlier) ones solve the task."""
    for day in range(1, 13):
        made.add(sign * (day - 6.5) > 0, day=day, n_envs=day)
    return made.insights()["over_time"]


def test_later_configurations_that_do_better_are_a_trend(made: Made) -> None:
    found = fall(made, 1)
    assert found["trend"]["verdict"] == "getting better"
    assert found["period"] == "day" and len(found["periods"]) == 12
    assert found["periods"][0]["best_so_far"] is None
    assert found["periods"][-1]["best_so_far"] > 0


def test_later_configurations_that_do_worse_are_a_trend_too(made: Made) -> None:
    assert fall(made, -1)["trend"]["verdict"] == "getting worse"


def test_seeds_of_one_configuration_are_no_trend(made: Made) -> None:
    for day in range(1, 21):
        made.add(day > 10, day=day, seed=day)
    found = made.insights()["over_time"]
    assert found["trend"]["verdict"] == "too few configurations"
    assert found["period"] == "week"


# Bad input


def test_an_environment_without_runs_names_the_nearest_that_has_some(made: Made) -> None:
    made.add(True)
    with pytest.raises(NotFoundError, match=r"closest name with runs is CartPole-v1 \(1 of them\)"):
        made.insights(env_id="CartPole-v0")


def test_an_empty_directory_and_an_unknown_metric(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has no runs yet"):
        insights("CartPole-v1", runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="frames, seconds, return"):
        insights("CartPole-v1", "speed", tmp_path)


def test_damaged_runs_do_not_spoil_the_others(made: Made) -> None:
    for seed in range(3):
        made.add(True, seed=seed)
    (made.add(True, seed=4).path / "metrics.csv").write_text("rubbish")
    (made.add(True, seed=5).path / "status.json").write_text("{")
    (made.add(True, seed=6).path / "config.json").write_text("{")
    found = made.insights()
    assert found["best"][0]["solved"] >= 4
    assert math.isfinite(found["best"][0]["frames_to_threshold"]["iqm"])


# What a diagnosis says of it


def diagnosed(run: Run) -> dict[str, Any]:
    return document(diagnose(read(run)))


def test_a_setting_beyond_what_solved_runs_had_is_told(made: Made) -> None:
    for seed, rate in enumerate((1e-3, 2e-3, 3e-3, 3e-3)):
        made.add(True, policy_lr=rate, seed=seed)
    found = diagnosed(made.add(False, policy_lr=0.03))
    assert found["history"]["outside"] == [{"field": "policy_lr", "low": 1e-3, "high": 3e-3, "value": 0.03}]
    range_ = "the solved ones had policy_lr 0.001 to 0.003, this run has 0.03"
    assert f"4 of 4 other runs of CartPole-v1 here were solved; {range_}" in found["next_steps"]


def test_a_setting_that_separates_is_told_with_both_shares(made: Made) -> None:
    for index in range(24):
        made.add(index % 6 <= 3 or index == 5, policy_lr=RATES[index % 6], n_envs=4 + index)
    found = diagnosed(made.add(False, policy_lr=0.012))
    assert [entry["field"] for entry in found["history"]["separating"]] == ["policy_lr"]
    assert any("with policy_lr up to 0.003, 100% were; with 0.01 or more, 12%" in step for step in found["next_steps"])


@pytest.mark.parametrize("solved", [0, 3])
def test_without_enough_history_nothing_is_said(made: Made, solved: int) -> None:
    for seed in range(solved):
        made.add(True, policy_lr=RATES[seed], seed=seed)
    found = diagnosed(made.add(False, policy_lr=0.5))
    assert "history" not in found
    assert not any("other runs" in step for step in found["next_steps"])


def test_history_changes_no_ranking(made: Made) -> None:
    """Beyond what the newest run that solved the task always did."""
    for index in range(12):
        made.add(index % 2 == 0, policy_lr=RATES[index % 6], gamma=0.9 + index / 1000)
    newest = made.add(True, policy_lr=1e-3)
    readings = read(made.add(False, policy_lr=0.03))
    assert readings.solved_before is not None and readings.solved_before[0] == newest.run_id
    ranked = [(entry.cause.id, entry.confidence) for entry in diagnose(readings).ranked]
    readings = read(Run(made.runs_dir / "run-0013"))
    readings.beside = [past for past in readings.beside if past.run_id == newest.run_id]
    assert ranked == [(entry.cause.id, entry.confidence) for entry in diagnose(readings).ranked]
