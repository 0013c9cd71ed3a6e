"""The watch during training: nothing while all is well, each finding once, and never from noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.recommend import monitor as module
from gymnasium_solver.recommend.monitor import Finding, Monitor
from gymnasium_solver.train.session import train
from tests.diagnose.test_inference import STILL
from tests.made_runs import FAILING, HEALTHY, STEPS, flat, make_readings


@pytest.fixture(autouse=True)
def looks_at_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE_OF_TIME", 1e9)
    monkeypatch.setattr(module, "LEAST_SECONDS", 0.0)


def watch(curves: dict[str, np.ndarray], rows: int = 50, **fields: object) -> list[tuple[int, Finding]]:
    readings = make_readings(curves, **fields)
    monitor = Monitor(readings.config, readings.spaces, 475.0)
    told = []
    for index in range(rows):
        row = {name: float(values[index]) for name, values in curves.items()}
        told += [(index, finding) for finding in monitor.observe({"train/cnt/env_steps": float(STEPS[index]), **row})]
    return told


def test_a_run_that_learns_is_left_in_peace() -> None:
    assert watch(HEALTHY) == []


def test_a_run_that_learns_with_odd_settings_too() -> None:
    assert watch(HEALTHY, policy_lr=0.1, n_epochs=60) == []


def test_a_hopeless_run_is_told_once_and_not_at_the_start() -> None:
    told = watch(FAILING | STILL, policy_lr=1e-6)
    assert [finding.cause for _, finding in told] == ["learning-rate-too-low"]
    index, finding = told[0]
    assert index >= 12  # a quarter of the budget
    assert finding.severity == "critical"
    assert "try policy_lr=" in finding.message


def test_a_broken_invariant_is_told_early() -> None:
    (index, finding), *_ = watch(FAILING | {"train/metrics/ratio_deviation_first": flat(0.5)})
    assert finding.cause == "old-log-prob-wrong"
    assert index < 12


def test_failing_for_no_known_reason_is_no_news() -> None:
    assert watch(FAILING) == []


def test_rows_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 20)
    readings = make_readings()
    monitor = Monitor(readings.config, readings.spaces, 475.0)
    for step in range(1000):
        monitor._keep({"train/cnt/env_steps": float(step)})
    assert len(monitor._rows) <= 20


@pytest.mark.integration
def test_training_stops_on_a_critical_finding_and_says_why(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {"policy_lr": 1e-6, "max_env_steps": 100_000})
    run = train(config, runs_dir=tmp_path, make_monitor=Monitor, stop_on="critical")
    summary = run.summary()
    assert summary["stopped_by"] == "learning-rate-too-low"
    assert (summary["status"], summary["reason"]) == ("missed", "stopped because of learning-rate-too-low")
    assert run.status["status"] == "interrupted"
    assert summary["env_steps"] < 100_000
    assert any("stopped by --stop-on critical" in line for line in run.log_lines())


@pytest.mark.integration
def test_a_monitor_that_fails_does_not_end_the_training(tmp_path: Path) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            pass

        def observe(self, row: object) -> list[Finding]:
            raise ValueError("oh")

    config = load_config("CartPole-v1:ppo", {"max_env_steps": 4096})
    run = train(config, runs_dir=tmp_path, make_monitor=Broken)
    assert run.status["status"] == "completed"
    assert sum("diagnosis stopped watching: ValueError: oh" in line for line in run.log_lines()) == 1
