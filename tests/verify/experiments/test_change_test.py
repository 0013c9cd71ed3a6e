"""A change against the configuration as it is; trainings are made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver import api
from gymnasium_solver.errors import ConfigError
from tests.made_runs import FAILING, write_run
from tests.verify.experiments.made_trainings import MadeWorkers, Steps, made

__all__ = ["made"]
Made = Callable[[Steps], list[MadeWorkers]]


def only_fast(fields: dict[str, Any]) -> float | None:
    return 20_000 + fields["seed"] % 5 if fields["policy_lr"] == 1e-3 else None


def test_a_change_that_helps(made: Made, tmp_path: Path) -> None:
    workers = made(only_fast)
    run = write_run(tmp_path, FAILING, policy_lr=1e-6, seed=3)
    document = api.verify(run, {"policy_lr": 1e-3}, runs_dir=tmp_path)
    assert "is better" in document["verdict"] and document["status"] == "completed"
    assert document["trainings"] == {"baseline": 5, "change": 5}
    sides = [{t.seed for t in workers[0].trained if t.label == label} for label in ("baseline", "change")]
    assert sides[0] == sides[1] and 3 not in sides[0]


def test_a_change_that_does_nothing_is_not_called_better(made: Made, tmp_path: Path) -> None:
    made(lambda fields: 20_000 + 997 * (fields["seed"] * 31 % 7) + 500 * (fields["gamma"] == 0.97))
    document = api.verify("CartPole-v1:ppo", ["gamma=0.97"], runs_dir=tmp_path)
    assert document["verdict"].startswith("No difference shown")


def test_refusals(made: Made, tmp_path: Path) -> None:
    made(only_fast)
    with pytest.raises(ConfigError, match="nothing to test"):
        api.verify("CartPole-v1:ppo", {"seed": 7}, runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="gamma"):
        api.verify("CartPole-v1:ppo", {"gamma": 2}, runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="at least 4"):
        api.verify("CartPole-v1:ppo", {"gamma": 0.9}, seeds=3, runs_dir=tmp_path)
    with pytest.raises(ConfigError, match="the change to test is missing"):
        api.verify("CartPole-v1:ppo", runs_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_options_are_given_by_name_or_as_one_object(made: Made, tmp_path: Path) -> None:
    made(lambda fields: 20_000)
    options = api.Options(seeds=4, runs_dir=tmp_path, jobs=1)
    document = api.verify("CartPole-v1:ppo", {"gamma": 0.9}, options=options)
    assert document["trainings"] == {"baseline": 4, "change": 4}
    assert options.arguments() == ["--seeds", "4", "--jobs", "1", "--runs-dir", str(tmp_path)]
    with pytest.raises(TypeError, match=r"'target'.*seeds"):
        api.verify("CartPole-v1:ppo", {"gamma": 0.9}, target=3)
    with pytest.raises(ConfigError, match="budget"):
        api.Options(budget="soon")
