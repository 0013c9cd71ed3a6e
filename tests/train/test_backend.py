"""How many threads a training computes with."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.train.backend import threads_for

_POOL = """
import os
from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.train.learner import Learner

config = load_config("CartPole-v1:dqn", {"batch_size": BATCH, "hidden_dims": [256, 256]})
Learner(config, describe(config))
import jax
jax.devices()
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
print(names.count("tf_XLAEigen"), "NPROC" in os.environ)
"""


@pytest.mark.parametrize(
    ("ref", "overrides", "threads"),
    [
        ("CartPole-v1:ppo", {}, 1),
        ("CartPole-v1:a2c", {}, 1),
        ("CartPole-v1:dqn", {"batch_size": 64, "hidden_dims": [256, 256]}, 1),
        ("CartPole-v1:dqn", {"batch_size": 128, "hidden_dims": [256, 256]}, None),
        ("CartPole-v1:dqn", {"batch_size": 128, "hidden_dims": [256]}, 1),
        ("Pendulum-v1:sac", {"batch_size": 256, "hidden_dims": [256, 256]}, None),
        ("FrozenLake-v1:q_learning", {}, 1),
    ],
)
def test_small_products_are_computed_by_one_thread(ref: str, overrides: dict[str, object], threads: int | None) -> None:
    config = load_config(ref, overrides)
    assert threads_for(config, describe(config)) == threads


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_the_client_is_made_with_them() -> None:
    def pool(batch: int) -> list[str]:
        made = subprocess.run(
            [sys.executable, "-c", _POOL.replace("BATCH", str(batch))], capture_output=True, text=True, check=True
        )
        return made.stdout.split()

    small, large = pool(64), pool(512)
    assert small == ["1", "False"]
    assert large[1] == "False" and int(large[0]) >= int(small[0])
