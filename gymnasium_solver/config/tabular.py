"""Algorithms that keep a table of action values, for discrete observations and actions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gymnasium_solver.config.base import Coefficient, Config, Count, Fraction
from gymnasium_solver.config.off_policy import Epsilon
from gymnasium_solver.config.schedules import Number, Schedule, within

StepSize = Annotated[Schedule | Number, within(0.0, 1.0, low_open=True)]


class TabularConfig(Config):
    n_envs: Annotated[Count, Field(description="environments stepped side by side")] = 1
    n_steps: Annotated[Count, Field(description="steps of each environment between updates of the table")] = 16
    policy_lr: Annotated[StepSize, Field(description="step size; the share of the error corrected")] = 0.1
    exploration: Annotated[
        Literal["epsilon", "ucb"], Field(description="epsilon-greedy, or an upper bound on what rarely tried is worth")
    ] = "epsilon"
    epsilon: Annotated[Epsilon, Field(description="share of random actions")] = Schedule(start=1.0, end=0.05, to=0.5)
    ucb_coef: Annotated[Coefficient, Field(description="ucb: mean weight of the bound beside the value")] = 1.0
    initial_value: Annotated[Number, Field(description="of every entry; above what is reachable: optimism")] = 0.0
    gamma: Annotated[Fraction, Field(description="discount")] = 0.99

    @model_validator(mode="after")
    def _nothing_to_normalise(self) -> TabularConfig:
        for name in ("normalize_obs", "normalize_reward"):
            if getattr(self, name):
                raise ValueError(f"{name}: a table has no use for it; leave it out")
        return self


class QLearningConfig(TabularConfig):
    algo_id: Literal["q_learning"] = "q_learning"


class SarsaConfig(TabularConfig):
    algo_id: Literal["sarsa"] = "sarsa"
