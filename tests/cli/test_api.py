from __future__ import annotations

import subprocess
import sys

import pytest

import gymnasium_solver as gs


def test_import_is_light() -> None:
    code = "import sys, gymnasium_solver as gs; gs.__version__; print({'jax', 'numpy', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_names_are_verbs_and_packages_at_once() -> None:
    import inspect

    import gymnasium_solver.config.schema as schema
    import gymnasium_solver.train as package

    assert gs.train is package
    assert schema.Config
    for name in ("train", "runs", "config", "envs", "evaluate", "load_run", "report", "resume"):
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
