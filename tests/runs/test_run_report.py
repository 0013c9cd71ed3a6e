"""report.md for runs in every state, and seeds as a group."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

from gymnasium_solver.runs.plots import POINTS, thinned
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import write_group_report, write_report
from gymnasium_solver.runs.writer import RunWriter

NewRun = Callable[..., RunWriter]


def test_the_outcome_is_the_first_line(new_run: NewRun) -> None:
    writer = new_run(rows=20)
    writer.log("warning", "KL is high")
    writer.log("warning", "KL is high")
    writer.checkpoint(["last", "best"], {"w": np.ones(2)}, {"epoch": 20})
    writer.status("completed", solved=True)
    report = write_report(writer.path)
    text = report.read_text()
    assert text.splitlines()[0] == (
        "# CartPole-v1 · ppo · seed 3: solved, best reward 600.00 against a threshold of 475"
    )
    assert "- WARNING: KL is high (×2)" in text
    assert f"gsolve train --resume {writer.run_id}" not in text  # which would be refused
    assert f"gsolve play {writer.run_id}/@best" in text
    assert "gsolve train CartPole-v1:ppo  # reproduce" in text
    assert "env_id: CartPole-v1" in text
    picture = report.parent / "plots" / "reward.svg"
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert "(plots/reward.svg)" in text


@pytest.mark.integration
def test_a_report_is_drawn_at_once(new_run: NewRun) -> None:
    """The terminal waits for it: no library that takes a second to import."""
    writer = new_run(rows=20)
    code = (
        "import sys; from pathlib import Path; from gymnasium_solver.runs.report import write_report; "
        "write_report(Path(sys.argv[1])); print([m for m in ('matplotlib', 'PIL', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(writer.path)], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert (writer.path / "plots" / "reward.svg").is_file()


def test_an_interrupted_run_is_told_how_to_go_on(new_run: NewRun) -> None:
    writer = new_run(rows=20)
    writer.checkpoint(["last"], {"w": np.ones(2)}, {"epoch": 20})
    writer.status("interrupted")
    assert f"gsolve train --resume {writer.run_id}" in write_report(writer.path).read_text()


@pytest.mark.parametrize("status", ["running", "failed", "diverged", "interrupted"])
def test_an_empty_run_has_a_report(new_run: NewRun, status: str) -> None:
    writer = new_run()
    writer.status(status)
    text = write_report(writer.path).read_text()
    word = "failed" if status == "diverged" else status
    assert f"{word}, no episode finished yet" in text.splitlines()[0]
    assert "plots/" not in text


def test_a_damaged_run_has_a_report(new_run: NewRun) -> None:
    writer = new_run(rows=3)
    for name in ("status.json", "environment.json", "config.json"):
        (writer.path / name).write_text("{")
    assert "status.json is damaged: EOF" in write_report(writer.path).read_text()


def test_a_run_full_of_nan_is_drawn(new_run: NewRun) -> None:
    writer = new_run()
    for epoch in range(5):
        value = float("inf") if epoch == 2 else float("nan")
        row = {"train/cnt/env_steps": epoch, "train/roll/ep_rew_mean": value, "train/loss/value": value}
        writer.metrics(row | {"train/metrics/grad_norm/all": value, "train/metrics/kl_divergence": -1.0})
    writer.status("diverged", error="NaN | in the loss")
    text = write_report(writer.path).read_text()
    assert "NaN \\| in the loss" in text
    drawn = "".join(path.read_text() for path in (writer.path / "plots").iterdir())
    assert not re.search(r"\b(nan|inf)\b", drawn)


def test_a_long_curve_keeps_its_mean_and_its_end() -> None:
    x, y = np.arange(100_003.0), np.random.default_rng(0).normal(size=100_003)
    thin_x, thin_y = thinned(x, y)
    assert len(thin_x) == len(thin_y) == POINTS
    assert thin_x[-1] == x[-1]
    assert np.average(thin_y, weights=np.diff(thin_x, prepend=-1)) == pytest.approx(y.mean())


def test_seeds_are_reported_together(new_run: NewRun) -> None:
    writers = [new_run(rows=rows, seed=seed) for seed, rows in enumerate((20, 20, 10))]
    for writer in writers:
        writer.status("completed")
    text = write_group_report([Run(writer.path) for writer in writers])
    assert text.startswith("# CartPole-v1 · ppo · 3 runs\n")
    assert "| 3 of 3 runs | 500.00 | 173.21 | 300.00 | 600.00 | 500.00 |" in text
    assert "Solved (threshold 475): 2 of 3. Median to threshold: 5,120 env steps." in text


def test_a_group_without_results_says_so(new_run: NewRun) -> None:
    assert write_group_report([]) == "No runs.\n"
    text = write_group_report([Run(new_run().path)])
    assert "1 run\n" in text
    assert "not reached by half of the runs" in text
    assert "No threshold is known" in write_group_report([Run(new_run(reward_threshold=None).path)])
