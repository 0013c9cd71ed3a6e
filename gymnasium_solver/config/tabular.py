"""Algorithms that keep a table of action values, for discrete observations and actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gymnasium_solver.config.base import Coefficient, Config, Count, Fraction
from gymnasium_solver.config.cards.card import Around, Look, Range, Search, Spaces
from gymnasium_solver.config.fixed import FIXED
from gymnasium_solver.config.off_policy import Epsilon
from gymnasium_solver.config.schedules import Number, Schedule, within
from gymnasium_solver.config.usual import GAMMAS
from gymnasium_solver.errors import ConfigError

MOST_ENTRIES = 50_000_000  # of a table
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
    initial_value: Annotated[Number, FIXED, Field(description="of every entry; above what is reachable: optimism")] = (
        0.0
    )
    gamma: Annotated[Fraction, Field(description="discount")] = 0.99

    @model_validator(mode="after")
    def _nothing_to_normalise(self) -> TabularConfig:
        for name in ("normalize_obs", "normalize_reward"):
            if getattr(self, name):
                raise ValueError(f"{name}: a table has no use for it; leave it out")
        return self


def require_table(config: TabularConfig, spaces: Spaces) -> None:
    if spaces.action.kind != "discrete":
        raise ConfigError(
            f"algo_id: {config.algo_id} keeps a table of discrete actions; those of {config.env_id} are not; use ppo"
        )
    entries = math.prod(spaces.obs_sizes) * spaces.action.sizes[0]
    if entries > MOST_ENTRIES:
        raise ConfigError(
            f"algo_id: {config.algo_id} would need a table of {entries:,} entries for {config.env_id}; use dqn"
        )


USUAL: Mapping[str, Range] = {"policy_lr": (0.01, 1.0), "gamma": (0.9, None), "epsilon_late": (0.002, 0.4)}
SEARCH: Mapping[str, Search] = {"policy_lr": Around(10, most=1.0), "gamma": GAMMAS, "epsilon.to": (0.05, 0.9)}
PROBE: Mapping[str, Any] = {
    "policy_lr": 0.2,
    "epsilon": {"start": 1.0, "end": 0.02, "to": 0.5},
    "max_env_steps": 4_000,
}


def defaults(_: Look) -> dict[str, Any]:
    return {"n_envs": 4, "n_steps": 64, "policy_lr": {"start": 0.3, "end": 0.05}}
