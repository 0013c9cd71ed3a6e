"""How far a run is: the counters and windows that a checkpoint keeps and a resumed run continues from."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gymnasium_solver.train.parts import Clock, Episode

WINDOW = 100  # training episodes in the rolling statistics


@dataclass
class Progress:
    epoch: int = 0
    env_steps: int = 0
    episodes: int = 0
    updates: int = 0  # gradient steps
    restart_epoch: int = 0  # the epoch after which environments last began anew
    last_eval_epoch: int = 0
    best_eval: float | None = None
    best_episode: float | None = None
    solved: bool = False
    unwritten: dict[str, float] | None = None  # the row of an epoch that was updated and not yet evaluated
    returns: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    lengths: deque[int] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def advance(self, env_steps: int, updates: int, ended: list[Episode], epochs: int = 1) -> None:
        """One row of metrics on: its steps, and the episodes that ended in it."""
        self.epoch += epochs
        self.env_steps += env_steps
        self.updates += updates
        self.episodes += len(ended)
        for episode_return, length in ended:
            self.returns.append(episode_return)
            self.lengths.append(length)
            self.best_episode = max(
                episode_return, self.best_episode if self.best_episode is not None else episode_return
            )

    @property
    def clock(self) -> Clock:
        return Clock(self.env_steps, self.updates)

    def recent_mean(self, count: int) -> float | None:
        recent = list(self.returns)[-count:]
        return float(np.mean(recent)) if len(recent) == count else None

    def metrics(self) -> dict[str, float]:
        values: dict[str, float] = {
            "train/cnt/env_steps": self.env_steps,
            "train/cnt/epochs": self.epoch,
            "train/cnt/episodes": self.episodes,
            "train/cnt/updates": self.updates,
        }
        if self.returns:
            values |= {
                "train/roll/ep_rew_mean": float(np.mean(self.returns)),
                "train/roll/ep_rew_last": self.returns[-1],
                "train/roll/ep_rew_best": self.best_episode if self.best_episode is not None else self.returns[-1],
                "train/roll/ep_len_mean": float(np.mean(self.lengths)),
            }
        return values

    def to_meta(self) -> dict[str, Any]:
        return {**vars(self), "returns": list(self.returns), "lengths": list(self.lengths)}

    @classmethod
    def from_meta(cls, meta: dict[str, Any]) -> Progress:
        known = {name: meta[name] for name in cls.__dataclass_fields__ if name in meta}
        windows: dict[str, Any] = {
            name: deque(known[name], maxlen=WINDOW) for name in ("returns", "lengths") if name in known
        }
        return cls(**(known | windows))
