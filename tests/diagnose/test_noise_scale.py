"""A measured noise scale as evidence: far from the minibatch it counts, unmeasured it changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.diagnose.inference import rank
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.recommend.changes import change_for
from gymnasium_solver.runs.noise_scale_file import write_noise_scale
from tests.made_runs import FAILING, flat, make_readings, write_run

ABOVE, BELOW = "noise-scale-above-batch", "noise-scale-below-batch"


def confidence(cause: str, noise_scale: dict, **fields: object) -> float:
    found = diagnose(replace(make_readings(**fields), noise_scale=noise_scale))
    return next((entry.confidence for entry in found.ranked if entry.cause.id == cause), 0.0)


def measured(ratio: float | None, part: str = "policy", **change: int) -> dict:
    return {"ratio": ratio, "part": part, "set": change}


def test_a_noise_scale_far_above_the_minibatch_speaks_for_too_small_a_batch() -> None:
    curves = FAILING | {"train/metrics/kl_divergence": flat(0.1)}  # a rival: without one both are certain
    rival = {"curves": curves, "batch_size": 8, "policy_lr": 0.02}
    unknown, far, near = (confidence("batch-too-small", found, **rival) for found in ({}, measured(60), measured(2)))
    assert far > unknown > near


def test_a_noise_scale_far_below_the_minibatch_speaks_for_too_large_a_batch() -> None:
    fields = {"n_envs": 64, "n_steps": 512, "batch_size": 32768}
    unknown, far = (confidence("batch-too-large", found, **fields) for found in ({}, measured(0.01)))
    assert far > unknown


@pytest.mark.parametrize(
    "found", [{}, measured(None), measured(60, part="value"), {"ratio": "much"}, {"part": "policy"}]
)
def test_unmeasured_it_has_no_effect(found: dict) -> None:
    readings = replace(make_readings(batch_size=2), noise_scale=found)
    diagnosis = diagnose(readings)
    assert diagnosis.answers[ABOVE] is None and diagnosis.answers[BELOW] is None
    without = {name: answer for name, answer in diagnosis.answers.items() if name not in (ABOVE, BELOW)}
    assert rank(without, diagnosis.performance, readings.algo) == diagnosis.ranked


def test_the_change_is_what_was_measured_where_that_is_far_off() -> None:
    readings = make_readings(batch_size=2)
    assert change_for("batch-too-small", readings) == {"batch_size": 128}  # the shipped one
    far = replace(readings, noise_scale=measured(60, batch_size=64))
    assert change_for("batch-too-small", far) == {"batch_size": 64}
    near = replace(readings, noise_scale=measured(2, batch_size=64))
    assert change_for("batch-too-small", near) == {"batch_size": 128}


def test_it_is_read_from_the_run_directory(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs")
    assert read(run).noise_ratio is None
    write_noise_scale(run, measured(12.5))
    assert read(run).noise_ratio == 12.5
    (run.path / "noise_scale.json").write_text("{broken")
    assert read(run).noise_ratio is None
