"""Registry of algorithms: a name maps to the module whose `make(config, spec)` returns its pure functions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gymnasium_solver.algorithms.interface import Algorithm, Spaces
    from gymnasium_solver.config.schema import Config

ALGORITHMS = {
    "ppo": "gymnasium_solver.algorithms.ppo:make",
    "a2c": "gymnasium_solver.algorithms.a2c:make",
    "reinforce": "gymnasium_solver.algorithms.reinforce:make",
    "dqn": "gymnasium_solver.algorithms.dqn:make",
    "ddpg": "gymnasium_solver.algorithms.ddpg:make",
    "td3": "gymnasium_solver.algorithms.td3:make",
    "sac": "gymnasium_solver.algorithms.sac:make",
    "q_learning": "gymnasium_solver.algorithms.q_learning:make",
    "sarsa": "gymnasium_solver.algorithms.sarsa:make",
}


def make_algorithm(config: Config, spaces: Spaces) -> Algorithm:
    module, factory = ALGORITHMS[config.algo_id].split(":")
    algorithm: Algorithm = getattr(import_module(module), factory)(config, spaces)
    return algorithm
