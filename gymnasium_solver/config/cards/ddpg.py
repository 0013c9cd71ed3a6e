"""Deep deterministic policy gradient."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gymnasium_solver.config.base import Coefficient, Count, Fraction, LearningRate
from gymnasium_solver.config.cards.card import Card
from gymnasium_solver.config.off_policy import (
    ACTOR_CRITIC_SEARCH,
    ACTOR_CRITIC_USUAL,
    PROBE,
    ActorCriticReplayConfig,
    actor_critic_defaults,
)


class DDPGConfig(ActorCriticReplayConfig):
    algo_id: Literal["ddpg"] = "ddpg"
    n_critics: Annotated[Count, Field(le=1, description="one critic; td3 has two")] = 1
    policy_lr: Annotated[LearningRate, Field(description="learning rate")] = 1e-3
    noise: Annotated[Literal["gaussian", "ou"], Field(description="noise of actions: fresh, or correlated in time")] = (
        "gaussian"
    )
    noise_std: Annotated[
        Coefficient, Field(description="its standard deviation at each step, of actions in [-1, 1]")
    ] = 0.1
    ou_theta: Annotated[Fraction, Field(description="ou: pull towards zero each step")] = 0.15


CARD = Card(
    algo_id="ddpg",
    title="deep deterministic policy gradient: a policy that climbs its critic, learnt from a replay",
    family="replay",
    config=DDPGConfig,
    make="gymnasium_solver.algorithms.ddpg:make",
    feed="replay",
    actions=("box",),
    instead={"discrete": "dqn or ppo", "multi_discrete": "ppo"},
    defaults=actor_critic_defaults,
    usual={**ACTOR_CRITIC_USUAL, "noise_std": (0.02, 0.8)},
    search={**ACTOR_CRITIC_SEARCH, "noise_std": (0.0, 0.5)},
    probe={**PROBE, "noise_std": 0.3},
    is_squashed=True,
    order=5,
)
