"""Sensible fields for an environment that has no file, from what its spaces look like."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from importlib import import_module
from inspect import isclass, isfunction
from typing import Any

import numpy as np

from gymnasium_solver import trust
from gymnasium_solver.config.cards import Look, card_of


def default_fields(env_id: str, algo_id: str, env_kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Fields beyond the schema's own defaults. TrustError if the environment is code that may not be imported."""
    reference = trust.written(env_id)
    if reference is not None and not trust.may_import(reference):
        raise trust.refusal(reference, "env_id")
    picture, continuous, limit = _look_at(env_id, env_kwargs or {})
    card = card_of(algo_id)
    fields = card.defaults(Look(bool(picture), continuous, limit))
    if picture and env_id.startswith("ALE/") and "network" in card.traits:
        # As most results are reported with: a fourteenth of the numbers, and four frames show what moves where.
        grey = ["grey"] if len(picture) == 3 else []
        fields |= {"env_wrappers": [*grey, {"resize": 84}], "frame_stack": 4}
    return fields


def _make(env_id: str, env_kwargs: Mapping[str, Any]) -> Any:
    import gymnasium

    name = env_id.partition(":")[2]
    made_by = getattr(trust.load_module(env_id, "env_id"), name, None) if name else None
    if isfunction(made_by) or (isclass(made_by) and issubclass(made_by, gymnasium.Env)):  # not just anything: os:abort
        return made_by(**env_kwargs)
    if env_id.startswith(("MiniGrid-", "BabyAI-")):
        import_module("minigrid")
    return gymnasium.make(env_id, **env_kwargs)


def _look_at(env_id: str, env_kwargs: Mapping[str, Any]) -> tuple[tuple[int, ...], bool, int | None]:
    """(shape of its images, continuous actions?, time limit); one that cannot be made is judged later, with its
    error."""
    import gymnasium
    from gymnasium.spaces import Box

    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if env_id.startswith("ALE/"):
            import ale_py

            gymnasium.register_envs(ale_py)
        env = _make(env_id, env_kwargs)
        observation, action = env.observation_space, env.action_space
        limit = env.spec.max_episode_steps if env.spec else None
        env.close()
        image = isinstance(observation, Box) and observation.dtype == np.uint8 and len(observation.shape) in (2, 3)
        image = image and sorted(observation.shape)[-2] >= 20  # height and width, whichever way the channels lie
        return observation.shape if image else (), isinstance(action, Box), limit
    return (), False, None
