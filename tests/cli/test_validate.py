"""`gsolve validate` as users call it: a function in a module or a file, a verdict, an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Result

GSolve = Callable[..., Result]

SOURCE = """
import numpy as np

LIMIT = 3

def ppo_loss(logp, old_logp, adv, eps):
    ratio = np.exp(logp - old_logp)
    return -np.minimum(ratio * adv, np.clip(ratio, 1 - eps, 1 + eps) * adv).mean()

def optimistic_loss(logp, old_logp, adv, eps):
    ratio = np.exp(logp - old_logp)
    return -np.maximum(ratio * adv, np.clip(ratio, 1 - eps, 1 + eps) * adv).mean()

def renamed(a, b, c, d):
    return ppo_loss(a, b, c, d)
"""


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "some_agent.py"
    path.write_text(SOURCE)
    return path


def test_a_right_function_exits_with_0(gsolve: GSolve, agent: Path) -> None:
    done = gsolve("validate", "ppo", "some_agent.py:ppo_loss")
    assert done.code == 0
    assert "Verdict: compliant" in done.out
    assert "numpy arrays; logp = log_prob" in done.out


def test_a_wrong_function_exits_with_1_and_is_explained(gsolve: GSolve, agent: Path) -> None:
    done = gsolve("validate", "ppo", f"{agent}:optimistic_loss")
    assert done.code == 1
    assert "max-for-min: min is replaced by max" in done.out
    assert "remedy: loss = -mean(min(ratio * adv" in done.out
    assert done.err == ""


def test_a_module_in_the_working_directory_is_found(
    gsolve: GSolve, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(agent.parent))
    assert gsolve("validate", "ppo", "some_agent:ppo_loss").code == 0


def test_json_is_the_document_and_nothing_else(gsolve: GSolve, agent: Path) -> None:
    done = gsolve("validate", "ppo", "some_agent.py:optimistic_loss", "--json")
    document = json.loads(done.out)
    assert done.code == 1
    assert document["compliant"] is False
    assert document["kind"] == "loss"
    assert document["mistakes"][0]["name"] == "max-for-min"
    assert {"check", "status", "expected", "got", "matters", "likely"} == set(document["checks"][0])


def test_parameters_are_mapped(gsolve: GSolve, agent: Path) -> None:
    mapped = [f"--map={pair}" for pair in ("log_prob=a", "old_log_prob=b", "advantages=c", "clip_range=d")]
    assert gsolve("validate", "ppo", "some_agent.py:renamed", *mapped).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("dqn",), "there is no reference for 'dqn'"),
        (("ppo", "some_agent.py"), "names no function"),
        (("ppo", "absent.py:loss"), "there is no file absent.py"),
        (("ppo", "absent_module:loss"), "no module 'absent_module'"),
        (("ppo", "some_agent.py:absent"), "has no 'absent'"),
        (("ppo", "some_agent.py:LIMIT"), "is int, not a function"),
        (("ppo", "some_agent.py:renamed"), "--kind loss or --kind gae"),
        (("ppo", "some_agent.py:renamed", "--kind", "loss"), "parameter 'b' of renamed is not understood"),
        (("ppo", "some_agent.py:ppo_loss", "--kind", "value"), "neither loss nor gae"),
        (("ppo", "some_agent.py:ppo_loss", "--map", "adv"), "is not OURS=THEIRS"),
        (("ppo", "some_agent.py:ppo_loss", "--framework", "mxnet"), "is not one of torch, jax, numpy"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    gsolve: GSolve, agent: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = gsolve("validate", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_a_file_that_does_not_import_is_told(gsolve: GSolve, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text("import nothing_of_that_name\n")
    done = gsolve("validate", "ppo", "faulty.py:loss")
    assert done.code == 2
    assert "importing faulty.py failed: ModuleNotFoundError" in done.err
