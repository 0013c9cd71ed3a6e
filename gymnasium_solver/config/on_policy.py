"""Algorithms that learn from fresh rollouts of n_envs × n_steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from gymnasium_solver.config.base import (
    ClipRange,
    Coefficient,
    Count,
    Fraction,
    LearningRate,
    NetworkConfig,
    Optimizer,
    Positive,
    whole,
)
from gymnasium_solver.config.schedules import Number


class OnPolicyConfig(NetworkConfig):
    """Fields of algorithms that learn from fresh rollouts of n_envs × n_steps."""

    ent_coef: Annotated[Coefficient, Field(description="entropy bonus")] = 0.0
    normalize_advantages: Annotated[bool, Field(description="zero mean, unit variance in each minibatch")] = True
    shared_network: Annotated[bool, Field(description="policy and value share a trunk")] = False
    log_std_init: Annotated[Number, Field(description="initial log standard deviation of Gaussian policies")] = 0.0
    ortho_init: Annotated[bool, Field(description="orthogonal initial weights")] = True
    use_sde: Annotated[bool, Field(description="Box actions: noise is a function of the state (gSDE)")] = False
    sde_sample_freq: Annotated[Count, Field(description="gSDE: steps between draws of that function")] = 8


def nearest_divisor(rollout: int, wanted: float, smallest: int = 2) -> int:
    """The size of minibatches that divide a rollout, nearest to the one wanted."""
    divisors = (size for size in range(smallest, rollout + 1) if rollout % size == 0)
    return min(divisors, key=lambda size: abs(size - wanted), default=rollout)


class PPOConfig(OnPolicyConfig):
    algo_id: Literal["ppo"] = "ppo"
    batch_size: Annotated[
        int | float, BeforeValidator(whole), Field(gt=0, description="minibatch; in (0, 1]: share of the rollout")
    ] = 64
    n_epochs: Annotated[Count, Field(description="passes over each rollout")] = 10
    gae_lambda: Annotated[Fraction, Field(description="GAE: 0 one-step, 1 Monte-Carlo")] = 0.95
    clip_range: Annotated[ClipRange, Field(description="policy ratio clip")] = 0.2
    clip_range_vf: Annotated[ClipRange | None, Field(description="value clip; unset: none")] = None
    vf_coef: Annotated[Coefficient, Field(description="weight of the value loss")] = 0.5
    target_kl: Annotated[Positive | None, Field(description="stop an update's epochs at 1.5 times this KL")] = None

    @model_validator(mode="after")
    def _batch_divides_rollout(self) -> PPOConfig:
        size, rollout = self.batch_size, self.rollout
        if size > 1 and not float(size).is_integer():
            raise ValueError(f"batch_size: {size} is neither a whole number nor a fraction in (0, 1]")
        exact = size * rollout if size <= 1 else size
        rows = round(exact)
        if rows < 1 or abs(rows - exact) > 1e-6 * rollout or rollout % rows:
            smallest = 2 if self.normalize_advantages else 1
            nearest = nearest_divisor(rollout, exact, smallest)
            suggestion = f"{nearest / rollout:g}" if size <= 1 else str(nearest)
            raise ValueError(
                f"batch_size: {size} does not divide the rollout (n_envs {self.n_envs} × n_steps {self.n_steps} "
                f"= {rollout}); the nearest that does is {suggestion}"
            )
        if rows == 1 and self.normalize_advantages:
            raise ValueError("batch_size: 1 cannot be normalised (NaN); use at least 2, or normalize_advantages: false")
        return self

    @property
    def minibatch(self) -> int:
        return round(self.batch_size * self.rollout) if self.batch_size <= 1 else int(self.batch_size)


class A2CConfig(OnPolicyConfig):
    algo_id: Literal["a2c"] = "a2c"
    n_steps: Count = 5
    policy_lr: LearningRate = 7e-4
    optimizer: Optimizer = "rmsprop"
    normalize_advantages: bool = False
    gae_lambda: Annotated[Fraction, Field(description="GAE: 0 one-step, 1 Monte-Carlo")] = 1.0
    vf_coef: Annotated[Coefficient, Field(description="weight of the value loss")] = 0.5


class ReinforceConfig(OnPolicyConfig):
    algo_id: Literal["reinforce"] = "reinforce"
    returns: Annotated[
        Literal["reward_to_go", "episode"], Field(description="what weighs an action: return from it on, or of all")
    ] = "reward_to_go"
    baseline: Annotated[Literal["none", "value"], Field(description="subtract nothing, or a learned value")] = "value"
    vf_coef: Annotated[Coefficient, Field(description="weight of the baseline's loss")] = 0.5
