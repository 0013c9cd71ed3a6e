"""Arguments that several tools share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from gymnasium_solver.mcp.answers import MOST_ENTRIES

RunId = Annotated[str, Field(description="Run id, unique beginning of one, or @last for the newest.", min_length=1)]
RunOrGroupId = Annotated[
    str, Field(description="Run id, unique beginning of one, @last for the newest, or a group's id.", min_length=1)
]
ConfigId = Annotated[str, Field(description="ENV:VARIANT, e.g. CartPole-v1:ppo.", min_length=1)]
EnvFilter = Annotated[str, Field(description="Only environments whose id contains this.")]
Limit = Annotated[int, Field(description="Most entries to return.", ge=1, le=MOST_ENTRIES)]
Overrides = Annotated[
    dict[str, Any] | None,
    Field(description='Config fields to change, e.g. {"policy_lr": 0.001, "n_envs": 16}; unknown fields are refused.'),
]
MaxEnvSteps = Annotated[int | None, Field(description="Environment steps to train for [the config's].", ge=1)]
Seeds = Annotated[
    int, Field(description="Fresh seeds per side; five or more before a difference can be shown.", ge=3, le=50)
]
TestSeeds = Annotated[
    int, Field(description="Fresh seeds per side; fewer than four cannot show a difference.", ge=4, le=50)
]
Budget = Annotated[str, Field(description="Time to spend, e.g. 90s, 10m, 1h.")]
Resume = Annotated[
    str | None,
    Field(description="An experiment to continue as it was started, with a new budget at most: list_experiments."),
]
Wait = Annotated[
    float,
    Field(
        description="Wait up to this many seconds for the end, with progress notifications [0: answer now].",
        ge=0,
        le=60,
    ),
]
