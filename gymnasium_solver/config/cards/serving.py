"""Whether an algorithm can serve the spaces of an environment; if not, which field to change, and to what."""

from __future__ import annotations

from typing import Any

import numpy as np

from gymnasium_solver.config.base import RunConfig
from gymnasium_solver.config.cards.card import ACTION_KINDS, Card, Spaces
from gymnasium_solver.errors import ConfigError

# Some spaces write "no bound" as the largest float; scaling [-1, 1] to that would be no action at all.
UNBOUNDED = 1e30


def require_served(card: Card, config: RunConfig, spaces: Spaces) -> None:
    """Raises ConfigError, one sentence, for what the algorithm of the card cannot do in these spaces."""
    if card.requires is not None:
        card.requires(config, spaces)
    kind = spaces.action.kind
    if kind not in card.actions:
        words = {str(name): text for name, text in ACTION_KINDS.items()}.get(kind, kind)
        raise ConfigError(
            f"algo_id: {config.algo_id} cannot serve the {words} actions of {config.env_id}; use {card.instead[kind]}"
        )
    if card.needs_discrete_observations and not spaces.obs_sizes:
        raise ConfigError(
            f"algo_id: {config.algo_id} keeps a table of discrete observations, and those of {config.env_id} are not; "
            "use dqn, or a wrapper in env_wrappers that makes them discrete"
        )
    if card.is_squashed and kind == "box":
        _require_bounds(config, spaces)
    _require_switches(config, spaces)


def _require_bounds(config: RunConfig, spaces: Spaces) -> None:
    if not config.rescale_actions:
        raise ConfigError(
            f"rescale_actions: false leaves {config.algo_id}, whose actions are in [-1, 1], unscaled; set it to true"
        )
    if any((np.abs(bound) >= UNBOUNDED).any() for bound in (spaces.action.low, spaces.action.high)):
        raise ConfigError(
            f"algo_id: {config.algo_id} acts within bounds, and the actions of {config.env_id} have none; use ppo, or "
            "bound them with a wrapper such as gymnasium.wrappers:RescaleAction"
        )


def _require_switches(config: Any, spaces: Spaces) -> None:
    """Fields of several algorithms that ask for certain spaces."""
    if getattr(config, "use_sde", False) and spaces.action.kind != "box":
        raise ConfigError(
            f"use_sde: true needs continuous actions, and those of {config.env_id} are not; set it to false"
        )
    if getattr(config, "network", None) == "cnn" and len(spaces.obs_shape) != 3:
        raise ConfigError(
            f"network: cnn needs images, and the observations of {config.env_id} are {list(spaces.obs_shape)}; use auto"
        )
