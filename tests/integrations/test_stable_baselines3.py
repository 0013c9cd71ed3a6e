"""The callback of Stable-Baselines3: with a stand-in for the model, and with the real thing where there is one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from gymnasium_solver.errors import MissingExtraError
from gymnasium_solver.integrations import stable_baselines3
from gymnasium_solver.integrations.rollout_statistics import rollout_statistics
from gymnasium_solver.integrations.stable_baselines3 import LiveRun
from gymnasium_solver.runs.layout import read_json
from gymnasium_solver.runs.reader import find_run

pytestmark = pytest.mark.integration


class PPO:
    """As much of a model as a run asks for."""

    n_envs, n_steps, batch_size, n_epochs, seed = 2, 4, 4, 10, 7
    gamma, gae_lambda, ent_coef, vf_coef, max_grad_norm = 0.9, 0.95, 0.0, 0.5, 0.5
    _total_timesteps = 64
    policy_kwargs: ClassVar = {"net_arch": {"pi": [32, 32], "vf": [32, 32]}}

    def learning_rate(self, left: float) -> float:
        return 0.001 * left

    def clip_range(self, left: float) -> float:
        return 0.2

    def get_env(self) -> Any:
        env = SimpleNamespace(get_attr=lambda name: [SimpleNamespace(id="CartPole-v1")])
        return SimpleNamespace(norm_obs=True, norm_reward=False, venv=env, get_attr=env.get_attr)


@pytest.fixture
def live(tmp_path: Path) -> Any:
    run = LiveRun(PPO(), tmp_path / "runs")
    yield run
    run.finish("completed", 0)


def test_config_of_the_model(live: LiveRun) -> None:
    config = read_json(live.writer.path / "config.json")
    assert (config["env_id"], config["algo_id"], config["seed"]) == ("CartPole-v1", "ppo", 7)
    assert (config["gamma"], config["clip_range"], config["hidden_dims"]) == (0.9, 0.2, [32, 32])
    assert config["policy_lr"] == {"start": 0.001, "end": 0.0, "schedule": "linear"}
    assert (config["normalize_obs"], config["normalize_reward"]) == (True, False)
    assert (config["max_env_steps"], config["reward_threshold"]) == (64, 475.0)
    assert read_json(live.writer.path / "source.json")["fields"]["policy_lr"] == "learning_rate"


def test_rows_are_there_while_it_trains(live: LiveRun, tmp_path: Path) -> None:
    live.rollout(SimpleNamespace(rewards=np.array([[0.0, 1.0], [1.0, 0.0]])))
    live.episodes([10.0, 30.0, 20.0])
    live.row({"rollout/ep_rew_mean": 20.0, "time/total_timesteps": 8, "train/n_updates": 10, "note": "text"}, 8)
    live.row({"train/entropy_loss": -0.5, "train/explained_variance": np.nan, "mine/x": np.float32(2), "a,b": 1.0}, 16)
    run = find_run("@last", tmp_path / "runs")
    assert run.status["status"] == "running"
    metrics = run.metrics
    assert metrics["train/cnt/env_steps"].tolist() == [8.0, 16.0]
    assert metrics["train/roll/ep_rew_mean"][0] == 20.0
    assert (metrics["train/roll/ep_rew_last"][0], metrics["train/roll/ep_rew_best"][0]) == (20.0, 30.0)
    assert metrics["train/data/reward_zero_share"][0] == 0.5
    assert metrics["train/cnt/updates"][0] == 20.0  # ten passes of two minibatches
    assert (metrics["train/metrics/entropy"][1], metrics["foreign/mine/x"][1], metrics["foreign/a_b"][1]) == (
        0.5,
        2.0,
        1.0,
    )
    assert "train/metrics/explained_variance" not in metrics
    live.finish("completed", 16)
    assert run.status["status"] == "completed"


def test_a_program_that_ends_too_early(live: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", RuntimeError("boom"), raising=False)
    live.beat(8)
    live.abandoned()
    status = read_json(live.writer.path / "status.json")
    assert (status["status"], status["error"], status["env_steps"]) == ("failed", "RuntimeError: boom", 8)
    assert "boom" in (live.writer.path / "run.log").read_text()


def test_a_rollout_of_box_actions() -> None:
    space = SimpleNamespace(low=np.array([-1.0]), high=np.array([1.0]))
    observations = np.stack([np.arange(8.0).reshape(4, 2), np.ones((4, 2))], axis=-1)
    buffer = SimpleNamespace(
        actions=np.array([[[1.0], [0.0]], [[-1.0], [2.0]]]), action_space=space, observations=observations
    )
    found = rollout_statistics(buffer)
    assert found["train/data/action_saturation"] == 0.75
    assert found["train/data/obs_dead_dims"] == 1.0
    assert found["train/data/obs_max"] == 7.0


def test_without_stable_baselines3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.callbacks", None)
    stable_baselines3._make_callback.cache_clear()
    with pytest.raises(MissingExtraError, match="pip install"):
        _ = stable_baselines3.GsolveCallback
    stable_baselines3._make_callback.cache_clear()


def test_the_real_thing(tmp_path: Path) -> None:
    library = pytest.importorskip("stable_baselines3")
    model = library.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=1, device="cpu")
    model.learn(256, callback=stable_baselines3.GsolveCallback(runs_dir=tmp_path))
    run = find_run("@last", tmp_path)
    assert run.status["status"] == "completed"
    assert run.summary()["env_steps"] == 256
    assert run.metrics["train/metrics/kl_divergence"].size >= 4
    assert run.config["n_steps"] == 64
