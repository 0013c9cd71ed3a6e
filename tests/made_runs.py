"""Runs to diagnose: readings made up by hand, and directories written without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.diagnose.series import Series
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter

STEPS = np.linspace(1000, 50_000, 50)


def flat(value: float, noise: float = 0.0) -> np.ndarray:
    return value + noise * np.random.default_rng(0).normal(size=len(STEPS))


def line(start: float, end: float) -> np.ndarray:
    return np.linspace(start, end, len(STEPS))


HEALTHY = {
    "train/roll/ep_rew_mean": line(22, 500),
    "val/roll/ep_rew_mean": line(22, 500),
    "train/metrics/kl_divergence": flat(0.01),
    "train/metrics/clip_fraction": flat(0.15),
    "train/metrics/entropy_relative": line(1.0, 0.6),
    "train/metrics/explained_variance": line(0.0, 0.9),
    "train/metrics/update_norm_ratio": flat(0.01),
    "train/metrics/grad_norm/all": flat(0.5),
    "train/metrics/grad_clip_fraction": flat(0.3),
    "train/metrics/ratio_deviation_first": flat(1e-6),
    "train/loss/policy": flat(-0.01),
    "train/loss/value": line(30, 5),
    "train/data/obs_dead_dims": flat(0),
    "train/data/obs_std": flat(0.5),
    "train/data/obs_min": flat(-2),
    "train/data/obs_max": flat(2),
    "train/data/reward_min": flat(1),
    "train/data/reward_max": flat(1),
    "train/data/action_effect": flat(0.7),
    "train/data/obs_noise_share": flat(0.03),
    "train/data/return_mean": line(15, 60),
    "train/data/return_std": flat(8),
    "train/cnt/updates": line(100, 5000),
}
FAILING = HEALTHY | {"train/roll/ep_rew_mean": flat(22, 1.0), "val/roll/ep_rew_mean": flat(22, 1.0)}


def make_readings(
    curves: dict[str, np.ndarray] = FAILING, ref: str = "CartPole-v1:ppo", known: bool = True, **fields: Any
) -> Readings:
    """As read from a run of 50,000 steps; `known=False` hides its settings."""
    config = _config(ref, fields)
    if not known:
        config = {name: config[name] for name in ("env_id", "algo_id", "max_env_steps", "reward_threshold")}
    found = {name: Series(STEPS, values) for name, values in curves.items()}
    found["train/cnt/env_steps"] = Series(STEPS, STEPS)
    spaces = {"obs_shape": [4], "obs_sizes": [], "is_image": False, "action": {"kind": "discrete", "sizes": [2]}}
    return Readings(
        "made-up", "completed", config, found, spaces, record={"threshold": config["reward_threshold"], "solved": None}
    )


def write_run(
    runs_dir: Path,
    curves: dict[str, np.ndarray] = FAILING,
    ref: str = "CartPole-v1:ppo",
    status: str = "completed",
    solved: bool | None = None,
    **fields: Any,
) -> Run:
    """A run directory with these curves, as training would have left it."""
    writer = RunWriter.create(runs_dir, _config(ref, fields), command=["test"])
    for index, steps in enumerate(STEPS):
        row = {"train/cnt/env_steps": float(steps), "train/cnt/epochs": index + 1}
        writer.metrics(row | {name: float(values[index]) for name, values in curves.items()})
    writer.status(status, threshold=475.0, **({} if solved is None else {"solved": solved}))
    writer.close()
    return Run(writer.path)


def write_offline_run(
    runs_dir: Path,
    curves: dict[str, np.ndarray] = FAILING,
    status: str = "completed",
    counts: bool = False,
    **fields: Any,
) -> Run:
    """A run without an environment, of 5,000 updates; `counts`: it logs its env steps all the same, which are 0."""
    config = {"env_id": "CartPole-v1", "algo_id": "bc", "seed": 0, "max_updates": 5000, "reward_threshold": 475.0}
    config |= {"batch_size": 256, "policy_lr": 1e-3, "hidden_dims": [64, 64], **fields}
    writer = RunWriter.create(runs_dir, config, command=["test"])
    shown = {name: values for name, values in curves.items() if not name.startswith(("train/roll", "train/cnt"))}
    for index, steps in enumerate(STEPS):
        row = {"train/cnt/updates": float(steps) / 10, "train/cnt/epochs": index + 1} | (
            {"train/cnt/env_steps": 0} if counts else {}
        )
        writer.metrics(row | {name: float(values[index]) for name, values in shown.items()})
    writer.status(status, threshold=475.0, updates=5000, max_updates=config["max_updates"])
    writer.close()
    return Run(writer.path)


def _config(ref: str, fields: dict[str, Any]) -> dict[str, Any]:
    return to_dict(load_config(ref, {"max_env_steps": 50_000, "reward_threshold": 475.0, **fields}))
