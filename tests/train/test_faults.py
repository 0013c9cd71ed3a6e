"""What goes wrong in mid-training: one clear message, the run marked with its reason, nothing of it lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.errors import DivergedError, EnvironmentFault
from gymnasium_solver.runs.reader import Run, find_run
from gymnasium_solver.train.judge import EpisodeJudge
from gymnasium_solver.train.session import train

SMALL = {"n_envs": 2, "n_steps": 16, "batch_size": 16, "n_epochs": 1, "max_env_steps": 2000, "vectorization": "sync"}


class Breaks(gymnasium.Wrapper):
    """CartPole that goes wrong after some steps."""

    def __init__(self, env: gymnasium.Env, how: str, after: int = 50) -> None:
        super().__init__(env)
        self.how, self.left = how, after

    def step(self, action: Any) -> tuple:
        observation, reward, terminated, truncated, info = super().step(action)
        self.left -= 1
        if self.left > 0:
            return observation, reward, terminated, truncated, info
        if self.how == "raises":
            raise RuntimeError("the simulator lost its licence")
        if self.how == "nan-obs":
            observation = np.full_like(observation, np.nan)
        if self.how == "inf-reward":
            reward = float("inf")
        if self.how == "shape":
            observation = observation[:2]
        return observation, reward, terminated, truncated, info


@pytest.mark.integration
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", "the simulator lost its licence"),
        ("nan-obs", "non-finite obs (nan in component 0, 1, 2, 3 of 4)"),
        ("inf-reward", "non-finite reward (inf) in environment 0"),
        ("shape", "(2,)"),
    ],
)
def test_a_broken_environment(how: str, message: str, tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {**SMALL, "env_wrappers": [{f"{__name__}:Breaks": {"how": how}}]})
    with pytest.raises(EnvironmentFault, match=re.escape(message)) as caught:
        train(config, runs_dir=tmp_path, command=[])
    assert "\n" not in str(caught.value)
    run = find_run("@last", tmp_path)
    assert run.status["status"] == "failed"
    assert message in run.status["error"]
    assert any("ERROR" in line for line in run.log_lines())
    assert len(run.metrics["train/cnt/epochs"]) >= 2, "what was trained before is there"
    assert run.read_checkpoint("last")[1]["progress"]["epoch"] == run.metrics.last("train/cnt/epochs")


@pytest.mark.integration
def test_the_environments_of_evaluations_are_closed_when_those_of_training_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    monkeypatch.setattr(EpisodeJudge, "close", lambda judge: closed.append(judge))
    config = load_config("CartPole-v1:ppo", {**SMALL, "env_wrappers": [{f"{__name__}:Breaks": {"how": "raises"}}]})
    with pytest.raises(EnvironmentFault):
        train(config, runs_dir=tmp_path, command=[])
    assert closed


@pytest.mark.integration
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_the_log_keeps_the_stack_trace_of_an_environment(vectorization: str, tmp_path: Path) -> None:
    fields = SMALL | {"vectorization": vectorization, "env_wrappers": [{f"{__name__}:Breaks": {"how": "raises"}}]}
    with pytest.raises(EnvironmentFault, match=r"\(at .*test_faults\.py:\d+\)"):
        train(load_config("CartPole-v1:ppo", fields), runs_dir=tmp_path, command=[])
    run = find_run("@last", tmp_path)
    log = "\n".join(run.log_lines())
    assert log.count("ERROR Traceback (most recent call last)") == 1
    assert 'raise RuntimeError("the simulator lost its licence")' in log
    assert "in step" in log
    assert "Traceback" not in run.report_path.read_text(), "a line of it alone says nothing"
    assert "the simulator lost its licence" in run.report_path.read_text()


@pytest.mark.integration
def test_divergence_is_named_and_marked(tmp_path: Path) -> None:
    config = load_config(
        "Pendulum-v1:ppo",
        {
            **SMALL,
            "policy_lr": 1e30,
            "max_grad_norm": None,
            "optimizer": "sgd",
            "normalize_obs": False,
            "normalize_reward": False,
        },
    )
    with pytest.raises(DivergedError, match="lower policy_lr"):
        train(config, runs_dir=tmp_path, command=[])
    run = find_run("@last", tmp_path)
    assert run.status["status"] == "diverged"
    assert not np.isfinite(run.metrics["train/loss/total"][-1]), "the evidence is kept"


@pytest.mark.integration
def test_a_warning_reaches_the_log_and_the_live_view(tmp_path: Path) -> None:
    # This world shows 0 and 1 in turn whatever is done: the streams of its environments are equal.
    seen: list[str] = []
    config = load_config("gymnasium_solver.envs.probes:DelayedReward:ppo", {**SMALL, "max_env_steps": 200})
    run: Run = train(
        config,
        runs_dir=tmp_path,
        command=[],
        on_event=lambda event: seen.append(event.data["message"]) if event.kind == "warning" else None,
    )
    assert len(seen) == 1
    assert "duplicate_envs" in seen[0]
    assert any("WARNING" in line and "duplicate_envs" in line for line in run.log_lines())
