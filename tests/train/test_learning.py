"""Shipped configurations solve their environments: every seed, on fresh episodes of the Gymnasium environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.train.judge import evaluate_checkpoint
from gymnasium_solver.train.session import train

pytestmark = pytest.mark.slow

SEEDS = {
    "CartPole-v1:ppo": range(5),
    "CartPole-v1:a2c": range(3),
    "CartPole-v1:reinforce": range(3),
    "Acrobot-v1:ppo": range(3),
    "Pendulum-v1:ppo": range(3),
    "MountainCar-v0:ppo": range(3),
    "MountainCarContinuous-v0:ppo": range(3),
    "FrozenLake-v1:ppo": range(3),
    "MiniGrid-Empty-5x5-v0:ppo": range(3),
    "Taxi-v3:ppo": range(1),
    "LunarLander-v3:ppo": range(1),
    "Pendulum-v1:sac": range(3),
    "Pendulum-v1:td3": range(1),
    "Pendulum-v1:ddpg": range(1),
    "MountainCarContinuous-v0:sac": range(1),
    "FrozenLake-v1:q_learning": range(2),
    "CliffWalking-v1:q_learning": range(2),
    "CliffWalking-v1:dqn": range(2),
    "MountainCar-v0:dqn_bonus": range(1),
}


@pytest.mark.parametrize("ref", SEEDS)
def test_solved_on_every_seed(ref: str, tmp_path: Path) -> None:
    for seed in SEEDS[ref]:
        run = train(load_config(ref, {"seed": seed}), runs_dir=tmp_path, command=[])
        summary = run.summary()
        assert summary["solved"], f"seed {seed}: best {summary['best_reward']} of {summary['threshold']}"
        # What the run says holds for a policy read back from disk, up to the luck of other episodes.
        again = evaluate_checkpoint(run, "best", episodes=50, deterministic=True, seed=1000 + seed)
        slack = 3 * again.std / 50**0.5
        assert again.mean >= summary["threshold"] - slack, f"seed {seed}: {again.mean} ± {again.std}"


def test_untrained_policies_do_not_pass(tmp_path: Path) -> None:
    """The negative control: the same check fails when nothing can be learnt."""
    config = load_config("CartPole-v1:ppo", {"policy_lr": 0.0, "max_env_steps": 20_000})
    assert not train(config, runs_dir=tmp_path, command=[]).summary()["solved"]
