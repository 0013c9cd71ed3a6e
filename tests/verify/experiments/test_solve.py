"""Solving: what it begins with, what follows from what, when it is done; trainings made up, but for one slow test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver import api
from gymnasium_solver.errors import SolverError
from gymnasium_solver.train.judge import Evaluation
from gymnasium_solver.verify.experiments.options import Options
from gymnasium_solver.verify.experiments.portfolio import beginnings, task
from gymnasium_solver.verify.experiments.solve import UNFAMILIAR, solve
from tests.verify.experiments.made_trainings import MadeWorkers, Steps, made

__all__ = ["made"]
Made = Callable[[Steps], list[MadeWorkers]]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Mean returns that the evaluations on fresh episodes have, in this order; the last one from then on."""
    means = [500.0]

    def evaluate(*_: Any, episodes: int, **__: Any) -> Evaluation:
        mean = means.pop(0) if len(means) > 1 else means[0]
        return Evaluation(np.full(episodes, mean), np.full(episodes, 10))

    monkeypatch.setattr("gymnasium_solver.train.judge.evaluate_checkpoint", evaluate)
    return means


def run(tmp_path: Path, overrides: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return solve("CartPole-v1", Options(runs_dir=tmp_path, jobs=1, **{"max_runs": 8, **options}), overrides)


def test_the_first_training_that_passes_ends_it(made: Made, passing: list[float], tmp_path: Path) -> None:
    made(lambda fields: 20_000)
    document = run(tmp_path)
    assert document["solved"] and document["trainings"] == 1
    assert document["solution"]["evaluation"]["episodes"] == 100
    assert "is solved" in (Path(document["path"]) / "report.md").read_text()
    assert (Path(document["path"]) / "solution.yaml").exists()


def test_what_fails_is_diagnosed_and_its_advice_tried(made: Made, passing: list[float], tmp_path: Path) -> None:
    workers = made(lambda fields: 20_000 if fields["policy_lr"] != 1e-6 else None)
    document = run(tmp_path, overrides={"policy_lr": 1e-6}, use_shipped=False)
    assert document["solved"]
    later = [attempt for attempt in document["attempts"] if attempt["follows"] is not None]
    assert later and all(attempt["why"].startswith("after ") for attempt in later)
    configs = [str(sorted({**t.fields, "seed": 0}.items())) for t in workers[0].trained]
    assert len(set(configs)) == len(configs)


def test_a_policy_that_fails_on_fresh_episodes_is_none(made: Made, passing: list[float], tmp_path: Path) -> None:
    passing[:] = [450.0, 480.0]
    made(lambda fields: 20_000)
    document = run(tmp_path)
    assert document["solved"] and document["trainings"] == 2
    assert document["attempts"][0]["evaluation"]["mean"] == 450.0


def test_a_spent_budget_is_no_solution(made: Made, passing: list[float], tmp_path: Path) -> None:
    made(lambda fields: None)
    document = run(tmp_path)
    assert not document["solved"] and document["solution"] is None
    assert "not solved" in document["verdict"] and document["trainings"] == 8


def test_from_scratch_nothing_shipped_is_used(made: Made, passing: list[float], tmp_path: Path) -> None:
    spec, fields = task("CartPole-v1", {}, None)
    labels = [one.label for one in beginnings(spec, fields, use_shipped=True)]
    assert labels[0].startswith("CartPole-v1:") and "ppo, defaults" in labels
    assert [one.label for one in beginnings(spec, fields, use_shipped=False)] == ["ppo, defaults", "dqn, defaults"]
    seen = []
    made(lambda fields: seen.append(fields["env_id"]))
    run(tmp_path, use_shipped=False)
    assert set(seen) == {"CartPole-v1"} and UNFAMILIAR not in seen  # the name is hidden from advice, not from training


@pytest.mark.parametrize(
    ("env_id", "overrides", "first"),
    [("Taxi-v3", {}, "q_learning"), ("Pendulum-v1", {}, "ppo"), ("Acrobot-v1", {}, "ppo")],
)
def test_spaces_decide_what_to_begin_with(env_id: str, overrides: dict[str, Any], first: str) -> None:
    spec, fields = task(env_id, overrides, None)
    made = beginnings(spec, fields, use_shipped=False)
    assert made[0].fields["algo_id"] == first
    assert all(one.fields["env_id"] == env_id for one in made)


def test_thresholds(made: Made, passing: list[float], tmp_path: Path) -> None:
    assert task("CliffWalking-v1", {}, None)[1]["reward_threshold"] == -13  # measured, not registered
    assert task("CartPole-v1", {}, 100.0)[1]["reward_threshold"] == 100.0
    with pytest.raises(SolverError, match="NoSuch-v0"):
        task("NoSuch-v0", {}, None)


def test_interrupted_it_goes_on(made: Made, passing: list[float], tmp_path: Path) -> None:
    workers = made(lambda fields: None)
    cut = run(tmp_path, max_runs=2)
    whole = run(tmp_path, resume=cut["experiment"], max_runs=3)
    assert len(workers[1].trained) == 3 and whole["trainings"] == 5
    assert [a["label"] for a in whole["attempts"]][:2] == [a["label"] for a in cut["attempts"]]


@pytest.mark.slow
def test_frozen_lake_from_scratch(tmp_path: Path) -> None:
    document = api.solve(
        "FrozenLake-v1", overrides={"env_kwargs": {"is_slippery": False}}, use_shipped=False, runs_dir=tmp_path
    )
    assert document["solved"] and document["solution"]["evaluation"]["mean"] >= 0.7
