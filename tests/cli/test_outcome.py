"""One word for what a run came to, and one best reward, wherever they are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gymnasium_solver as gs
from gymnasium_solver.runs.index.index import Index
from gymnasium_solver.runs.outcome import OUTCOMES, outcome
from gymnasium_solver.runs.reader import Run
from tests.made_runs import FAILING, HEALTHY, write_run

EVALUATION, TRAINING = "val/roll/ep_rew_mean", "train/roll/ep_rew_mean"


@pytest.mark.parametrize(
    ("record", "solved", "threshold", "word", "reason"),
    [
        ({"status": "running"}, True, 475.0, "running", None),
        ({"status": "completed"}, True, 475.0, "solved", None),
        ({"status": "completed"}, False, 475.0, "missed", None),
        ({"status": "completed"}, False, None, "done", None),
        ({"status": "interrupted"}, False, 475.0, "interrupted", None),
        ({"status": "interrupted", "stopped_by": "race"}, False, 475.0, "interrupted", "an experiment"),
        ({"status": "interrupted", "stopped_by": "entropy-collapse"}, False, 475.0, "missed", "entropy-collapse"),
        ({"status": "failed", "error": "it broke"}, False, 475.0, "failed", "it broke"),
        ({"status": "diverged", "error": "NaN"}, False, 475.0, "failed", "diverged: NaN"),
        ({"status": "crashed"}, False, 475.0, "failed", "crashed"),
        ({"status": "unknown"}, False, None, "failed", "status.json"),
        ({}, False, None, "failed", "status.json"),
    ],
)
def test_the_word_and_why(
    record: dict[str, Any], solved: bool, threshold: float | None, word: str, reason: str | None
) -> None:
    found, why = outcome(record, solved, threshold)
    assert found == word and found in OUTCOMES
    assert why is None if reason is None else reason in str(why)


def everywhere(run: Run) -> dict[str, dict[str, Any]]:
    """What each way in says of a run."""
    with Index.open(run.path.parent) as index:
        index.refresh()
        row = index.get(run.run_id)
    assert row is not None
    return {
        "list": run.summary(),
        "index": row,
        "show": gs.show(run)["summary"],
        "status": gs.status(run),
        "diagnosis": gs.diagnose(run)["summary"],
    }


@pytest.mark.parametrize(
    ("curves", "fields", "word"),
    [
        (HEALTHY, {"solved": True}, "solved"),
        (FAILING, {"solved": False}, "missed"),
        (FAILING, {"solved": False, "status": "interrupted"}, "interrupted"),
        (FAILING, {"solved": False, "status": "diverged"}, "failed"),
        (FAILING, {"solved": False, "status": "running"}, "running"),
    ],
)
def test_every_way_in_says_the_same(
    tmp_path: Path, curves: dict[str, np.ndarray], fields: dict[str, Any], word: str
) -> None:
    told = everywhere(write_run(tmp_path, curves, **fields))
    assert {name: summary["status"] for name, summary in told.items()} == dict.fromkeys(told, word)


def test_the_best_is_that_of_evaluations_and_the_same_everywhere(tmp_path: Path) -> None:
    size = len(HEALTHY[TRAINING])
    evaluated = np.where(np.arange(size) % 3 == 0, np.linspace(20, 105.6, size), np.nan)
    curves = HEALTHY | {TRAINING: np.linspace(20, 112, size), EVALUATION: evaluated}
    curves["test/roll/ep_rew_mean"] = np.where(np.arange(size) == size - 1, 150.0, np.nan)
    told = everywhere(write_run(tmp_path, curves, solved=False))
    best = float(np.nanmax(evaluated))
    assert {name: (summary["best_reward"], summary["evaluated"]) for name, summary in told.items()} == dict.fromkeys(
        told, (pytest.approx(best), True)
    )


def test_a_best_of_training_says_so(tmp_path: Path, gsolve: Callable[..., Any]) -> None:
    noise = np.where(np.arange(len(HEALTHY[TRAINING])) % 7 == 3, 30.0, 0.0)  # which smoothing would hide
    curves = {name: values for name, values in FAILING.items() if name != EVALUATION}
    run = write_run(tmp_path / "runs", curves | {TRAINING: FAILING[TRAINING] + noise}, solved=False)
    told = everywhere(run)
    assert {summary["evaluated"] for summary in told.values()} == {False}
    assert len({round(summary["best_reward"], 6) for summary in told.values()}) == 1
    assert "in training" in gsolve("show", run.run_id, "--runs-dir", str(tmp_path / "runs")).out
    assert json.loads(gsolve("runs", "--json", "--runs-dir", str(tmp_path / "runs")).out)[0]["evaluated"] is False
