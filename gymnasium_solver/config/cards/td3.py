"""Twin delayed deep deterministic policy gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from gymnasium_solver.config.base import Count, NonNegative
from gymnasium_solver.config.cards.ddpg import CARD as DDPG
from gymnasium_solver.config.cards.ddpg import DDPGConfig


class TD3Config(DDPGConfig):
    algo_id: Literal["td3"] = "td3"  # type: ignore[assignment]
    n_critics: Annotated[Count, Field(le=10, description="critics; targets use the least of them")] = 2
    policy_delay: Annotated[Count, Field(description="gradient steps of the critics for one of the policy")] = 2
    target_noise: Annotated[NonNegative, Field(description="noise of the target policy's actions")] = 0.2
    target_noise_clip: Annotated[NonNegative, Field(description="bound of that noise")] = 0.5


CARD = replace(
    DDPG,
    algo_id="td3",
    title="twin delayed DDPG: the lesser of two critics, noisy targets, a policy updated less often",
    config=TD3Config,
    make="gymnasium_solver.algorithms.td3:make",
    probe={**DDPG.probe, "target_noise": 0.05},
    tried={"box": 3},
    quick=("Pendulum-v1",),
    order=6,
)
