"""Deep deterministic policy gradient, https://arxiv.org/abs/1509.02971: TD3 without its three additions."""

from __future__ import annotations

from gymnasium_solver.algorithms.interface import Algorithm, Spaces
from gymnasium_solver.algorithms.td3 import make_deterministic
from gymnasium_solver.config.schema import DDPGConfig


def make(config: DDPGConfig, spaces: Spaces) -> Algorithm:
    return make_deterministic(config, spaces, policy_delay=1, target_noise=0.0, target_noise_clip=0.0)
