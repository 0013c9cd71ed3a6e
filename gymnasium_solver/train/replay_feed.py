"""A replay: minibatches of past experience, a few gradient steps for every few steps of the environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import OffPolicyConfig
from gymnasium_solver.data.layout import Layout, gather, make_layout, rows_for
from gymnasium_solver.data.memory import describe, host_memory, require_memory
from gymnasium_solver.data.priorities import Priorities
from gymnasium_solver.data.replay import Replay
from gymnasium_solver.data.storage import AcceleratorStorage, HostStorage
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.checkpoints import new_array
from gymnasium_solver.train.checkpoint import REPLAY
from gymnasium_solver.train.parts import Arrays, Chunk, Clock, Numbers


class Sampled(NamedTuple):
    """Slots and environments [G, B] of transitions, and their importance weights."""

    slots: np.ndarray
    envs: np.ndarray
    weight: np.ndarray


class ReplayFeed:
    epochs = 1  # of a row of metrics
    scheduled: tuple[str, ...] = ("priority_beta",)

    def __init__(self, config: OffPolicyConfig, spec: EnvSpec, algorithm: Algorithm) -> None:
        self.config, self._steps_per_update = config, algorithm.gradient_steps
        self.layout = replay_layout(config, spec)
        self.on_accelerator = use_accelerator(config, self.layout)
        priorities = None
        if config.prioritized_replay:
            priorities = Priorities(self.layout.rows * config.n_envs, config.priority_alpha, config.priority_eps)
        storage = AcceleratorStorage(self.layout) if self.on_accelerator else HostStorage(self.layout)
        self.replay = Replay(self.layout, storage, priorities)
        self.notes = [memory_note(self.layout, self.on_accelerator)]
        self.chunk, self.row_length = config.train_freq, config.rollout
        self._due = False
        self._copies: float = 0.0  # 1 where the target network is due to be copied before the next update
        self._last: Sampled | None = None
        self._begin_row()

    def _begin_row(self) -> None:
        self._updates, self._env_steps, self._ages = 0, 0, 0.0

    def random_rows(self, clock: Clock) -> int:
        return random_rows(self.config, clock)

    def add(self, chunk: Chunk, clock: Clock) -> None:
        self.replay.add(chunk.columns, chunk.start, chunk.stop, chunk.next_mask)
        taken = chunk.env_steps
        self._env_steps += taken
        after = clock.env_steps + taken
        self._due = after >= self.config.learning_starts and taken > 0 and self._ready
        self._copies = self._copies_due(clock.env_steps, after)

    def _copies_due(self, before: int, after: int) -> float:
        """1 where these steps passed a multiple of the target's interval."""
        interval = getattr(self.config, "target_update_interval", None)
        return float(interval is not None and after // interval > before // interval)

    @property
    def _ready(self) -> bool:
        """Whether there is enough to learn from; not so when a checkpoint without a replay was taken up."""
        enough = self.replay.count * self.config.n_envs >= self.config.learning_starts
        return enough and self.replay.can_sample

    @property
    def _shape(self) -> tuple[int, int]:
        return self.config.updates, self.config.batch_size

    def next(self, rng: np.random.Generator, hp: Numbers) -> tuple[dict[str, Any], Numbers] | None:
        if not self._due:
            return None
        self._due = False
        self._last = Sampled(*self.replay.sample(rng, self._shape, hp["priority_beta"]))
        return self.minibatches(self._last), {"sync_target": self._copies}

    def minibatches(self, sampled: Sampled) -> dict[str, Any]:
        if self.on_accelerator:
            return {"arrays": self.replay.storage.arrays, **sampled._asdict()}
        rows = gather(self.replay.storage.arrays, sampled.slots, sampled.envs, self.layout, np)
        return rows | {"weight": sampled.weight}

    def rows(self, batch: dict[str, Any]) -> Mapping[str, Any]:
        """Sampled rows are read inside the compiled update where the replay lies with it."""
        if not self.on_accelerator:
            return batch
        return gather(batch["arrays"], batch["slots"], batch["envs"], self.layout, jnp) | {"weight": batch["weight"]}

    def learnt(self, batch: dict[str, Any], outcome: Any) -> None:
        assert self._last is not None
        if self.replay.priorities is not None:
            self.replay.prioritize(self._last.slots, self._last.envs, np.asarray(outcome))
        self._ages += self.replay.age(self._last.slots)
        self._updates += 1

    def example(self) -> tuple[dict[str, Any], Numbers]:
        slots, weight = np.zeros(self._shape, np.int32), np.ones(self._shape, np.float32)
        return self.minibatches(Sampled(slots, slots, weight)), {"sync_target": 0.0}

    def sample(self) -> Mapping[str, Any]:
        """[1, B, …], read anew: a write to the accelerator's memory has made the arrays of the update invalid."""
        assert self._last is not None
        return self.rows(self.minibatches(Sampled(*(array[:1] for array in self._last))))

    def metrics(self) -> Numbers:
        metrics = replay_metrics(
            self.config,
            updates=self._updates * self._steps_per_update,
            env_steps=self._env_steps,
            reward_bound=self.replay.reward_bound,
            age=self._ages / self._updates if self._updates else None,
            size=self.replay.size,
        )
        self._begin_row()
        return metrics

    def cut_episodes(self) -> None:
        self.replay.cut()

    def snapshot(self) -> Arrays:
        return {f"{REPLAY}{name}": array for name, array in self.replay.to_arrays().items()}

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if name.startswith(REPLAY):
            return self.replay.place(name.removeprefix(REPLAY), shape, dtype)
        return new_array(name, shape, dtype)

    def restore(self, arrays: Arrays) -> None:
        stored = {name.removeprefix(REPLAY): array for name, array in arrays.items() if name.startswith(REPLAY)}
        if stored:
            self.replay.load(stored)
        else:
            self.notes.append("the checkpoint holds no replay: it fills anew before learning goes on")


def replay_layout(config: OffPolicyConfig, spec: EnvSpec) -> Layout:
    layout = make_layout(
        spec,
        rows=rows_for(config.buffer_rows, config.max_env_steps, config.n_envs, config.n_steps),
        n_envs=config.n_envs,
        frame_stack=config.frame_stack,
        n_step=config.n_step,
        gamma=config.gamma,
        prioritized=config.prioritized_replay,
    )
    if config.buffer_rows < config.n_step + layout.frames + 1:
        raise ConfigError(
            f"buffer_size: {config.buffer_size} holds no transition of {layout.frames} stacked frames and "
            f"{config.n_step} steps; use at least {config.n_envs * (config.n_step + layout.frames + 1)}"
        )
    return layout


def memory_note(layout: Layout, on_accelerator: bool) -> str:
    where = "the accelerator's memory" if on_accelerator else "host memory"
    return f"replay of {layout.rows * layout.n_envs:,} transitions: at most {describe(layout.nbytes)} of {where}"


def random_rows(config: OffPolicyConfig, clock: Clock) -> int:
    """Steps of the coming row of metrics before `learning_starts`, whose actions are random."""
    return min(max(0, -(-(config.learning_starts - clock.env_steps) // config.n_envs)), config.n_steps)


def replay_metrics(
    config: OffPolicyConfig, *, updates: int, env_steps: int, reward_bound: float, age: float | None, size: int
) -> Numbers:
    """Of a row: gradient steps, env steps, the largest reward so far, the mean age of what was learnt from."""
    bound = config.clip_reward if config.normalize_reward else reward_bound
    metrics = {
        "train/data/replay_size": float(size),
        "train/metrics/update_ratio": updates / max(1, env_steps),
        "train/metrics/q_bound": bound / max(1e-8, 1 - config.gamma),
    }
    return metrics if age is None else metrics | {"train/data/replay_age": age}


def use_accelerator(config: OffPolicyConfig, layout: Layout) -> bool:
    """Where the replay lies; ConfigError if it fits nowhere."""
    device = jax.devices()[0]
    statistics = device.memory_stats() if device.platform != "cpu" else None
    free = statistics["bytes_limit"] - statistics["bytes_in_use"] if statistics else None
    if config.replay_device == "accelerator":
        found = (free, f"the {device.platform}") if statistics else host_memory()
        require_memory(layout, *found)
        return True
    if config.replay_device == "auto" and free is not None and layout.nbytes < 0.5 * free:
        return True
    require_memory(layout, *host_memory())
    return False
