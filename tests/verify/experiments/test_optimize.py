"""Optimising: what is tried, what is claimed, what is kept on record; trainings made up, but for one slow test."""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gymnasium_solver import api
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.recommend.impact import expected_impact
from gymnasium_solver.runs.impacts import read_impacts
from gymnasium_solver.verify.experiments.budget import parse_duration
from gymnasium_solver.verify.experiments.candidates import candidates, valid
from gymnasium_solver.verify.experiments.laboratory import RECORD, TRIALS
from gymnasium_solver.verify.experiments.optimize import optimize
from gymnasium_solver.verify.experiments.options import Options
from tests.made_runs import FAILING, HEALTHY, make_readings
from tests.verify.experiments.made_trainings import MadeWorkers, Steps, made

pytestmark = pytest.mark.integration

__all__ = ["made"]
Made = Callable[[Steps], list[MadeWorkers]]


def fields_of(**overrides: Any) -> dict[str, Any]:
    return to_dict(load_config("CartPole-v1:ppo", {"max_env_steps": 50_000, "reward_threshold": 475, **overrides}))


def rate(fields: dict[str, Any]) -> float:
    value = fields["policy_lr"]
    return float(value["start"] if isinstance(value, dict) else value)


def by_rate(fields: dict[str, Any]) -> float | None:
    """Only a sensible learning rate gets there; a little spread over seeds."""
    return 20_000 + 100 * (fields["seed"] % 10) if 5e-4 <= rate(fields) <= 5e-3 else None


def run(tmp_path: Path, fields: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    fields, diagnosed = fields or fields_of(policy_lr=1e-6), options.pop("run", None)
    return optimize(fields, "CartPole-v1:ppo", Options(runs_dir=tmp_path, **options), diagnosed)


def test_a_broken_configuration_is_mended_and_proven(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    document = run(tmp_path)
    assert document["winner"] and 5e-4 <= rate(document["set"]) <= 5e-3
    test = document["tests"][-1]
    assert test["verdict"] == "better" and test["seeds"] == 5 and test["p_value"] == pytest.approx(2 / 252)
    assert test["baseline"] == [None] * 5
    directory = Path(document["path"])
    assert "is better" in (directory / "report.md").read_text()
    tuned = yaml.safe_load((directory / "tuned.yaml").read_text())
    assert rate(tuned["ppo"]) == rate(document["set"])
    assert document["cli"].startswith("gsolve train CartPole-v1:ppo")


def test_seeds_of_the_test_were_not_raced_on(made: Made, tmp_path: Path) -> None:
    workers = made(by_rate)
    run(tmp_path)
    raced = {t.seed for t in workers[0].trained if t.cap is None}
    tested = {t.seed for t in workers[0].trained if t.cap is not None}
    assert tested and not raced & tested


def test_nothing_better_is_said_plainly(made: Made, tmp_path: Path) -> None:
    made(lambda fields: 20_000 + 1000 * (fields["seed"] * 7919 % 10))
    document = run(tmp_path, fields=fields_of())
    assert document["winner"] is None and document["yaml"] == ""
    assert document["status"] == "completed" and "othing" in document["verdict"]
    assert not (Path(document["path"]) / "tuned.yaml").exists()


def test_what_is_slower_never_wins(made: Made, tmp_path: Path) -> None:
    base = fields_of()
    made(
        lambda fields: (
            10_000 + fields["seed"] % 7
            if fields["policy_lr"] == base["policy_lr"]
            and fields["n_epochs"] == base["n_epochs"]
            and fields["n_steps"] == base["n_steps"]
            else 40_000
        )
    )
    assert run(tmp_path, fields=base)["winner"] is None


def test_a_budget_too_small_is_said_with_the_seeds_it_takes(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    document = run(tmp_path, max_runs=12)
    assert document["winner"] is None and document["status"] == "no verdict"
    assert "5 are needed" in document["verdict"] and "--budget" in document["verdict"]


def test_three_seeds_are_looked_at_twice(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    document = run(tmp_path, seeds=3)
    assert document["winner"] and document["tests"][0]["seeds"] == 6


def test_a_budget_that_ends_in_the_race_is_no_lack_of_ideas(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    document = run(tmp_path, max_runs=2)
    assert document["status"] == "no verdict" and "--resume" in document["verdict"]


def test_what_cannot_be_trained_is_an_error_not_a_verdict(tmp_path: Path) -> None:
    with pytest.raises(SolverError, match="NoSuchEnvironment"):
        run(tmp_path, fields=fields_of() | {"env_id": "NoSuchEnvironment-v0"})


def test_all_are_evaluated_after_as_many_steps() -> None:
    fields = fields_of()
    for change in ({"n_steps": 32}, {"n_envs": 4}, {"eval_freq_epochs": 100}, {"max_env_steps": 100_000}):
        whole = valid(fields, change)
        assert whole is not None
        between = [f["n_envs"] * f["n_steps"] * f["eval_freq_epochs"] for f in (fields, whole)]
        assert between[1] == pytest.approx(between[0], rel=0.1)


def test_one_seed_is_refused(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    with pytest.raises(ConfigError, match="cannot show anything; 5 are needed"):
        run(tmp_path, seeds=1)


def test_interrupted_it_goes_on_with_what_is_on_record(made: Made, tmp_path: Path) -> None:
    workers = made(by_rate)
    cut = run(tmp_path, max_runs=8)
    finished = len((Path(cut["path"]) / TRIALS).read_text().splitlines())
    whole = run(tmp_path, resume=cut["experiment"])
    assert whole["winner"] and whole["from_record"] >= finished - 1
    fresh = run(tmp_path / "other")
    assert whole["set"] == fresh["set"] and whole["tests"] == fresh["tests"]
    assert len(workers[1].trained) < len(workers[2].trained)


def test_what_another_process_is_at_is_not_taken_up(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    cut = run(tmp_path, max_runs=8)
    record = Path(cut["path"]) / RECORD
    alive = {"status": "running", "pid": os.getppid(), "host": socket.gethostname()}
    record.write_text(json.dumps(json.loads(record.read_text()) | alive))
    with pytest.raises(ConfigError, match="still running"):
        run(tmp_path, resume=cut["experiment"])


def test_a_line_cut_by_a_kill_is_trained_again(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    first = run(tmp_path)
    trials = Path(first["path"]) / TRIALS
    trials.write_text(trials.read_text()[:-20])
    assert run(tmp_path, resume=first["experiment"])["winner"] == first["winner"]


def test_another_question_under_the_same_name_is_refused(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    first = run(tmp_path)
    with pytest.raises(ConfigError, match="use the same as before"):
        run(tmp_path, resume=first["experiment"], fields=fields_of(policy_lr=1e-5))
    with pytest.raises(NotFoundError, match="no experiment 'nothing'"):
        run(tmp_path, resume="nothing")


def test_without_a_threshold_steps_cannot_be_the_objective(made: Made, tmp_path: Path) -> None:
    made(by_rate)
    with pytest.raises(ConfigError, match="objective"):
        api.optimize("CartPole-v1:ppo", objective="speed", runs_dir=tmp_path)


def test_estimated_and_measured_impact_are_on_record(made: Made, tmp_path: Path) -> None:
    # Twice and half the advised rate do not get there: the advice itself wins, and it has an estimate.
    made(lambda fields: 20_000 if rate(fields) == pytest.approx(0.002) else None)
    document = run(tmp_path)
    impact = document["impact"]
    assert impact["cause"] == "learning-rate-too-low" and impact["measured"] == 20_000
    assert impact["within"] == (impact["expected"]["low"] <= 20_000 <= (impact["expected"]["high"] or math.inf))
    assert json.loads((Path(document["path"]) / RECORD).read_text())["impact"] == impact
    (line,) = read_impacts(tmp_path)
    assert line["cause"] == "learning-rate-too-low" and line["steps"] == [20_000.0] * 5


def test_what_was_measured_here_becomes_the_expectation(made: Made, tmp_path: Path) -> None:
    readings = make_readings(FAILING, policy_lr=1e-6)
    shipped = expected_impact("learning-rate-too-low", readings)
    assert "benchmarks/faults" in shipped["source"]
    record = {
        "experiment": "a",
        "change": "b",
        "cause": "learning-rate-too-low",
        "usual": 10_000,
        "budget": 50_000,
        "steps": [30_000.0] * 4 + [None],
    }
    few = expected_impact("learning-rate-too-low", replace(readings, impacts=[record]))
    assert few == shipped
    enough = expected_impact("learning-rate-too-low", replace(readings, impacts=[record, record]))
    assert "10 seeds measured here" in enough["source"]
    assert enough["mid"] == float(f"{3 * readings.usual_steps:.2g}") and enough["high"] is None


def test_candidates_are_valid_different_and_led_by_the_advice() -> None:
    fields = fields_of(policy_lr=1e-6)
    found = candidates(diagnose(make_readings(FAILING, policy_lr=1e-6)), fields)
    configs = [valid(fields, one.change) for one in found]
    assert all(config is not None for config in configs)
    assert len({json.dumps(config, sort_keys=True) for config in configs}) == len(configs)
    assert found[0].expected_impact


def test_beside_a_healthy_configuration_numbers_are_moved_one_at_a_time() -> None:
    fields = fields_of()
    found = candidates(diagnose(make_readings(HEALTHY)), fields)
    assert len(found) >= 4 and all(len(one.change) == 1 for one in found)
    for one in found:
        whole = valid(fields, one.change)
        assert whole is not None and (whole["n_envs"] * whole["n_steps"]) % whole["batch_size"] == 0


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "fast", "-5m", "0", "5d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(SolverError, match="is not a time"):
        parse_duration(text)


@pytest.mark.slow
def test_a_learning_rate_far_too_low_is_mended_by_real_trainings(tmp_path: Path) -> None:
    document = api.optimize(
        "CartPole-v1:ppo", overrides=["policy_lr=1e-6", "max_env_steps=40000"], budget="4m", runs_dir=tmp_path
    )
    assert document["winner"] is not None and document["tests"][-1]["verdict"] == "better"
