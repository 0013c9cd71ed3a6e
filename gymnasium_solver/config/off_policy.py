"""Algorithms that learn from a replay of past experience."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gymnasium_solver.config.base import (
    Activation,
    Coefficient,
    Config,
    Count,
    Fraction,
    LearningRate,
    NetworkConfig,
    NonNegative,
    Positive,
    Whole,
    whole,
)
from gymnasium_solver.config.schedules import Number, Schedule, within
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
    batch_size: Annotated[Count, Field(description="transitions in a gradient step")] = 256
    learning_starts: Annotated[
        Whole, Field(ge=0, description="env steps of random actions before the first update")
    ] = 1000

    buffer_size: Annotated[Count, Field(description="transitions kept for replay")] = 1_000_000
    replay_device: Annotated[
        Literal["auto", "host", "accelerator"],
        Field(description="memory that holds the replay; auto: the accelerator's if there is one and it fits"),
    ] = "auto"
    n_step: Annotated[Count, Field(description="rewards summed before bootstrapping")] = 1
    prioritized_replay: Annotated[bool, Field(description="replay by temporal-difference error")] = False
    priority_alpha: Annotated[Fraction, Field(description="0: uniform, 1: in proportion to the error")] = 0.6
    priority_beta: Annotated[Share, Field(description="how far importance weights correct the bias")] = Schedule(
        start=0.4, end=1.0
    )
    priority_eps: Annotated[Positive, Field(description="added to errors, so that none is never replayed")] = 1e-6

    tau: Annotated[
        Positive, Field(le=1, description="share of the online network that a target takes over at a time")
    ] = 0.005
    layer_norm: Annotated[bool, Field(description="normalise hidden layers")] = False
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
                f"{per_update:g} gradient steps an update, not a whole number; the nearest that works is {possible:g}"
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


class DQNConfig(OffPolicyConfig):
    algo_id: Literal["dqn"] = "dqn"
    double: Annotated[bool, Field(description="the online network chooses the action that the target values")] = True
    dueling: Annotated[bool, Field(description="value and advantage streams")] = False
    value_loss: Annotated[
        Literal["huber", "mse"], Field(description="huber: errors beyond 1 weigh as much as 1; mse: all of it")
    ] = "huber"
    epsilon: Annotated[Epsilon, Field(description="share of random actions")] = Schedule(start=1.0, end=0.05, to=0.1)
    target_update_interval: Annotated[
        Count | None, Field(description="env steps between copies into the target network; unset: tau")
    ] = 1000
    max_grad_norm: Annotated[Positive | None, Field(description="clip the gradient norm")] = 10.0


class ActorCriticReplayConfig(OffPolicyConfig):
    """What DDPG, TD3 and SAC share."""

    n_critics: Annotated[Count, Field(le=10, description="critics; targets use the least of them")] = 2


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


class TD3Config(DDPGConfig):
    algo_id: Literal["td3"] = "td3"  # type: ignore[assignment]
    n_critics: Annotated[Count, Field(le=10, description="critics; targets use the least of them")] = 2
    policy_delay: Annotated[Count, Field(description="gradient steps of the critics for one of the policy")] = 2
    target_noise: Annotated[NonNegative, Field(description="noise of the target policy's actions")] = 0.2
    target_noise_clip: Annotated[NonNegative, Field(description="bound of that noise")] = 0.5


class SACConfig(ActorCriticReplayConfig):
    algo_id: Literal["sac"] = "sac"
    ent_coef: Annotated[
        Literal["auto"] | Coefficient, Field(description="temperature; auto: learned, towards target_entropy")
    ] = "auto"
    ent_coef_init: Annotated[Positive, Field(description="initial temperature when it is learned")] = 1.0
    ent_coef_lr: Annotated[LearningRate | None, Field(description="its learning rate; unset: policy_lr")] = None
    target_entropy: Annotated[
        Literal["auto"] | Number, Field(description="auto: minus the action dimensions; discrete: a third of the most")
    ] = "auto"
    use_sde: Annotated[bool, Field(description="noise is a function of the state (gSDE)")] = False
    sde_sample_freq: Annotated[Count, Field(description="gSDE: steps between draws of that function")] = 8
    log_std_init: Annotated[Number, Field(description="initial log standard deviation of the policy")] = 0.0


def silenced_fields(config: Config, read: Mapping[str, Any], changed: Collection[str]) -> list[str]:
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
