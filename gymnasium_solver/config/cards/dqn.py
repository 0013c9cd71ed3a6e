"""Deep Q-learning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver.config.base import Count, Positive
from gymnasium_solver.config.cards.card import Around, Card, Look
from gymnasium_solver.config.fixed import FIXED
from gymnasium_solver.config.off_policy import DEFAULTS, PROBE, RATIOS, USUAL, Epsilon, OffPolicyConfig
from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.config.usual import BATCHES, LEARNING


class DQNConfig(OffPolicyConfig):
    algo_id: Literal["dqn"] = "dqn"
    double: Annotated[bool, Field(description="the online network chooses the action that the target values")] = True
    dueling: Annotated[bool, FIXED, Field(description="value and advantage streams")] = False
    value_loss: Annotated[
        Literal["huber", "mse"], Field(description="huber: errors beyond 1 weigh as much as 1; mse: all of it")
    ] = "huber"
    epsilon: Annotated[Epsilon, Field(description="share of random actions")] = Schedule(start=1.0, end=0.05, to=0.1)
    target_update_interval: Annotated[
        Count | None, Field(description="env steps between copies into the target network; unset: tau")
    ] = 1000
    max_grad_norm: Annotated[Positive | None, Field(description="clip the gradient norm")] = 10.0


VECTOR: dict[str, Any] = {
    **DEFAULTS,
    "target_update_interval": 1000,
    "policy_lr": {"start": 1e-3, "end": 1e-4, "schedule": "linear"},
    "epsilon": {"start": 1.0, "end": 0.05, "to": 0.15},
}
# As most Atari results are reported with, but for a replay that fits into the memory of most machines.
IMAGE: dict[str, Any] = {
    "n_envs": 8,
    "train_freq": 4,
    "update_to_data": 0.25,
    "batch_size": 32,
    "buffer_size": 100_000,
    "learning_starts": 20_000,
    "hidden_dims": [512],
    "policy_lr": 1e-4,
    "target_update_interval": 8000,
    "epsilon": {"start": 1.0, "end": 0.01, "to": 0.1},
}


def defaults(look: Look) -> dict[str, Any]:
    return dict(IMAGE if look.image else VECTOR)


CARD = Card(
    algo_id="dqn",
    title="deep Q-learning: a network of action values, learnt from a replay",
    family="replay",
    config=DQNConfig,
    make="gymnasium_solver.algorithms.dqn:make",
    feed="replay",
    actions=("discrete",),
    instead={"multi_discrete": "ppo", "box": "sac, td3 or ppo"},
    defaults=defaults,
    usual={
        **USUAL,
        "policy_lr": (3e-5, 8e-3),
        "epsilon_late": (0.005, 0.4),
        "target_share": (None, 0.1),
        "target_update_interval": (10, None),
    },
    search={
        **LEARNING,
        "batch_size": [32, 64, *BATCHES],
        "update_to_data": RATIOS,
        "target_update_interval": Around(10),
    },
    probe={**PROBE, "target_update_interval": None, "epsilon": {"start": 1.0, "end": 0.1, "to": 0.5}},
    tried={"table": 3, "discrete": 2},
    quick=("CliffWalking-v1",),
    signature=(
        ("train/hp/epsilon", "train/metrics/target_distance"),
        ("train/hp/epsilon", "train/metrics/td_error"),
    ),
    order=4,
)
