"""Environments and wrappers that users name as `module:Name`: imported through the gate, recognised without a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from gymnasium_solver import trust
from gymnasium_solver.envs.compiled.styles import METHODS, style_of


def environment(env_id: str) -> Callable[..., Any]:
    """The class, or the factory."""
    wanted = f"a gymnasium.Env or a pure environment (with the methods {', '.join(METHODS['pure'])})"
    return _callable(trust.load(env_id, "env_id", is_environment, wanted))


def wrapper(name: str) -> Callable[..., gym.Env]:
    return _callable(trust.load(name, "env_wrappers", _is_wrapper, "a gymnasium.Wrapper"))


def is_environment(found: Any) -> bool:
    return isinstance(found, type) and (issubclass(found, gym.Env) or style_of(found) is not None)


def _is_wrapper(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, gym.Wrapper)


def _callable(found: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = found
    return made
