"""Synchronous advantage actor-critic, https://arxiv.org/abs/1602.01783."""

from __future__ import annotations

from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm, Spaces, Worth
from gymnasium_solver.algorithms.policy_gradient import Rollout
from gymnasium_solver.algorithms.single_step import make_single_step
from gymnasium_solver.config.schema import A2CConfig
from gymnasium_solver.ops.returns import gae


def make(config: A2CConfig, spaces: Spaces) -> Algorithm:
    def weigh(rollout: Rollout, value: Array) -> tuple[Worth, Array]:
        advantage = gae(
            rollout.reward, value[:-1], value[1:], rollout.terminated, rollout.done, config.gamma, config.gae_lambda
        )
        return Worth(advantage, value[:-1], advantage + value[:-1]), rollout.weight

    return make_single_step(config, spaces, weigh)
