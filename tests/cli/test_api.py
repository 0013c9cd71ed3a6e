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


@pytest.mark.parametrize("name", ["config", "diagnose", "envs", "runs", "train", "verify"])
def test_a_verb_is_the_function_though_a_package_has_its_name(name: str) -> None:
    import importlib
    import inspect
    import pydoc

    import gymnasium_solver.config.schema as schema
    from gymnasium_solver import api

    package = importlib.import_module(f"gymnasium_solver.{name}")
    verb = getattr(gs, name)
    assert verb is getattr(api, name) and inspect.isfunction(verb)
    assert pydoc.render_doc(verb).startswith(f"Python Library Documentation: function {name}")
    assert sys.modules[f"gymnasium_solver.{name}"] is package and schema.Config


def test_a_verb_of_a_packages_name_can_be_replaced_in_a_test() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gs, "train", len)
        assert gs.train is len
    from gymnasium_solver import api

    assert gs.train is api.train


@pytest.mark.integration
def test_help_on_a_verb_imports_no_jax() -> None:
    code = "import sys, pydoc, gymnasium_solver as gs; pydoc.render_doc(gs.train); print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


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
    assert gs.status(run)["status"] == "solved"


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
