"""Replay: a ring of the last steps of every environment, in the order they were taken.

The row after the newest holds the observation that the environments stand at, waiting for its action.
"""

from __future__ import annotations

import numpy as np

from gymnasium_solver.data.layout import Layout, require_fit, stored_observations, window, window_size
from gymnasium_solver.data.priorities import Priorities
from gymnasium_solver.data.storage import AcceleratorStorage, HostStorage


class Replay:
    """What is stored where, what may be sampled, and with prioritised replay how often."""

    def __init__(
        self, layout: Layout, storage: HostStorage | AcceleratorStorage, priorities: Priorities | None = None
    ) -> None:
        self.layout, self.storage, self.priorities = layout, storage, priorities
        self.count = 0  # rows ever written
        self.reward_bound = 0.0  # largest absolute reward seen
        self._valid = np.zeros((layout.rows, layout.n_envs), bool)  # rows that are steps: neither resets nor waiting
        self._age = np.zeros(layout.n_envs, np.int64)  # of the waiting observation, in steps of its episode

    def add(self, batch: dict[str, np.ndarray], start: int, stop: int, mask: np.ndarray | None) -> None:
        """Rows start … stop-1 of the source's columns, and the observation and action mask that follow them."""
        n = stop - start
        slots = np.arange(self.count, self.count + n + 1) % self.layout.rows
        block = {"obs": stored_observations(batch["obs"][start : stop + 1], self.layout)}
        for name in ("action", "reward", "terminated", "truncated"):
            rows = batch[name][start:stop]
            block[name] = np.concatenate([rows, np.zeros_like(rows[:1])]).astype(self.layout.columns[name][1])
        if mask is not None:
            block["action_mask"] = np.concatenate([batch["action_mask"][start:stop], mask[None]])
        valid = batch["valid"][start:stop]
        if self.layout.frames > 1:
            block["age"] = self._ages(valid)
        self.storage.write(slots, block)
        self._mark(slots[:-1], valid)
        self._mark(slots[-1:], np.zeros((1, self.layout.n_envs), bool))
        self.count += n
        self.reward_bound = max(self.reward_bound, float(np.abs(block["reward"]).max()))

    def _ages(self, valid: np.ndarray) -> np.ndarray:
        """Steps since the episode began, of each row and the one that waits; a reset row is the last of its episode."""
        ages = np.empty((len(valid) + 1, self.layout.n_envs), np.int64)
        ages[0] = self._age
        for t, is_step in enumerate(valid):
            ages[t + 1] = np.where(is_step, ages[t] + 1, 0)
        self._age = ages[-1]
        return np.minimum(ages, 255).astype(np.uint8)

    def cut(self) -> None:
        """Environments are about to begin anew: their last steps become truncations, with the observation that waits
        as successor."""
        if not self.count:
            return
        newest, waiting = (self.count - 1) % self.layout.rows, self.count % self.layout.rows
        ended = self.storage.row("terminated", newest)
        self.storage.write(np.array([newest]), {"truncated": (self._valid[newest] & ~ended)[None]})
        self._mark(np.array([waiting]), np.zeros((1, self.layout.n_envs), bool))
        self._age = np.zeros_like(self._age)
        self.count += 1

    def _mark(self, slots: np.ndarray, valid: np.ndarray) -> None:
        self._valid[slots] = valid
        if self.priorities is not None:
            index = slots[:, None] * self.layout.n_envs + np.arange(self.layout.n_envs)
            self.priorities.set(index.ravel(), np.where(valid.ravel(), self.priorities.newest, 0.0))

    @property
    def window(self) -> tuple[int, int]:
        """Times [first, last) of transitions that are wholly here."""
        first, last = window(self.count, self.layout)
        return int(first), int(last)

    @property
    def size(self) -> int:
        """Transitions that may be sampled, reset rows among them."""
        return window_size(self.count, self.layout)

    @property
    def can_sample(self) -> bool:
        """Whether any row of the window is a step; a long one cannot be all resets."""
        first, last = self.window
        return last - first > 100 or bool(self._valid[np.arange(first, last) % self.layout.rows].any())

    def sample(
        self, rng: np.random.Generator, shape: tuple[int, int], beta: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slots and environments [G, B] of transitions to learn from, and their importance weights."""
        n_envs, count = self.layout.n_envs, shape[0] * shape[1]
        if self.priorities is None:
            index, weight = self._uniform(rng, count), np.ones(shape, np.float32)
        else:
            index, chance = self.priorities.sample(rng, count)
            first, last = self.window
            # Steps too new for their n-step return, or too old for their frames, have a priority all the same.
            outside = (index // n_envs - first) % self.layout.rows >= last - first
            if outside.any():
                index[outside] = self._uniform(rng, int(outside.sum()))
                chance = self.priorities.chance(index)
            weight = ((np.maximum(chance, 1e-12) * self.size) ** -beta).reshape(shape)
            weight = (weight / weight.max(axis=1, keepdims=True)).astype(np.float32)
        index = index.astype(np.int32).reshape(shape)
        return index // n_envs, index % n_envs, weight

    def _uniform(self, rng: np.random.Generator, count: int) -> np.ndarray:
        low, high = (time * self.layout.n_envs for time in self.window)
        valid = self._valid.reshape(-1)
        index = rng.integers(low, high, count) % len(valid)
        while len(resets := np.flatnonzero(~valid[index])):
            index[resets] = rng.integers(low, high, len(resets)) % len(valid)
        return index

    def prioritize(self, slots: np.ndarray, envs: np.ndarray, errors: np.ndarray) -> None:
        """The absolute errors [G, B] of these transitions in the last update."""
        assert self.priorities is not None
        self.priorities.update((slots * self.layout.n_envs + envs).ravel(), errors.ravel())

    def age(self, slots: np.ndarray) -> float:
        """Mean age in env steps of sampled transitions."""
        return float(((self.count - 1 - slots) % self.layout.rows).mean() * self.layout.n_envs)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything that a resumed run needs, as far as it was written."""
        filled = min(self.count + 1, self.layout.rows)
        arrays = self.storage.to_host(filled)
        arrays |= {"valid": self._valid[:filled], "waiting_age": self._age}
        arrays["numbers"] = np.array([self.count, self.reward_bound], np.float64)
        if self.priorities is not None:
            arrays |= self.priorities.to_arrays(filled * self.layout.n_envs)
        return arrays

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Memory to read a saved array into."""
        return self.storage.place(name, shape, dtype) if name in self.layout.columns else np.empty(shape, dtype)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        filled, count = len(arrays["valid"]), int(arrays["numbers"][0])
        require_fit(filled, count, self.layout)
        block = {name: arrays[name] for name in self.layout.columns}
        if self.layout.categories and block["obs"].dtype == np.float32:  # one-hot, as they were saved once
            block["obs"] = stored_observations(block["obs"], self.layout)
        self.storage.load(block)
        self._valid[:filled], self._age = arrays["valid"], arrays["waiting_age"].copy()
        self.count, self.reward_bound = count, float(arrays["numbers"][1])
        if self.priorities is not None:
            self.priorities.load(arrays)
