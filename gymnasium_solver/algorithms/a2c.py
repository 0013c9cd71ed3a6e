"""Synchronous advantage actor-critic, https://arxiv.org/abs/1602.01783."""

from __future__ import annotations

from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Spaces
from gymnasium_solver.algorithms.policy_gradient import make_policy_gradient
from gymnasium_solver.config.schema import A2CConfig
from gymnasium_solver.ops.normalizer import Rollout
from gymnasium_solver.ops.returns import Estimates, gae


def make(config: A2CConfig, spaces: Spaces) -> Algorithm:
    def estimate(rollout: Rollout, value: Array) -> tuple[Estimates, Array]:
        advantage = gae(
            rollout.reward, value[:-1], value[1:], rollout.terminated, rollout.done, config.gamma, config.gae_lambda
        )
        return Estimates(advantage, value[:-1], advantage + value[:-1]), rollout.weight

    return make_policy_gradient(config, spaces, estimate)
