"""An environment with a fault under its own id: the config of the run says nothing of the wrapper around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

Wrap = Callable[[gym.Env], gym.Env]


@contextmanager
def wrapped(env_id: str, wrap: Wrap) -> Iterator[None]:
    """Within the block, `env_id` is registered with the wrapper inside, below Gymnasium's own time limit."""
    original = gym.spec(env_id)
    entry_point = original.entry_point
    assert entry_point is not None
    create: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point

    def make(**arguments: Any) -> gym.Env:
        return wrap(create(**arguments))

    # Without the vector class: it takes no wrappers.
    gym.registry[env_id] = dataclasses.replace(original, entry_point=make, vector_entry_point=None)
    try:
        yield
    finally:
        gym.registry[env_id] = original
