"""The exploration bonus's place between environment and learner: rewards in, rewards with a bonus out."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from gymnasium_solver.algorithms.bonuses import make_bonus
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.parts import Arrays, Chunk, Columns, Numbers, as_inputs
from gymnasium_solver.train.randomness import generator

_PREFIX = "bonus/"
_ROLLOUT = ("obs", "action", "terminated", "truncated", "valid")


class BonusGiver:
    """Holds the bonus's own networks or counts; without a bonus, hands everything through."""

    def __init__(self, config: Config, spec: EnvSpec) -> None:
        self._bonus = make_bonus(config, spec) if getattr(config, "bonus", "none") != "none" else None
        self.scheduled = ("bonus_coef", "bonus_lr") if self._bonus is not None else ()
        self._n_envs = getattr(config, "n_envs", 0)
        self._ended: list[float] = []  # bonus of the last episodes
        self._reward: np.ndarray | None = None  # with the bonus, [T, N]
        self.forget_episodes()
        if self._bonus is not None:
            self._state: Any = self._bonus.init(generator(config.seed, "bonus", 0))
            self._update = jax.jit(self._bonus.update, donate_argnums=0)

    def forget_episodes(self) -> None:
        self._running = np.zeros(self._n_envs)  # bonus so far of the episodes in flight

    def add_to(self, chunk: Chunk, hp: Numbers) -> tuple[Chunk, Numbers]:
        """The chunk with the bonus in its rewards; the environment's own stay in the source's columns."""
        if self._bonus is None:
            return chunk, {}
        start, stop = chunk.start, chunk.stop
        rows = {name: chunk.columns[name][start : stop + (name == "obs")] for name in _ROLLOUT}
        self._state, bonus, metrics = self._update(self._state, rows, as_inputs(hp))
        bonus = np.asarray(bonus)
        if self._reward is None:
            self._reward = chunk.columns["reward"].copy()
        self._reward[start:stop] = chunk.columns["reward"][start:stop] + np.float32(hp["bonus_coef"]) * bonus
        columns = chunk.columns | {"reward": self._reward}
        return chunk._replace(columns=columns), metrics.to_dict() | self._returns(bonus, rows)

    def _returns(self, bonus: np.ndarray, rows: Columns) -> Numbers:
        """Bonus summed over the episodes that ended last, beside the extrinsic returns of the source."""
        done = rows["terminated"] | rows["truncated"]
        for t in range(len(bonus)):
            self._running += bonus[t]
            for n in np.flatnonzero(done[t]):
                self._ended.append(float(self._running[n]))
                self._running[n] = 0.0
        self._ended = self._ended[-100:]
        return {"train/roll/ep_bonus_mean": float(np.mean(self._ended))} if self._ended else {}

    def snapshot(self) -> Arrays:
        if self._bonus is None:
            return {}
        episodes = {"running": self._running, "ended": np.array(self._ended)}
        return {f"{_PREFIX}{name}": array for name, array in (to_arrays(self._state) | episodes).items()}

    def restore(self, arrays: Arrays) -> None:
        own = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        if self._bonus is None or not own:
            return
        self._running, self._ended = own.pop("running").copy(), own.pop("ended").tolist()
        self._state = from_arrays(self._state, own, "the checkpoint's bonus")
