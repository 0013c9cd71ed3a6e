"""REINFORCE, the plain policy gradient."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver.config.base import Coefficient
from gymnasium_solver.config.cards.card import Card, Look
from gymnasium_solver.config.on_policy import ACTIONS, SEARCH, USUAL, OnPolicyConfig, suited


class ReinforceConfig(OnPolicyConfig):
    algo_id: Literal["reinforce"] = "reinforce"
    returns: Annotated[
        Literal["reward_to_go", "episode"], Field(description="what weighs an action: return from it on, or of all")
    ] = "reward_to_go"
    baseline: Annotated[Literal["none", "value"], Field(description="subtract nothing, or a learned value")] = "value"
    vf_coef: Annotated[Coefficient, Field(description="weight of the baseline's loss")] = 0.5


def defaults(look: Look) -> dict[str, Any]:
    n_steps = min(look.limit, 1000) if look.limit else 256  # a rollout holds whole episodes
    return suited({"n_envs": 16, "n_steps": n_steps, "policy_lr": 3e-3, "ent_coef": 0.01}, look)


CARD = Card(
    algo_id="reinforce",
    title="REINFORCE: the plain policy gradient of Monte-Carlo returns",
    family="on_policy",
    config=ReinforceConfig,
    make="gymnasium_solver.algorithms.reinforce:make",
    feed="rollout",
    actions=ACTIONS,
    instead={},
    defaults=defaults,
    usual={**USUAL, "policy_lr": (1e-4, 5e-2), "updates": (20, None)},
    search=SEARCH,
    probe={"n_steps": 16, "policy_lr": 1e-2, "ent_coef": 0.0, "max_env_steps": 16_000},
    quick=("CartPole-v1",),
    order=3,
)
