"""From a config to the pure functions of its algorithm: its card names the function that makes them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gymnasium_solver.config.cards import card_of, require_served

if TYPE_CHECKING:
    from gymnasium_solver.algorithms.interface import Algorithm, Spaces
    from gymnasium_solver.config.schema import Config


def make_algorithm(config: Config, spaces: Spaces) -> Algorithm:
    """Raises ConfigError where the algorithm cannot serve the spaces."""
    card = card_of(config.algo_id)
    require_served(card, config, spaces)
    module, _, factory = card.make.partition(":")
    algorithm: Algorithm = getattr(import_module(module), factory)(config, spaces)
    return algorithm
