"""Fresh starts for networks that can no longer learn, https://arxiv.org/abs/2205.07802; the replay is kept."""

from __future__ import annotations

import jax
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.train.parts import Arrays, State
from gymnasium_solver.train.randomness import generator

_MADE = "resets"
_FIELDS = ("params", "target", "optimizer", "steps")  # of an algorithm's state, where it has them


class Renewal:
    def __init__(self, config: Config, algorithm: Algorithm) -> None:
        self._interval = getattr(config, "reset_interval", None)
        if self._interval is not None and self._interval < config.rollout:
            raise ConfigError(
                f"reset_interval: {self._interval} is less than an epoch, which is {config.rollout} env steps; "
                f"use at least {config.rollout}"
            )
        self._heads_only = getattr(config, "reset_part", "all") == "heads"
        self._init, self._seed = algorithm.init, config.seed
        self._made: int | None = 0  # None: unknown, of a checkpoint that was not made to go on from

    def applied(self, state: State, env_steps: int) -> State:
        """The state to go on with. Asked at the beginning of an epoch: what an epoch learnt is evaluated first, and the
        end of training is no fresh start."""
        if self._interval is None:
            return state
        before, self._made = self._made, env_steps // self._interval
        if before is None or before == self._made:
            return state
        fresh = self._init(generator(self._seed, "reset", self._made))
        renewed = {name: getattr(fresh, name) for name in _FIELDS if hasattr(fresh, name)}
        if self._heads_only:
            for name in ("params", "target"):
                renewed[name] = jax.tree_util.tree_map_with_path(
                    lambda path, new, old: new if "_head" in jax.tree_util.keystr(path) else old,
                    renewed[name],
                    getattr(state, name),
                )
        return state._replace(**renewed)

    def snapshot(self) -> Arrays:
        return {_MADE: np.array(self._made)} if self._interval is not None and self._made is not None else {}

    def restore(self, arrays: Arrays) -> None:
        self._made = int(arrays[_MADE]) if _MADE in arrays else None
