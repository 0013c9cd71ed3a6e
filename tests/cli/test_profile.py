"""`gsolve profile` as users call it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Result

GSolve = Callable[..., Result]

PHASE = {"seconds": 1.0, "share": 0.5, "us_per_env_step": 12.5}
TRIAL = {
    "engine": "gymnasium/sync",
    "n_envs": 8,
    "n_steps": 128,
    "steps_per_second": 12345.6,
    "updates_per_1000_steps": 0.977,
    "gradient_steps_per_1000_steps": 80.0,
    "is_current": True,
}
DOCUMENT: dict[str, Any] = {
    "env_id": "CartPole-v1",
    "algo_id": "ppo",
    "engine": "gymnasium/sync",
    "n_envs": 8,
    "n_steps": 128,
    "seconds": 2.0,
    "env_steps": 80_000,
    "epochs": 78,
    "gradient_steps": 6400,
    "steps_per_second": 40_000.0,
    "phases": [{"phase": "step", **PHASE}, {"phase": "update", **PHASE}],
    "cores": 2,
    "cores_used": 1.0,
    "load": 0.5,
    "peak_memory_mb": 234.0,
    "device_memory_mb": None,
    "evaluation": {"every_epochs": 5, "was_due": True},
    "work": {"parts_add_up_to": 0.97},
    "limits": [{"kind": "environment", "share": 0.6, "text": "12.5 µs per env step"}],
    "limit": {"kind": "environment", "phase": "step", "share": 0.5, "text": "the environment"},
    "trials": [TRIAL],
    "final": {
        "current": {"name": "now", "steps_per_second": [100.0, 200.0]},
        "challenger": {"name": "then", "steps_per_second": [150.0, 260.0]},
        "gain": {"low": 1.3, "mid": 1.4, "high": 1.5},
    },
    "recommendation": {
        "set": {"n_envs": 16},
        "yaml": "ppo:\n  n_envs: 16\n",
        "cli": "gsolve train CartPole-v1:ppo --set n_envs=16",
        "effect_on_learning": "one update in 2,048 env steps instead of 1,024",
    },
    "verdict": "1.40 times the steps per second",
    "threads": {
        "cores": 2,
        "steps_per_second": {"one": [1000.0], "all": [1234.0]},
        "verdict": "2 of 2 threads; NPROC=2 gsolve train",
    },
    "notes": ["a remark"],
}


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium_solver.verify.profiling.profile.profile", lambda *_, **__: DOCUMENT)


def test_phases_trials_and_recommendation_are_shown(gsolve: GSolve, canned: None) -> None:
    done = gsolve("profile", "CartPole-v1:ppo")
    assert done.code == 0
    headings = [line for line in done.out.splitlines() if line.startswith("## ")]
    assert headings == ["## Time by phase", "## Limits", "## Trials", "## Recommendation", "## Threads"]
    for text in ("Limit: the environment.", "████", "12.50", "1.50", "1.30", "- a remark", "not learning speed",
                 "gsolve train CartPole-v1:ppo --set n_envs=16", "instead of 1,024", "234 MB", "97 % of the call",
                 "environment       60 %  12.5 µs per env step", "2 threads      1,234 steps/s", "NPROC"):  # fmt: skip
        assert text in done.out


def test_json_is_the_document_and_nothing_else(gsolve: GSolve, canned: None) -> None:
    assert json.loads(gsolve("profile", "CartPole-v1:ppo", "--json").out) == DOCUMENT


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["CartPole-v1:ppo", "--seconds", "0.5"], 2, "use at least 2"),
        (["CartPole-v1"], 2, "names no variant"),
        (["CartPol-v1:ppo"], 3, "did you mean 'CartPole-v1'"),
        (["CartPole-v1:pppo"], 3, "did you mean 'ppo'"),
        (["CartPole-v1:ppo", "-s", "n_env=4"], 2, "n_envs"),
        (["CartPole-v1:ppo", "--out", "taken"], 2, "choose another directory"),
    ],
)
def test_bad_input_is_told_in_one_line(
    gsolve: GSolve, tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    (tmp_path / "taken").write_text("a file")
    done = gsolve("profile", *arguments)
    assert done.code == code
    assert done.err.startswith("error: ")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.integration
def test_interrupted_it_leaves_nothing_behind(tmp_path: Path) -> None:
    scratch, here = tmp_path / "scratch", tmp_path / "here"
    scratch.mkdir()
    here.mkdir()
    command = [sys.executable, "-m", "gymnasium_solver", "profile", "CartPole-v1:ppo", "--seconds", "60"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen(command, cwd=here, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(scratch.rglob("metrics.csv")):
        time.sleep(0.05)
    assert list(scratch.rglob("metrics.csv")), "it never began"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert not list(scratch.glob("gsolve-*"))
    assert not list(here.iterdir())
