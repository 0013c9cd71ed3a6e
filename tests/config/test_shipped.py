"""Every shipped configuration loads, says which environment it is for, and builds its algorithm."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
import yaml

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import SHIPPED, build_config, dump_yaml, load_config, shipped
from gymnasium_solver.envs import describe

FILES = sorted(SHIPPED.glob("*.yaml"))
REFERENCES = [f"{env_id}:{variant}" for env_id, variant, path in shipped() if path.parent == SHIPPED]

PROMISED = {
    "ALE-Pong-v5",
    "Acrobot-v1",
    "BipedalWalker-v3",
    "CartPole-v1",
    "CliffWalking-v1",
    "FrozenLake-v1",
    "HalfCheetah-v5",
    "Hopper-v5",
    "LunarLander-v3",
    "LunarLanderContinuous-v3",
    "MiniGrid-Empty-5x5-v0",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Taxi-v3",
}


@pytest.fixture(autouse=True)
def no_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_promised_environments_are_shipped() -> None:
    assert {path.stem for path in FILES} >= PROMISED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_named_after_its_environment(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["env_id"].replace("/", "-") == path.stem


@pytest.mark.parametrize("ref", REFERENCES)
def test_a_shipped_config_survives_being_written_down(ref: str) -> None:
    config = load_config(ref)
    assert ref.rpartition(":")[0] == config.env_id
    assert build_config(yaml.safe_load(dump_yaml(config)), "dump") == config


@pytest.mark.integration
@pytest.mark.parametrize("ref", REFERENCES)
def test_a_shipped_config_builds_an_algorithm_that_fits_its_environment(ref: str) -> None:
    config = load_config(ref)
    spec = describe(config)
    assert spec.reward_threshold is not None, "nothing says when it is solved"
    algorithm = make_algorithm(config, spec)
    actor = algorithm.actor(algorithm.init(np.random.default_rng(0)))
    obs = np.zeros((2, *spec.obs_shape), spec.obs_dtype)
    action, _ = jax.eval_shape(algorithm.greedy, actor, algorithm.begin(2), obs, None)
    assert action.shape == ((2,) if spec.action.kind == "discrete" else (2, spec.action.dim))
