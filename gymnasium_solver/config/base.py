"""The fields that configs share, and the kinds of values that fields take."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gymnasium_solver.config.fixed import FIXED
from gymnasium_solver.config.schedules import Clock, Number, Schedule, number, within


def whole(value: Any) -> Any:
    """`1e6` and `1_000_000` are how people write step counts."""
    value = number(value.replace("_", "") if isinstance(value, str) else value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
Count = Annotated[Whole, Field(ge=1)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
Positive = Annotated[Number, Field(gt=0)]
NonNegative = Annotated[Number, Field(ge=0)]
LearningRate = Annotated[Schedule | Number, within(0.0)]
Coefficient = Annotated[Schedule | Number, within(0.0)]
ClipRange = Annotated[Schedule | Number, within(0.0, low_open=True)]

Optimizer = Annotated[
    Literal["adam", "adamw", "sgd", "rmsprop", "lamb", "lion", "muon"],
    Field(description="how gradients become changes of the parameters"),
]
Activation = Annotated[
    Literal["tanh", "relu", "elu", "gelu", "silu"], Field(description="what hidden units do to their sum")
]


class RunConfig(BaseModel):
    """What every run has, whichever clock it runs on: one that trains in environments counts their steps and has
    `max_env_steps` (`Config`), one that trains without has `max_updates`, gradient steps, instead."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        defer_build=True,  # of nine algorithms' validators, most commands use one or none
    )

    # What is trained
    env_id: Annotated[str, FIXED, Field(min_length=1, description="Gymnasium id, or module:Class")]
    algo_id: Annotated[str, FIXED, Field(description="algorithm")]
    seed: Annotated[Whole, FIXED, Field(ge=0, le=2**31 - 1, description="all randomness of a run follows from it")] = 42
    reward_threshold: Annotated[Number | None, Field(description="mean return that counts as solved")] = None
    stop_when_solved: Annotated[bool, Field(description="end once an evaluation reaches the threshold")] = True

    # The environment as the policy sees it
    engine: Annotated[
        Literal["auto", "gymnasium", "envpool", "compiled"], FIXED, Field(description="who steps the environments")
    ] = "auto"
    vectorization: Annotated[
        Literal["auto", "native", "sync", "async"],
        FIXED,
        Field(description="Gymnasium engine: the environment's own vector class, in process, or worker processes"),
    ] = "auto"
    env_kwargs: Annotated[dict[str, Any], FIXED, Field(description="arguments of gymnasium.make")] = {}
    env_wrappers: Annotated[
        list[str | dict[str, Any]],
        FIXED,
        Field(description="wrappers, inside out: name, {name: arguments}, or module:Class"),
    ] = []
    max_episode_steps: Annotated[
        Count | None, FIXED, Field(description="time limit in place of the registered one")
    ] = None
    frame_skip: Annotated[Count, FIXED, Field(description="repeat each action this often, rewards summed")] = 1
    frame_stack: Annotated[Count, FIXED, Field(description="observations stacked into one")] = 1
    rescale_actions: Annotated[bool, FIXED, Field(description="policy acts in [-1, 1], scaled to the Box bounds")] = (
        True
    )
    normalize_obs: Annotated[
        bool, FIXED, Field(description="running mean and variance, frozen in evaluation; not for images")
    ] = False
    clip_obs: Annotated[Positive, Field(description="bound of normalised observations")] = 10.0
    normalize_reward: Annotated[bool, FIXED, Field(description="divide rewards by the running std of returns")] = False
    clip_reward: Annotated[Positive, Field(description="bound of normalised rewards")] = 10.0

    # Learning
    policy_lr: Annotated[LearningRate, Field(description="learning rate")] = 3e-4
    gamma: Annotated[Fraction, Field(description="discount")] = 0.99

    # Evaluation and checkpoints
    eval_freq_epochs: Annotated[Count | None, Field(description="updates between evaluations; unset: 20 per run")] = (
        None
    )
    checkpoint_freq_epochs: Annotated[
        Count | None, Field(description="updates between checkpoints, where environments restart; unset: 10 per run")
    ] = None
    eval_episodes: Annotated[Count, Field(description="episodes of an evaluation")] = 20
    eval_deterministic: Annotated[bool, Field(description="evaluate the mode of the policy, not samples")] = True

    @property
    def clock(self) -> Clock:
        """What ends the run, drives its schedules and is the x axis of its curves."""
        return "updates" if "max_updates" in type(self).model_fields else "env_steps"

    @property
    def budget(self) -> int:
        """How long the run trains, on its clock."""
        total: int = getattr(self, f"max_{self.clock}")
        return total

    @model_validator(mode="after")
    def _schedules_fit_the_clock(self) -> Self:
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Schedule):
                try:
                    value.require_fit(self.clock, self.budget)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        return self


class Config(RunConfig):
    """Fields of algorithms that train in environments."""

    max_env_steps: Annotated[Count, Field(description="environment steps to train for")] = 1_000_000
    n_envs: Annotated[Count, FIXED, Field(description="environments stepped side by side")] = 8
    n_steps: Annotated[Count, FIXED, Field(description="steps of each environment in an epoch")] = 128

    # Exploration bonus, added to the reward in training only
    bonus: Annotated[
        Literal["none", "count", "rnd", "icm"],
        FIXED,
        Field(description="reward for the unfamiliar: visit counts, random network distillation, curiosity"),
    ] = "none"
    bonus_coef: Annotated[Coefficient, Field(description="weight of the bonus beside the reward")] = 0.1
    bonus_lr: Annotated[LearningRate, Field(description="learning rate of the bonus's own networks")] = 1e-3
    bonus_bits: Annotated[Count, FIXED, Field(le=24, description="count: observations fall into 2^bits kinds")] = 14

    @property
    def rollout(self) -> int:
        return self.n_envs * self.n_steps

    @model_validator(mode="after")
    def _long_enough(self) -> Config:
        if self.max_env_steps < self.rollout:
            raise ValueError(
                f"max_env_steps: {self.max_env_steps} is less than one rollout (n_envs {self.n_envs} × n_steps "
                f"{self.n_steps} = {self.rollout}); use at least {self.rollout}"
            )
        return self


class NetworkFields(RunConfig):
    """Fields of algorithms that train networks, whichever clock they run on."""

    network: Annotated[Literal["auto", "mlp", "cnn"], FIXED, Field(description="auto: CNN for images")] = "auto"
    hidden_dims: Annotated[tuple[Count, ...], FIXED, Field(min_length=1, description="hidden layers")] = (64, 64)
    activation: Annotated[Activation, FIXED] = "tanh"
    optimizer: Annotated[Optimizer, FIXED] = "adam"
    optimizer_eps: Annotated[Positive, Field(description="epsilon of Adam-like optimisers")] = 1e-5
    weight_decay: Annotated[NonNegative, Field(description="decoupled; adamw, lamb, lion, muon")] = 0.0
    value_lr: Annotated[LearningRate | None, Field(description="learning rate of the critic; unset: policy_lr")] = None
    max_grad_norm: Annotated[Positive | None, Field(description="clip the global gradient norm")] = 0.5
    precision: Annotated[
        Literal["float32", "bfloat16"], Field(description="arithmetic of the networks; parameters stay float32")
    ] = "float32"

    @model_validator(mode="before")
    @classmethod
    def _lists_to_tuples(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("hidden_dims"), int):
            data = {**data, "hidden_dims": (data["hidden_dims"],)}
        return data

    @model_validator(mode="after")
    def _decay_is_heard(self) -> NetworkFields:
        if self.weight_decay and self.optimizer in ("adam", "sgd", "rmsprop"):
            raise ValueError(f"weight_decay: {self.optimizer} ignores it; use optimizer: adamw, lamb, lion or muon")
        return self


class NetworkConfig(NetworkFields, Config):
    """Fields of algorithms that train networks in environments."""
