"""`gsolve import` on logs made here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOG = "time/total_timesteps,rollout/ep_rew_mean,train/approx_kl,mine\n" + "".join(
    f"{step},{step / 10},0.01,{step}\n" for step in range(100, 1100, 100)
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "progress.csv").write_text(LOG)
    return tmp_path / "logs"


def test_what_was_recognised_mapped_and_missing(gsolve: Callable[..., Any], logs: Path) -> None:
    result = gsolve("import", str(logs), "--env", "CartPole-v1", "--algo", "ppo")
    assert result.code == 0
    run_id = result.out.split("run")[1].split()[0]
    assert run_id.startswith("imported-sb3-logs-")
    assert "recognised   sb3, from progress.csv" in result.out
    assert "mapped: train/roll/ep_rew_mean, train/metrics/kl_divergence" in result.out
    assert "kept         1 as foreign/*: mine" in result.out
    assert "train/metrics/clip_fraction" in result.out.split("no metrics")[1]
    assert "gamma" in result.out.split("no config")[1]
    assert gsolve("show", run_id).code == 0
    assert run_id in gsolve("runs").out
    assert gsolve("report", run_id).code == 0


def test_as_json_and_a_second_time(gsolve: Callable[..., Any], logs: Path) -> None:
    first = json.loads(gsolve("import", str(logs), "--json").out)
    again = json.loads(gsolve("import", str(logs), "--json").out)
    assert first["run_id"] == again["run_id"]
    assert len(json.loads(gsolve("runs", "--json").out)) == 1
    assert first["library"] == "sb3"
    assert first["metrics"]["train/roll/ep_rew_mean"] == "rollout/ep_rew_mean"
    assert first["summary"]["env_steps"] == 1000
    assert Path(first["path"]).is_dir()
    assert first["source"] == str(logs)


def test_what_was_told_once_holds(gsolve: Callable[..., Any], logs: Path) -> None:
    """`diagnose PATH` imports it again; the files have not begun to say what they did not."""
    told = ("--env", "CartPole-v1", "--algo", "ppo", "--map", "val/roll/ep_rew_mean=mine")
    run_id = json.loads(gsolve("import", str(logs), *told, "--json").out)["run_id"]
    summary = json.loads(gsolve("diagnose", str(logs), "--json").out)["summary"]
    assert (summary["run_id"], summary["env_id"], summary["algo_id"]) == (run_id, "CartPole-v1", "ppo")
    again = json.loads(gsolve("import", str(logs), "--env", "Acrobot-v1", "--json").out)
    assert (again["summary"]["env_id"], again["summary"]["algo_id"]) == ("Acrobot-v1", "ppo")
    assert again["metrics"]["val/roll/ep_rew_mean"] == "mine"


def test_a_mapping(gsolve: Callable[..., Any], logs: Path) -> None:
    pairs = ("--map", "val/roll/ep_rew_mean=mine")
    found = json.loads(gsolve("import", str(logs / "progress.csv"), "--as", "csv", *pairs, "--json").out)
    assert found["metrics"]["val/roll/ep_rew_mean"] == "mine"
    assert found["summary"]["best_reward"] == 1000.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "there is no file or directory"),
        (("logs", "--as", "excel"), "choose from sb3, cleanrl, rllib"),
        (("logs", "--map", "reward"), "is not OURS=THEIRS"),
        (("logs", "--map", "reward=mine"), "is not a metric of ours"),
        (("logs", "--algo", "alphazero"), "is not an algorithm"),
        (("logs", "--as", "tensorboard"), "nothing that can be imported as tensorboard"),
        (("empty",), "nothing that can be imported"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    gsolve: Callable[..., Any], logs: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    result = gsolve("import", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
