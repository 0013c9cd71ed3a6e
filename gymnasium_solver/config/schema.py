"""What a run is: one frozen, typed object. An unknown field, a wrong type or a value out of range is an error."""

from __future__ import annotations

from gymnasium_solver.config.base import Config, NetworkConfig, NetworkFields, RunConfig
from gymnasium_solver.config.cards.a2c import A2CConfig
from gymnasium_solver.config.cards.ddpg import DDPGConfig
from gymnasium_solver.config.cards.dqn import DQNConfig
from gymnasium_solver.config.cards.ppo import PPOConfig
from gymnasium_solver.config.cards.q_learning import QLearningConfig
from gymnasium_solver.config.cards.reinforce import ReinforceConfig
from gymnasium_solver.config.cards.sac import SACConfig
from gymnasium_solver.config.cards.sarsa import SarsaConfig
from gymnasium_solver.config.cards.td3 import TD3Config
from gymnasium_solver.config.off_policy import ActorCriticReplayConfig, OffPolicyConfig
from gymnasium_solver.config.on_policy import OnPolicyConfig
from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.config.tabular import TabularConfig

__all__ = [
    "A2CConfig",
    "ActorCriticReplayConfig",
    "Config",
    "DDPGConfig",
    "DQNConfig",
    "NetworkConfig",
    "NetworkFields",
    "OffPolicyConfig",
    "OnPolicyConfig",
    "PPOConfig",
    "QLearningConfig",
    "ReinforceConfig",
    "RunConfig",
    "SACConfig",
    "SarsaConfig",
    "Schedule",
    "TD3Config",
    "TabularConfig",
]
