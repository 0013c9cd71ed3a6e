"""Twin delayed DDPG, https://arxiv.org/abs/1802.09477: the least of two critics, smoothed target actions, and a policy
that moves less often than they do."""

from __future__ import annotations

from gymnasium_solver.algorithms.deterministic import make_deterministic
from gymnasium_solver.algorithms.interface import Algorithm, Spaces
from gymnasium_solver.config.schema import TD3Config


def make(config: TD3Config, spaces: Spaces) -> Algorithm:
    return make_deterministic(
        config,
        spaces,
        policy_delay=config.policy_delay,
        target_noise=config.target_noise,
        target_noise_clip=config.target_noise_clip,
    )
