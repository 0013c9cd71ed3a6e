"""`gsolve optimize` and `gsolve solve` as users call them; trainings are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.errors import EXIT_TARGET_MISSED
from gymnasium_solver.train.judge import Evaluation
from tests.cli.conftest import Result
from tests.made_runs import FAILING, write_run
from tests.verify.experiments.made_trainings import MadeWorkers, Steps, made

__all__ = ["made"]
GSolve = Callable[..., Result]
Made = Callable[[Steps], list[MadeWorkers]]
BROKEN = ("-s", "policy_lr=1e-6", "-s", "max_env_steps=50000")


def sensible(fields: dict) -> float | None:
    rate = fields["policy_lr"]
    return 20_000 + fields["seed"] % 5 if (rate["start"] if isinstance(rate, dict) else rate) > 1e-4 else None


def test_optimize_prints_the_verdict_and_the_variant(gsolve: GSolve, made: Made) -> None:
    made(sensible)
    done = gsolve("optimize", "CartPole-v1:ppo", *BROKEN)
    assert done.code == 0
    assert "is better: threshold after 20,00" in done.out and "report: " in done.out
    assert "env_id: CartPole-v1" in done.out and "gsolve train CartPole-v1:ppo" in done.out
    assert "race 1:" in done.err and "test on fresh seeds" in done.err


@pytest.mark.integration
def test_optimize_a_run_as_json(gsolve: GSolve, made: Made, tmp_path: Path) -> None:
    made(sensible)
    run = write_run(tmp_path / "runs", FAILING, policy_lr=1e-6)
    document = json.loads(gsolve("optimize", run.run_id, "--json", "--quiet").out)
    assert document["source"] == run.run_id and document["diagnosis"]["run"] == run.run_id
    assert document["winner"] and document["tests"][-1]["verdict"] == "better"


def test_a_budget_too_small_exits_with_5(gsolve: GSolve, made: Made) -> None:
    made(sensible)
    done = gsolve("optimize", "CartPole-v1:ppo", *BROKEN, "--max-runs", "10")
    assert done.code == EXIT_TARGET_MISSED and "5 are needed" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("optimize", "CartPole-v1:ppo", "--seeds", "1"), 2, "5 are needed"),
        (("optimize", "CartPole-v1:ppo", "--objective", "speed"), 2, "choose from steps, seconds, return"),
        (("optimize", "CartPole-v1:ppo", "--budget", "soon"), 2, "write for example 90s"),
        (("optimize", "nothing"), 3, "no run 'nothing'"),
        (("optimize", "CartPole-v1:ppo", "--resume", "nothing"), 3, "no experiment 'nothing'"),
        (("solve", "NoSuch-v0"), 3, "NoSuch-v0"),
        (("solve", "CartPole-v1:ppo"), 2, "takes an environment"),
        (("solve",), 2, "give its id"),
        (("optimize",), 2, "give a run, ENV:VARIANT"),
        (("optimize", "CartPole-v1"), 2, "CartPole-v1:ppo"),
        (("verify", "CartPole-v1:ppo"), 2, "the change to test is missing; give it as --set FIELD=VALUE"),
        (("verify", "CartPole-v1:ppo", "-s", "gamma=0.9", "--seeds", "3"), 2, "use at least 4"),
        (("solve", "CartPole-v1", "-s", "policy_lr=-1"), 2, "policy_lr"),
    ],
)
def test_bad_input(gsolve: GSolve, made: Made, arguments: tuple[str, ...], code: int, message: str) -> None:
    made(sensible)
    done = gsolve(*arguments)
    assert done.code == code, done.err
    assert message in done.err and done.err.count("\n") <= 2


def test_an_experiment_goes_on_by_its_name_alone(gsolve: GSolve, made: Made, tmp_path: Path) -> None:
    made(sensible)
    run = write_run(tmp_path / "runs", FAILING, policy_lr=1e-6)
    cut = json.loads(gsolve("optimize", "@last", "--max-runs", "9", "--json", "-q").out)
    assert cut["status"] == "no verdict" and cut["source"] == run.run_id
    whole = json.loads(gsolve("optimize", "--resume", cut["experiment"], "--json", "-q").out)
    assert whole["winner"] and whole["experiment"] == cut["experiment"] and whole["from_record"] > 0
    assert gsolve("solve", "--resume", cut["experiment"]).code == 2


def test_solve_says_how_it_went(gsolve: GSolve, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = Evaluation(np.full(100, 490.0), np.full(100, 490))
    monkeypatch.setattr("gymnasium_solver.train.judge.evaluate_checkpoint", lambda *_, **__: passed)
    made(lambda fields: 20_000)
    done = gsolve("solve", "CartPole-v1")
    assert done.code == 0
    assert "CartPole-v1 is solved: mean return 490" in done.out and "gsolve play" in done.out
    made(lambda fields: None)
    missed = gsolve("solve", "CartPole-v1", "--budget", "3s")
    assert missed.code == EXIT_TARGET_MISSED and "not solved" in missed.out
