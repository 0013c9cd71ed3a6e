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
}


def make_algorithm(config: Config, spaces: Spaces) -> Algorithm:
    module, factory = ALGORITHMS[config.algo_id].split(":")
    algorithm: Algorithm = getattr(import_module(module), factory)(config, spaces)
    return algorithm
