"""What a run is: one frozen, typed object. An unknown field, a wrong type or a value out of range is an error."""

from __future__ import annotations

from gymnasium_solver.config.base import Config, NetworkConfig
from gymnasium_solver.config.off_policy import DDPGConfig, DQNConfig, OffPolicyConfig, SACConfig, TD3Config
from gymnasium_solver.config.on_policy import A2CConfig, OnPolicyConfig, PPOConfig, ReinforceConfig
from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.config.tabular import QLearningConfig, SarsaConfig, TabularConfig

CONFIGS: dict[str, type[Config]] = {
    "ppo": PPOConfig,
    "a2c": A2CConfig,
    "reinforce": ReinforceConfig,
    "dqn": DQNConfig,
    "ddpg": DDPGConfig,
    "td3": TD3Config,
    "sac": SACConfig,
    "q_learning": QLearningConfig,
    "sarsa": SarsaConfig,
}


__all__ = [
    "CONFIGS",
    "A2CConfig",
    "Config",
    "DDPGConfig",
    "DQNConfig",
    "NetworkConfig",
    "OffPolicyConfig",
    "OnPolicyConfig",
    "PPOConfig",
    "QLearningConfig",
    "ReinforceConfig",
    "SACConfig",
    "SarsaConfig",
    "Schedule",
    "TD3Config",
    "TabularConfig",
]
