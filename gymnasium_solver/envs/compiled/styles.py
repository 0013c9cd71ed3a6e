"""How an environment in JAX is recognised: by the methods it has, not by what it inherits from. Imports no JAX."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym

Style = Literal["pure", "gymnax", "brax"]

METHODS: dict[Style, tuple[str, ...]] = {
    "pure": ("initial", "transition", "observation", "reward", "terminal"),
    "gymnax": ("reset_env", "step_env", "default_params"),
    "brax": ("reset", "step", "observation_size", "action_size"),
}


def style_of(environment: Any) -> Style | None:
    """Of an instance or of its class; a gymnasium.Env is one, whatever else it has."""
    if isinstance(environment, gym.Env) or (isinstance(environment, type) and issubclass(environment, gym.Env)):
        return None
    return next((style for style, names in METHODS.items() if all(hasattr(environment, name) for name in names)), None)
