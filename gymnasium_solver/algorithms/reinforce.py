"""REINFORCE (Williams 1992, https://doi.org/10.1007/BF00992696): Monte-Carlo policy gradient.

An episode cut by a time limit or by the end of the rollout has no Monte-Carlo return. With the learned baseline the
rest of it is estimated by the value; without one, a time limit counts as an end, and the unfinished tail of the rollout
is left out of the gradient. Choose n_steps well above an episode's length.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Spaces
from gymnasium_solver.algorithms.policy_gradient import make_policy_gradient
from gymnasium_solver.config.schema import ReinforceConfig
from gymnasium_solver.ops.normalizer import Rollout
from gymnasium_solver.ops.returns import Estimates, completed, episode_returns, rewards_to_go


def make(config: ReinforceConfig, spaces: Spaces) -> Algorithm:
    has_baseline = config.baseline == "value"

    def estimate(rollout: Rollout, value: Array) -> tuple[Estimates, Array]:
        bootstrap = value[1:] * (1.0 - rollout.terminated) if has_baseline else jnp.zeros_like(rollout.reward)
        to_go = rewards_to_go(rollout.reward, bootstrap, rollout.done, config.gamma)
        gain = episode_returns(to_go, rollout.weight) if config.returns == "episode" else to_go
        if has_baseline:
            return Estimates(gain - value[:-1], value[:-1], to_go), rollout.weight
        return Estimates(gain, value[:-1], to_go), rollout.weight * completed(rollout.done)

    return make_policy_gradient(config, spaces, estimate, learns_value=has_baseline)
