"""Advantage actor-critic."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gymnasium_solver.config.base import Coefficient, Count, Fraction, LearningRate, Optimizer
from gymnasium_solver.config.cards.card import Card, Look
from gymnasium_solver.config.on_policy import ACTIONS, LAMBDAS, SEARCH, USUAL, OnPolicyConfig, suited


class A2CConfig(OnPolicyConfig):
    algo_id: Literal["a2c"] = "a2c"
    n_steps: Count = 5
    policy_lr: LearningRate = 7e-4
    optimizer: Optimizer = "rmsprop"
    normalize_advantages: bool = False
    gae_lambda: Annotated[Fraction, Field(description="GAE: 0 one-step, 1 Monte-Carlo")] = 1.0
    vf_coef: Annotated[Coefficient, Field(description="weight of the value loss")] = 0.5


def defaults(look: Look) -> dict[str, Any]:
    fields = {"n_envs": 16, "n_steps": 16, "ent_coef": 0.01, "policy_lr": 1e-3, "gae_lambda": 0.95}
    return suited(fields, look)


CARD = Card(
    algo_id="a2c",
    title="advantage actor-critic: one gradient step on each short rollout",
    family="on_policy",
    config=A2CConfig,
    make="gymnasium_solver.algorithms.a2c:make",
    feed="rollout",
    actions=ACTIONS,
    instead={},
    defaults=defaults,
    usual={**USUAL, "policy_lr": (1e-4, 2e-2), "rollout": (32, 16_384), "updates": (100, None)},
    search={**SEARCH, "gae_lambda": LAMBDAS, "n_steps": [5, 8, 16, 32]},
    probe={"n_steps": 16, "policy_lr": 1e-2, "optimizer": "adam", "ent_coef": 0.0, "max_env_steps": 16_000},
    tried={"multi_discrete": 2},
    quick=("CartPole-v1",),
    order=2,
)
