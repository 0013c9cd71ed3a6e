"""`gsolve compare` on run directories made here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.runs.layout import read_json, write_json
from tests.made_runs import HEALTHY, write_run


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Three seeds of two settings; those of the second are a group."""
    made = [write_run(tmp_path / "runs", HEALTHY, seed=seed) for seed in range(3)]
    others = [write_run(tmp_path / "runs", HEALTHY, seed=seed, policy_lr=1e-4) for seed in range(3)]
    (tmp_path / "runs" / "some-group").mkdir()
    write_json(tmp_path / "runs" / "some-group" / "group.json", {"group": "some-group", "seeds": [0, 1, 2]})
    for run in others:
        write_json(run.path / "status.json", read_json(run.path / "status.json") | {"group": "some-group"})
    return [run.run_id for run in made]


def test_runs_against_a_group(gsolve: Callable[..., Any], runs: list[str]) -> None:
    result = gsolve("compare", *runs, "some-group")
    assert result.code == 0
    for words in ("Verdict", "No difference shown", "policy_lr", "Gradient norms", "3 of 3", "▁"):
        assert words in result.out
    assert result.err == ""


def test_json_is_the_whole_document(gsolve: Callable[..., Any], runs: list[str]) -> None:
    document = json.loads(gsolve("compare", *runs, "some-group", "--json").out)
    assert document["env_id"] == "CartPole-v1"
    assert [len(side["runs"]) for side in document["sides"]] == [3, 3]
    assert {"verdict", "caveats", "tests", "differences", "derived", "losses", "gradients", "schedules"} <= set(
        document
    )


def test_baseline_group_and_out(gsolve: Callable[..., Any], runs: list[str], tmp_path: Path) -> None:
    result = gsolve("compare", *runs, "some-group", "--baseline", "some-group", "--out", "page")
    assert result.code == 0
    assert "A (baseline)  policy_lr=0.0001" in result.out
    assert "page/comparison.md" in result.err
    assert (tmp_path / "page" / "curves.png").is_file()


def test_one_side_shows_its_seeds(gsolve: Callable[..., Any], runs: list[str]) -> None:
    result = gsolve("compare", "some-group")
    assert result.code == 0
    assert "Nothing to compare" in result.out
    assert "-s2-" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["@last"], 2, "at least two runs"),
        (["@last", "nothing"], 3, "nothing"),
        (["some-group", "--group-by", "gama"], 2, "'gamma'"),
        (["some-group", "--baseline", "x?"], 2, "one of the sides"),
        ([], 2, "--help"),
    ],
)
def test_bad_input_is_one_line(
    gsolve: Callable[..., Any], runs: list[str], arguments: list[str], code: int, words: str
) -> None:
    result = gsolve("compare", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_unwritable_place_is_told(gsolve: Callable[..., Any], runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = gsolve("compare", "some-group", "--out", "file/page")
    assert result.code == 1
    assert "--out" in result.err


@pytest.mark.integration
def test_loads_neither_jax_nor_matplotlib(runs: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from gymnasium_solver.verify.comparison.document import compare_runs; "
        "from gymnasium_solver.runs.reader import list_runs; from pathlib import Path; "
        f"compare_runs(list_runs(Path({str(tmp_path / 'runs')!r}))); "
        "print([m for m in ('jax', 'gymnasium', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
