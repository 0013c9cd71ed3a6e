"""`gsolve regress` as users call it, above all its exit codes; the verdicts are tested in tests/verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result
from tests.verify.regression.test_regress import Pretend

GSolve = Callable[..., Result]
LEARNS, STUCK = "{start: 0.001}", "{start: 0.00001}"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("gymnasium_solver.verify.regression.regress.Workers", Pretend)
    return write_suite(tmp_path, LEARNS)


def write_suite(tmp_path: Path, rate: str) -> str:
    """A shipped config changes under the suite: the user's own file says what it is now."""
    directory = tmp_path / "config" / "environments"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "CartPole-v1.yaml").write_text(
        f"env_id: CartPole-v1\nmine:\n  algo_id: ppo\n  max_env_steps: 100000\n  policy_lr: {rate}\n", encoding="utf-8"
    )
    (tmp_path / "suite.yaml").write_text("- CartPole-v1:mine\n", encoding="utf-8")
    return "suite.yaml"


def test_record_compare_and_notice(gsolve: GSolve, suite: str, tmp_path: Path) -> None:
    recorded = gsolve("regress", suite, "--baseline", "base.json", "--update")
    assert recorded.code == 0 and recorded.out == "wrote 1 configs into base.json\n"
    assert "[5/5] CartPole-v1:mine seed" in recorded.err
    same = gsolve("regress", suite, "--baseline", "base.json")
    assert same.code == 0 and "identical" in same.out and "Nothing is shown to have regressed." in same.out
    write_suite(tmp_path, STUCK)
    worse = gsolve("regress", suite, "--baseline", "base.json", "--quiet")
    assert worse.code == 5 and "Regressed: CartPole-v1:mine." in worse.out and not worse.err
    document = json.loads(gsolve("regress", suite, "--baseline", "base.json", "--json").out)
    assert document["exit_code"] == 5 and document["configs"][0]["verdict"] == "regressed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "no suite 'nothing'"),
        (("suite.yaml",), "none of the configs of suite.yaml is in the shipped baseline"),
        (("suite.yaml", "--baseline", "no.json"), "there is no baseline no.json"),
        (("suite.yaml", "--update"), "add --baseline FILE"),
        (("suite.yaml", "--update", "--baseline", "no/such/place.json"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(gsolve: GSolve, suite: str, arguments: tuple[str, ...], words: str) -> None:
    done = gsolve("regress", *arguments)
    assert done.code == 2 and words in done.err and done.err.count("\n") == 1 and not done.out
