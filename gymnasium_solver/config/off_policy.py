"""Algorithms that learn from a replay of past experience."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gymnasium_solver.config.base import (
    Activation,
    Count,
    Fraction,
    NetworkConfig,
    Positive,
    RunConfig,
    Whole,
    whole,
)
from gymnasium_solver.config.cards.card import Around, Look, Range, Search
from gymnasium_solver.config.fixed import FIXED
from gymnasium_solver.config.schedules import Number, Schedule, within
from gymnasium_solver.config.usual import BATCHES, LEARNING, NETWORKS
from gymnasium_solver.errors import ConfigError

Epsilon = Annotated[Schedule | Number, within(0.0, 1.0)]
Share = Annotated[Schedule | Number, within(0.0, 1.0)]

# Fields that are heard only where another one has this value.
_HEARD_WITH: Mapping[str, tuple[str, Any]] = {
    "tau": ("target_update_interval", None),
    **dict.fromkeys(("priority_alpha", "priority_beta", "priority_eps"), ("prioritized_replay", True)),
}
_EPOCH_STEPS = 1000  # env steps in a row of metrics, unless n_steps says otherwise


class OffPolicyConfig(NetworkConfig):
    """Fields of algorithms with a replay buffer."""

    n_envs: Annotated[Count, Field(description="environments stepped side by side")] = 1
    n_steps: Annotated[
        Count,
        Field(description="steps of each environment in an epoch, between rows of metrics; a multiple of train_freq"),
    ]
    train_freq: Annotated[Count, Field(description="steps of each environment between updates")] = 1
    update_to_data: Annotated[Positive, Field(description="gradient steps for each env step")] = 1.0
    batch_size: Annotated[Count, Field(description="transitions per gradient step")] = 256
    learning_starts: Annotated[
        Whole, Field(ge=0, description="env steps of random actions before the first update")
    ] = 1000

    buffer_size: Annotated[Count, FIXED, Field(description="transitions kept for replay")] = 1_000_000
    replay_device: Annotated[
        Literal["auto", "host", "accelerator"],
        Field(description="memory that holds the replay; auto: the accelerator's if there is one and it fits"),
    ] = "auto"
    n_step: Annotated[Count, Field(description="rewards summed before bootstrapping")] = 1
    prioritized_replay: Annotated[bool, FIXED, Field(description="replay by temporal-difference error")] = False
    priority_alpha: Annotated[Fraction, FIXED, Field(description="0: uniform, 1: in proportion to the error")] = 0.6
    priority_beta: Annotated[Share, Field(description="how far importance weights correct the bias")] = Schedule(
        start=0.4, end=1.0
    )
    priority_eps: Annotated[Positive, FIXED, Field(description="added to errors, so that none is never replayed")] = (
        1e-6
    )

    tau: Annotated[
        Positive, Field(le=1, description="share of the online network that a target takes over at a time")
    ] = 0.005
    layer_norm: Annotated[bool, FIXED, Field(description="normalise hidden layers")] = False
    reset_interval: Annotated[
        Count | None, Field(description="env steps between fresh starts of the networks, the replay kept")
    ] = None
    reset_part: Annotated[Literal["all", "heads"], Field(description="what such a fresh start covers")] = "all"

    activation: Activation = "relu"
    hidden_dims: Annotated[tuple[Count, ...], Field(min_length=1, description="hidden layers")] = (256, 256)
    max_grad_norm: Annotated[Positive | None, Field(description="clip the gradient norm of each network")] = None
    optimizer_eps: Annotated[Positive, Field(description="epsilon of Adam-like optimisers")] = 1e-8

    @property
    def updates(self) -> int:
        """Gradient steps of one update."""
        return round(self.update_to_data * self.n_envs * self.train_freq)

    @model_validator(mode="before")
    @classmethod
    def _epoch_of_updates(cls, data: Any) -> Any:
        """Unless given, an epoch is about a thousand env steps, in whole rounds of acting and learning."""
        if not isinstance(data, dict) or data.get("n_steps") is not None:
            return data
        defaults = cls.model_fields
        try:
            n_envs, train_freq, budget = (
                int(whole(data.get(name, defaults[name].default))) for name in ("n_envs", "train_freq", "max_env_steps")
            )
        except (TypeError, ValueError, OverflowError):  # reported by the field's own check
            return {**data, "n_steps": 1}
        rounds = max(1, min(_EPOCH_STEPS, budget) // max(1, n_envs * train_freq))
        return {**data, "n_steps": max(1, rounds * train_freq)}

    @model_validator(mode="after")
    def _consistent(self) -> OffPolicyConfig:
        if self.n_steps % self.train_freq:
            nearest = max(1, round(self.n_steps / self.train_freq)) * self.train_freq
            raise ValueError(
                f"n_steps: {self.n_steps} is not a multiple of train_freq {self.train_freq}; the nearest is {nearest}"
            )
        per_update = self.update_to_data * self.n_envs * self.train_freq
        if self.updates < 1 or abs(self.updates - per_update) > 1e-4 * per_update:
            possible = max(1, self.updates) / (self.n_envs * self.train_freq)
            raise ValueError(
                f"update_to_data: {self.update_to_data:g} × n_envs {self.n_envs} × train_freq {self.train_freq} is "
                f"{per_update:g} gradient steps per update, not a whole number; the nearest that works is {possible:g}"
            )
        if self.learning_starts >= self.max_env_steps:
            raise ValueError(
                f"learning_starts: {self.learning_starts} is past the end of training (max_env_steps "
                f"{self.max_env_steps}), so nothing would be learnt; use at most {self.max_env_steps // 10}"
            )
        if self.buffer_rows < self.n_step + 2:
            raise ValueError(
                f"n_step: {self.n_step} is longer than the buffer (buffer_size {self.buffer_size} holds "
                f"{self.buffer_rows} steps of each of {self.n_envs} environments); use a buffer_size of at least "
                f"{self.n_envs * (self.n_step + self.train_freq + 2)}"
            )
        if self.buffer_rows <= self.train_freq:
            raise ValueError(
                f"buffer_size: {self.buffer_size} does not hold the steps of one update (n_envs {self.n_envs} × "
                f"train_freq {self.train_freq}); use at least {self.n_envs * (self.train_freq + 1)}"
            )
        return self

    @property
    def buffer_rows(self) -> int:
        """Steps of each environment that the replay holds."""
        return self.buffer_size // self.n_envs


class ActorCriticReplayConfig(OffPolicyConfig):
    """What DDPG, TD3 and SAC share."""

    n_critics: Annotated[Count, FIXED, Field(le=10, description="critics; targets use the least of them")] = 2


USUAL: Mapping[str, Range] = {
    **NETWORKS,
    "minibatch": (16, 4096),
    "update_to_data": (0.05, 4.0),
    "learning_starts_share": (None, 0.3),
    "buffer_size": (2000, None),
    "tau": (5e-4, 0.2),
}
DEFAULTS: Mapping[str, Any] = {
    "n_envs": 4,
    "train_freq": 4,
    "update_to_data": 0.5,
    "batch_size": 128,
    "buffer_size": 300_000,
    "learning_starts": 2000,
    "hidden_dims": [128, 128],
    "policy_lr": 1e-3,
}
PROBE: Mapping[str, Any] = {
    "batch_size": 64,
    "learning_starts": 100,
    "update_to_data": 0.25,
    "tau": 0.05,
    "policy_lr": 3e-3,
    "max_env_steps": 4_000,
}
RATIOS: Search = [0.25, 0.5, 1.0]
ACTOR_CRITIC_USUAL: Mapping[str, Range] = {**USUAL, "policy_lr": (1e-4, 8e-3)}
ACTOR_CRITIC_SEARCH: Mapping[str, Search] = {**LEARNING, "batch_size": BATCHES, "tau": Around(4, most=1.0)}


def actor_critic_defaults(_: Look) -> dict[str, Any]:
    return {**DEFAULTS, "batch_size": 256, "tau": 0.005}


def silenced_fields(config: RunConfig, read: Mapping[str, Any], changed: Collection[str]) -> list[str]:
    """Fields read from a file that a changed one has put out of force; ConfigError for what is asked for in vain.

    Only what somebody wrote is judged, in a file or as a change to it: a run's config.json names all fields.
    """
    silenced, fields = [], type(config).model_fields
    for name, (switch, needed) in _HEARD_WITH.items():
        if not {name, switch} <= fields.keys() or getattr(config, switch) == needed:
            continue
        value = getattr(config, name)
        if (name, value) == ("tau", 1.0):  # what copies at intervals amount to, and how other libraries write them
            continue
        is_default = value == fields[name].default
        if name in read and switch in changed and name not in changed:
            silenced.append(name)
        elif (name in read and not is_default) or (name in changed and not (is_default and switch in changed)):
            written = "its schedule" if isinstance(value, Schedule) else f"{value:g}"
            now = json.dumps(getattr(config, switch))
            raise ConfigError(
                f"{name}: {written} has no effect while {switch} is {now}; set {switch} to {json.dumps(needed)}, or "
                f"leave {name} out"
            )
    return silenced
