"""`gsolve insights` as users call it: three sections or one document, and bad input in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result
from tests.made_runs import FAILING, HEALTHY, write_run

GSolve = Callable[..., Result]


@pytest.fixture
def few(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path / "runs", HEALTHY, solved=True, seed=seed)
    write_run(tmp_path / "runs", HEALTHY, solved=True, gamma=0.95)
    write_run(tmp_path / "runs", FAILING, solved=False, policy_lr=1e-6)


@pytest.fixture
def many(tmp_path: Path) -> None:
    for index in range(14):
        solved = index % 2 == 0
        rate = 1e-3 if solved else 3e-2
        curves = HEALTHY if solved else FAILING
        write_run(tmp_path / "runs", curves, solved=solved, policy_lr=rate, vf_coef=1000 * rate, n_envs=8 * (1 + index))


@pytest.mark.integration
def test_a_few_runs_are_ranked_and_nothing_more_is_claimed(gsolve: GSolve, few: None) -> None:
    done = gsolve("insights", "CartPole-v1")
    assert done.code == 0
    assert done.out.startswith("CartPole-v1: 5 runs, 3 configurations; 4 solved (threshold 475), 1 failed")
    lines = done.out.splitlines()
    assert any("3 of 3" in line and "max_env_steps 50000" in line for line in lines)
    assert any("1 of 1 (one seed)" in line and "gamma 0.95" in line for line in lines)
    (command,) = [line for line in lines if line.startswith("1: gsolve train CartPole-v1:ppo -s ")]
    assert "-s max_env_steps=50000" in command
    assert "not enough runs: 2 solved, 1 failed of 3 configurations" in done.out
    assert "no trend yet: 3 configurations, needs 8" in done.out


def test_what_separates_is_told_with_its_uncertainty(gsolve: GSolve, many: None) -> None:
    out = gsolve("insights", "CartPole-v1").out
    assert "policy_lr: 0.001 100% (7 configurations), 0.03 0% (7); 100 points apart [" in out
    assert "always changed with vf_coef: cannot be told apart" in out
    assert "no difference seen: n_envs" in out


def test_json_is_the_document_and_nothing_else(gsolve: GSolve, many: None) -> None:
    document = json.loads(gsolve("insights", "CartPole-v1", "--json").out)
    assert set(document) == {
        *("env_id", "threshold", "metric", "clock", "runs", "configurations", "best", "separating", "over_time"),
    }
    assert document["separating"]["fields"][0]["always_with"] == ["vf_coef"]
    assert document["over_time"]["trend"]["configurations"] == 14


@pytest.mark.parametrize("metric", ["seconds", "return"])
def test_other_ways_to_judge(gsolve: GSolve, few: None, metric: str) -> None:
    done = gsolve("insights", "CartPole-v1", "--metric", metric)
    assert done.code == 0, done.err
    assert ("SECONDS TO THRESHOLD" in done.out) == (metric == "seconds")


def test_only_runs_that_were_cut_short(gsolve: GSolve, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", FAILING, status="interrupted")
    done = gsolve("insights", "CartPole-v1")
    assert done.code == 0
    assert "1 left out: not finished" in done.out
    assert "none: no run has ended yet" in done.out


# Bad input


def test_an_environment_without_runs(gsolve: GSolve, few: None) -> None:
    done = gsolve("insights", "Cartpole")
    assert done.code == 3
    assert "the closest name with runs is CartPole-v1 (5 of them): gsolve insights CartPole-v1" in done.err
    assert done.err.count("\n") == 1


def test_no_runs_at_all(gsolve: GSolve) -> None:
    done = gsolve("insights", "CartPole-v1")
    assert done.code == 3
    assert done.err.count("\n") == 1


def test_a_metric_there_is_not(gsolve: GSolve, few: None) -> None:
    assert gsolve("insights", "CartPole-v1", "--metric", "speed").code == 2
