from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gymnasium_solver as gs
from gymnasium_solver.errors import SolverError
from tests.made_runs import HEALTHY, write_run


@pytest.mark.integration
def test_import_is_light() -> None:
    code = "import sys, gymnasium_solver as gs; gs.__version__; print({'jax', 'numpy', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_names_are_verbs_and_packages_at_once() -> None:
    import inspect

    import gymnasium_solver.config.schema as schema
    import gymnasium_solver.train as package

    assert gs.train is package
    assert schema.Config
    for name in ("train", "runs", "config", "envs", "evaluate", "load_run", "report", "resume", "verify"):
        assert callable(getattr(gs, name))
    assert "ref" in inspect.signature(gs.train).parameters


def test_everything_announced_is_there() -> None:
    assert set(dir(gs)) == set(gs.__all__)
    for name in gs.__all__:
        assert getattr(gs, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        gs.nonsense  # noqa: B018


def test_config_and_envs() -> None:
    config = gs.config("CartPole-v1:ppo", seed=3, gamma=0.9)
    assert (config.env_id, config.seed, config.gamma) == ("CartPole-v1", 3, 0.9)
    assert ("CartPole-v1", "ppo") in {(env_id, variant) for env_id, variant, _ in gs.envs("cartpole")}
    with pytest.raises(Exception, match="polcy_lr"):
        gs.config("CartPole-v1:ppo", polcy_lr=1)


def test_what_the_command_line_reads_python_reads(tmp_path: Path) -> None:
    run = write_run(tmp_path, HEALTHY, solved=True)
    (run.path / "run.log").write_text("2026-01-01T00:00:00Z WARNING look at this\n")
    shown = gs.show(run.run_id, runs_dir=tmp_path)
    assert shown["summary"]["solved"] and shown["config"]["env_id"] == "CartPole-v1"
    assert shown["warnings"] == ["look at this"]
    assert shown["checkpoints"] == gs.checkpoints(run) == []
    assert gs.status(runs_dir=tmp_path) == []
    assert gs.status(run)["status"] == "completed"


class Mine:
    """An environment class, as far as its name goes."""


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gs.train(Mine), "'tests.cli.test_api:Mine:ppo'"),
        (lambda: gs.start(Mine), "'tests.cli.test_api:Mine:ppo'"),
        (lambda: gs.verify(Mine, {"gamma": 0.9}), "'tests.cli.test_api:Mine:ppo'"),
        (lambda: gs.train(type("Local", (), {"__module__": "__main__"})), "put it into a module"),
        (lambda: gs.train(3), "3 is no ENV:VARIANT"),
        (lambda: gs.compare(["a", "b"]), r"write compare\(\*runs\)"),
        (lambda: gs.load_run(3), "3 is no run"),
        (lambda: gs.evaluate("@last", episodes=0), "episodes: 0 is out of range"),
        (lambda: gs.play("@last", episodes=0), "episodes: 0 is out of range"),
    ],
)
def test_what_cannot_be_is_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(SolverError, match=sentence):
        call()
