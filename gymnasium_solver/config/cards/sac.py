"""Soft actor-critic."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from gymnasium_solver.config.base import Coefficient, Count, LearningRate, Positive
from gymnasium_solver.config.cards.card import Card, Spaces
from gymnasium_solver.config.fixed import FIXED, Fixed
from gymnasium_solver.config.off_policy import (
    ACTOR_CRITIC_SEARCH,
    ACTOR_CRITIC_USUAL,
    PROBE,
    RATIOS,
    ActorCriticReplayConfig,
    actor_critic_defaults,
)
from gymnasium_solver.config.schedules import Number
from gymnasium_solver.errors import ConfigError


class SACConfig(ActorCriticReplayConfig):
    algo_id: Literal["sac"] = "sac"
    ent_coef: Annotated[
        Literal["auto"] | Coefficient,
        Fixed(lambda value: value == "auto"),  # then the temperature is one of the parameters
        Field(description="temperature; auto: learned, towards target_entropy"),
    ] = "auto"
    ent_coef_init: Annotated[Positive, FIXED, Field(description="initial temperature when it is learned")] = 1.0
    ent_coef_lr: Annotated[LearningRate | None, Field(description="its learning rate; unset: policy_lr")] = None
    target_entropy: Annotated[
        Literal["auto"] | Number, Field(description="auto: minus the action dimensions; discrete: a third of the most")
    ] = "auto"
    use_sde: Annotated[bool, FIXED, Field(description="noise is a function of the state (gSDE)")] = False
    sde_sample_freq: Annotated[Count, Field(description="gSDE: steps between draws of that function")] = 8
    log_std_init: Annotated[Number, FIXED, Field(description="initial log standard deviation of the policy")] = 0.0


def require_reachable_entropy(config: SACConfig, spaces: Spaces) -> None:
    if spaces.action.kind != "discrete" or config.ent_coef != "auto" or config.target_entropy == "auto":
        return
    n_actions = spaces.action.sizes[0]
    most = math.log(n_actions)
    if config.target_entropy > most:
        raise ConfigError(
            f"target_entropy: {config.target_entropy:g} is more than the {n_actions} actions of {config.env_id} can "
            f"have, so the temperature would grow without end; use less than {most:.3g} (log {n_actions}), or auto"
        )


CARD = Card(
    algo_id="sac",
    title="soft actor-critic: reward and entropy together, learnt from a replay",
    family="replay",
    config=SACConfig,
    make="gymnasium_solver.algorithms.sac:make",
    feed="replay",
    actions=("discrete", "box"),
    instead={"multi_discrete": "ppo"},
    defaults=actor_critic_defaults,
    usual={**ACTOR_CRITIC_USUAL, "ent_coef": (1e-4, 0.8)},
    search={**ACTOR_CRITIC_SEARCH, "update_to_data": RATIOS},
    probe={**PROBE, "ent_coef": 0.01},
    is_squashed=True,
    requires=require_reachable_entropy,
    tried={"box": 2},
    quick=("Pendulum-v1",),
    signature=(("train/metrics/alpha",),),
    order=7,
)
