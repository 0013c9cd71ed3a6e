"""Runs of other libraries, as small as they come, written the way those libraries write them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs.foreign.event_writer import event, scalar, text, version

SB3_COLUMNS = (
    "time/iterations,rollout/ep_rew_mean,time/total_timesteps,rollout/ep_len_mean,train/approx_kl,train/entropy_loss,"
    "train/explained_variance,train/n_updates,train/learning_rate,my/own"
)
SB3_DATA = {
    "policy_class": {
        ":type:": "<class 'abc.ABCMeta'>",
        ":serialized:": "gASVbm90IGEgcGlja2xl",
        "__module__": "stable_baselines3.common.policies",
        "__doc__": "long",
    },
    "policy_kwargs": {},
    "_total_timesteps": 4096,
    "seed": 1,
    "n_envs": 2,
    "n_steps": 256,
    "batch_size": 64,
    "n_epochs": 10,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    "clip_range": {
        ":type:": "<class 'FloatSchedule'>",
        ":serialized:": "x",
        "value_schedule": "ConstantSchedule(val=0.3)",
    },
    "learning_rate": {":type:": "<class 'function'>", ":serialized:": "x"},
    "use_sde": False,
    "sde_sample_freq": -1,
}
CLEANRL_ARGUMENTS = {
    "exp_name": "ppo", "seed": 1, "env_id": "CartPole-v1", "total_timesteps": 2000, "learning_rate": 0.00025,
    "num_envs": 4, "num_steps": 128, "anneal_lr": True, "gamma": 0.99, "gae_lambda": 0.95, "num_minibatches": 4,
    "update_epochs": 4, "norm_adv": True, "clip_coef": 0.2, "clip_vloss": True, "ent_coef": 0.01, "vf_coef": 0.5,
    "max_grad_norm": 0.5, "target_kl": None, "batch_size": 512, "minibatch_size": 128,
}  # fmt: skip


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def write_zip(path: Path, data: Any, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", data if isinstance(data, str | bytes) else json.dumps(data))
        archive.writestr("_stable_baselines3_version", "2.6.0")
        archive.writestr("system_info.txt", "- Python: 3.11.7\n- Stable-Baselines3: 2.6.0\n")
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def sb3(tmp_path: Path) -> Path:
    """PPO on CartPole: eight updates, two environments, a model."""
    path = tmp_path / "logs"
    path.mkdir()
    lines = [SB3_COLUMNS]
    for update in range(1, 9):
        trained = f"0.0{update},-0.6,0.5,{10 * update},{1e-3 * (1 - (update - 1) / 8)}" if update > 1 else ",,nan,,"
        lines.append(f"{update},{20.0 * update},{512 * update},{20.0 * update},{trained},{update}")
    (path / "progress.csv").write_text("\n".join(lines) + "\n")
    for number, (begin, rows) in enumerate(((1000.0, ["10,10,1.0", "30,30,3.0"]), (1000.5, ["20,20,1.5"]))):
        header = "#" + json.dumps({"t_start": begin, "env_id": "CartPole-v1"})
        (path / f"{number}.monitor.csv").write_text("\n".join([header, "r,l,t", *rows]) + "\n")
    write_zip(path / "model.zip", SB3_DATA)
    return path


@pytest.fixture
def cleanrl(tmp_path: Path) -> Callable[..., Path]:
    """cleanrl(returns): an episode each four steps; an update each 512."""

    def create(returns: list[float]) -> Path:
        path = tmp_path / "CartPole-v1__ppo__1__1700000000"
        path.mkdir()
        table = "|param|value|\n|-|-|\n" + "\n".join(f"|{key}|{value}|" for key, value in CLEANRL_ARGUMENTS.items())
        records = [version(), event(0, text("hyperparameters", table))]
        for index, value in enumerate(returns, start=1):
            records.append(event(4 * index, scalar("charts/episodic_return", value), time=1.7e9 + index))
            records.append(event(4 * index, scalar("charts/episodic_length", value), time=1.7e9 + index))
        for name, value in (("value_loss", 1.5), ("approx_kl", 0.25), ("entropy", 0.5), ("old_approx_kl", 0.125)):
            records.append(event(512, scalar(f"losses/{name}", value)))
        (path / "events.out.tfevents.1700000000.host").write_bytes(b"".join(records))
        return path

    return create
