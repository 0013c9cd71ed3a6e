"""Algorithms that learn from fresh rollouts of n_envs × n_steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from gymnasium_solver.config.base import Coefficient, Count, NetworkConfig
from gymnasium_solver.config.cards.card import ActionKind, Look, Range, Search
from gymnasium_solver.config.fixed import FIXED
from gymnasium_solver.config.schedules import Number
from gymnasium_solver.config.usual import LEARNING, NETWORKS


class OnPolicyConfig(NetworkConfig):
    """Fields of algorithms that learn from fresh rollouts of n_envs × n_steps."""

    ent_coef: Annotated[Coefficient, Field(description="entropy bonus")] = 0.0
    normalize_advantages: Annotated[bool, Field(description="zero mean, unit variance in each minibatch")] = True
    shared_network: Annotated[bool, FIXED, Field(description="policy and value share a trunk")] = False
    log_std_init: Annotated[Number, FIXED, Field(description="initial log standard deviation of Gaussian policies")] = (
        0.0
    )
    ortho_init: Annotated[bool, FIXED, Field(description="orthogonal initial weights")] = True
    use_sde: Annotated[bool, FIXED, Field(description="Box actions: noise is a function of the state (gSDE)")] = False
    sde_sample_freq: Annotated[Count, Field(description="gSDE: steps between draws of that function")] = 8


def nearest_divisor(rollout: int, wanted: float, smallest: int = 2) -> int:
    """The size of minibatches that divide a rollout, nearest to the one wanted."""
    divisors = (size for size in range(smallest, rollout + 1) if rollout % size == 0)
    return min(divisors, key=lambda size: abs(size - wanted), default=rollout)


ACTIONS: tuple[ActionKind, ...] = ("discrete", "multi_discrete", "box")
USUAL: Mapping[str, Range] = {
    **NETWORKS,
    "ent_coef": (None, 0.1),
    "gae_lambda": (0.8, None),
    "vf_coef": (0.05, 2.0),
    "log_std_init": (-3.0, 1.5),
    "rollout": (128, 131_072),
}
SEARCH: Mapping[str, Search] = {**LEARNING, "ent_coef": (0.0, 0.02)}
LAMBDAS: Search = [0.8, 0.9, 0.95, 0.98, 1.0]


def suited(fields: dict[str, Any], look: Look) -> dict[str, Any]:
    """Defaults with what images and continuous actions ask of a plain policy gradient."""
    fields = dict(fields)
    if look.continuous:
        fields |= {"normalize_obs": True, "normalize_reward": True, "ent_coef": 0.0}
    if look.image:
        fields |= {"shared_network": True, "hidden_dims": [512], "activation": "relu"}
    return fields
