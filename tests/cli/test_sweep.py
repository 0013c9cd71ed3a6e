"""`gsolve sweep` as users call it; the search itself is tested in tests/verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result
from tests.verify.sweeping.test_sweep import Pretend

pytest.importorskip("optuna")

GSolve = Callable[..., Result]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium_solver.verify.sweeping.search.Workers", Pretend)
    monkeypatch.setattr(Pretend, "trained", [])


@pytest.fixture
def space(tmp_path: Path) -> str:
    (tmp_path / "space.yaml").write_text("policy_lr: {low: 1e-5, high: 1e-2, log: true}\n", encoding="utf-8")
    return "space.yaml"


@pytest.mark.integration
def test_a_sweep_from_the_command_line(gsolve: GSolve, space: str, pretend: None) -> None:
    started = ("sweep", "CartPole-v1:ppo", "--space", space, "-s", "policy_lr=5e-4", "--seeds", "1", "--name", "mine")
    done = gsolve(*started, "--trials", "9", "--jobs", "1")
    assert done.code == 0
    assert "Best: trial" in done.out and "looks better than it is" in done.out and "fresh seeds" in done.out
    assert "use it   gsolve train CartPole-v1:ppo" in done.out and "runs/mine/report.md" in done.out
    assert "trial 0: complete" in done.err and "trial 0" not in done.out.splitlines()[0]
    more = gsolve("sweep", "--resume", "mine", "--trials", "10", "--confirm-seeds", "0", "--json")
    document = json.loads(more.out)
    assert more.code == 0 and sum(document["counts"].values()) == 10 and document["name"] == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "give ENV:VARIANT, or --resume NAME"),
        (("CartPole-v1:ppo", "--budget", "soon"), 2, "'soon' is not a time"),
        (("CartPole-v1:ppo", "--space", "no.yaml"), 2, "no.yaml cannot be read"),
        (("CartPole-v1:ppo", "--sampler", "simplex"), 2, "is not one of tpe"),
        (("CartPole-v1:ppo", "--resume", "mine"), 2, "leave out ENV:VARIANT"),
        (("CartPole-v9:ppo",), 3, "did you mean 'CartPole-v1'"),
        (("--resume", "nothing"), 3, "no sweep 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence(
    gsolve: GSolve, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = gsolve("sweep", *arguments)
    assert done.code == code and words in done.err and done.err.count("\n") == 1 and not done.out
    assert not (tmp_path / "runs").exists()


def test_without_optuna_the_install_command_is_given(gsolve: GSolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    done = gsolve("sweep", "CartPole-v1:ppo")
    assert done.code == 2 and "pip install 'gymnasium-solver[search]'" in done.err
