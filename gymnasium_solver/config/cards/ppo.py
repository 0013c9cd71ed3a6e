"""Proximal policy optimisation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from gymnasium_solver.config.base import ClipRange, Coefficient, Count, Fraction, Positive, whole
from gymnasium_solver.config.cards.card import Card, Look
from gymnasium_solver.config.on_policy import ACTIONS, LAMBDAS, SEARCH, USUAL, OnPolicyConfig, nearest_divisor
from gymnasium_solver.config.usual import BATCHES


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


VECTOR: dict[str, Any] = {
    "n_envs": 16,
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 10,
    "ent_coef": 0.01,
    "policy_lr": {"start": 1e-3, "end": 1e-4, "schedule": "linear"},
}
CONTINUOUS: dict[str, Any] = {
    **VECTOR,
    "ent_coef": 0.0,
    "policy_lr": {"start": 5e-4, "end": 5e-5, "schedule": "linear"},
    "normalize_obs": True,
    "normalize_reward": True,
}
# The settings most Atari results are reported with.
IMAGE: dict[str, Any] = {
    "n_envs": 8,
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "ent_coef": 0.01,
    "clip_range": 0.1,
    "policy_lr": 2.5e-4,
    "shared_network": True,
    "hidden_dims": [512],
    "activation": "relu",
}


def defaults(look: Look) -> dict[str, Any]:
    return dict(IMAGE if look.image else CONTINUOUS if look.continuous else VECTOR)


CARD = Card(
    algo_id="ppo",
    title="proximal policy optimisation: several epochs over each rollout, within a clipped ratio",
    family="on_policy",
    config=PPOConfig,
    make="gymnasium_solver.algorithms.ppo:make",
    feed="rollout",
    actions=ACTIONS,
    instead={},
    defaults=defaults,
    usual={
        **USUAL,
        "policy_lr": (5e-5, 5e-3),
        "clip_range": (0.05, 0.5),
        "n_epochs": (2, 30),
        "minibatch": (16, 16_384),
        "target_kl": (0.002, None),
        "updates": (10, None),
    },
    search={
        **SEARCH,
        "gae_lambda": LAMBDAS,
        "clip_range": [0.1, 0.2, 0.3],
        "n_epochs": [4, 10, 20],
        "batch_size": [32, 64, *BATCHES],
    },
    probe={
        "n_steps": 16,
        "batch_size": 0.5,
        "n_epochs": 4,
        "policy_lr": 1e-2,
        "ent_coef": 0.0,
        "max_env_steps": 12_000,
    },
    tried={"box": 1, "table": 2, "multi_discrete": 1, "discrete": 1},
    quick=("CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0", "Pendulum-v1"),
    signature=(("train/metrics/clip_fraction",),),
    order=1,
)
