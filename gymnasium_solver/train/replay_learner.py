"""Learning from a replay: a few steps, a few gradient steps, over and over."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

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
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.runs.checkpoints import new_array
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.checkpoint import REPLAY
from gymnasium_solver.train.collect import Collector
from gymnasium_solver.train.learner import Epoch, Numbers, State, as_inputs
from gymnasium_solver.train.randomness import generator

_RESETS = "resets"


class ReplayLearner:
    def __init__(self, config: OffPolicyConfig, spec: EnvSpec, algorithm: Algorithm, state: State) -> None:
        self.config, self.spec, self.algorithm, self.state = config, spec, algorithm, state
        self.layout = make_layout(
            spec,
            rows=rows_for(config.buffer_rows, config.max_env_steps, config.n_envs, config.n_steps),
            n_envs=config.n_envs,
            frame_stack=config.frame_stack,
            n_step=config.n_step,
            gamma=config.gamma,
            prioritized=config.prioritized_replay,
        )
        if config.buffer_rows < config.n_step + self.layout.frames + 1:
            raise ConfigError(
                f"buffer_size: {config.buffer_size} holds no transition of {self.layout.frames} stacked frames and "
                f"{config.n_step} steps; use at least {config.n_envs * (config.n_step + self.layout.frames + 1)}"
            )
        self.on_accelerator = _use_accelerator(config, self.layout)
        priorities = None
        if config.prioritized_replay:
            priorities = Priorities(self.layout.rows * config.n_envs, config.priority_alpha, config.priority_eps)
        storage = AcceleratorStorage(self.layout) if self.on_accelerator else HostStorage(self.layout)
        self.replay = Replay(self.layout, storage, priorities)
        self.bonus = BonusGiver(config, spec)
        self.scheduled: tuple[str, ...] = ("priority_beta", *self.bonus.scheduled)
        where = "the accelerator's memory" if self.on_accelerator else "host memory"
        transitions = self.layout.rows * config.n_envs
        self.notes = [f"replay of {transitions:,} transitions: at most {describe(self.layout.nbytes)} of {where}"]
        if config.reset_interval is not None and config.reset_interval < config.rollout:
            raise ConfigError(
                f"reset_interval: {config.reset_interval} is less than an epoch, which is {config.rollout} env steps; "
                f"use at least {config.rollout}"
            )
        self._resets: int | None = 0  # None: unknown, of a checkpoint that was not made to go on from
        self._observe = jax.jit(algorithm.observe)
        assert algorithm.report is not None
        self._report = jax.jit(algorithm.report)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.config.updates, self.config.batch_size

    def compile(self, hp: Numbers) -> Any:
        """Sampled rows are read inside the compiled update where the replay lies with it."""
        chance = self.algorithm.draw_shuffle(np.random.default_rng(0))
        slots, weight = np.zeros(self._shape, np.int32), np.ones(self._shape, np.float32)
        batch = self._minibatches(slots, slots, weight)
        function = self._update_from_replay if self.on_accelerator else self.algorithm.update
        jitted = jax.jit(function, donate_argnums=0)
        return jitted.lower(self.state, batch, as_inputs(hp | {"sync_target": 0.0}), chance).compile()

    def _update_from_replay(self, state: State, sampled: dict[str, Any], hp: Any, chance: Any) -> Any:
        return self.algorithm.update(state, _read(sampled, self.layout), hp, chance)

    def _minibatches(self, slots: np.ndarray, envs: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
        if self.on_accelerator:
            return {"arrays": self.replay.storage.arrays, "slots": slots, "envs": envs, "weight": weight}
        return gather(self.replay.storage.arrays, slots, envs, self.layout, np) | {"weight": weight}

    def _first_minibatch(self, slots: np.ndarray, envs: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
        """[1, B, …], read anew: a write to the accelerator's memory has made the arrays of the update invalid."""
        rows = self._minibatches(slots[:1], envs[:1], weight[:1])
        return _read(rows, self.layout) if self.on_accelerator else rows

    def epoch(
        self, collector: Collector, update: Future[Any], rng: np.random.Generator, hp: Numbers, env_steps: int
    ) -> Epoch:
        config, algorithm, batch = self.config, self.algorithm, collector.batch
        begun = time.perf_counter()
        self._reset_if_due(env_steps)
        random_rows = min(max(0, -(-(config.learning_starts - env_steps) // config.n_envs)), config.n_steps)
        noise = self._draw_noise(rng, random_rows, hp)
        before = {"params": jax.tree.map(np.array, self.state["params"])}
        made: list[Scalars] = []
        bonuses: list[Numbers] = []
        ages, spent, steps, sampled = 0.0, 0.0, env_steps, None
        learnt_rewards = batch["reward"].copy()  # with the bonus
        for start in range(0, config.n_steps, config.train_freq):
            stop = start + config.train_freq
            collector.advance(algorithm.actor(self.state), noise, start, stop)
            rewarded, bonus_metrics = self.bonus.add_to(batch, start, stop, hp)
            bonuses.append(bonus_metrics)
            learnt_rewards[start:stop] = rewarded["reward"][start:stop]
            self.replay.add(rewarded, start, stop, collector.mask)
            taken = int(batch["valid"][start:stop].sum())
            earlier, steps = steps, steps + taken
            if steps < config.learning_starts or not taken or not self._ready:
                continue
            paused = time.perf_counter()
            sampled = slots, envs, weight = self.replay.sample(rng, self._shape, hp["priority_beta"])
            in_force = hp | {"sync_target": self._copies_due(earlier, steps)}
            chance = algorithm.draw_shuffle(rng)
            rows = self._minibatches(slots, envs, weight)
            self.state, metrics, error = update.result()(self.state, rows, as_inputs(in_force), chance)
            made.append(metrics)
            if self.replay.priorities is not None:
                self.replay.prioritize(slots, envs, np.asarray(error))
            ages += self.replay.age(slots)
            spent += time.perf_counter() - paused
        _, ended = collector.finish()
        collected = time.perf_counter()
        learnt = _mean(bonuses) | {
            "train/data/replay_size": float(self.replay.size),
            "train/metrics/update_ratio": len(made) * algorithm.gradient_steps / max(1, steps - env_steps),
            "train/metrics/q_bound": self._reward_bound / max(1e-8, 1 - config.gamma),
        }
        if sampled is not None:
            learnt |= Scalars(made[0].names, np.mean([np.asarray(m.values) for m in made], axis=0)).to_dict()
            learnt |= self._report(before, self.state, self._first_minibatch(*sampled)).to_dict()
            learnt["train/data/replay_age"] = ages / len(made)
        if config.normalize_obs or config.normalize_reward:
            self.state = self._observe(self.state, batch | {"reward": learnt_rewards})
        spent += time.perf_counter() - collected
        gradient_steps = len(made) * algorithm.gradient_steps
        return Epoch(batch, ended, learnt, gradient_steps, time.perf_counter() - begun - spent, spent)

    def _copies_due(self, before: int, after: int) -> float:
        """1 where the steps of a round passed a multiple of the target's interval."""
        interval = getattr(self.config, "target_update_interval", None)
        return float(interval is not None and after // interval > before // interval)

    @property
    def _reward_bound(self) -> float:
        """The largest reward that can have been learnt from."""
        return self.config.clip_reward if self.config.normalize_reward else self.replay.reward_bound

    @property
    def _ready(self) -> bool:
        """Whether there is enough to learn from; not so when a checkpoint without a replay was taken up."""
        enough = self.replay.count * self.config.n_envs >= self.config.learning_starts
        return enough and self.replay.can_sample

    def _draw_noise(self, rng: np.random.Generator, random_rows: int, hp: Numbers) -> np.ndarray:
        """Before `learning_starts`, only chance acts."""
        rows = self.config.n_steps - random_rows
        parts = [
            self.algorithm.draw_noise(rng, (count, self.config.n_envs), hp | {"random_actions": random})
            for count, random in ((random_rows, 1.0), (rows, 0.0))
            if count
        ]
        return np.concatenate(parts)

    def _reset_if_due(self, env_steps: int) -> None:
        """A fresh start for networks that can no longer learn, https://arxiv.org/abs/2205.07802; the replay is kept.

        At the beginning of an epoch: what an epoch learnt is evaluated first, and the end of training is no such start.
        """
        if self.config.reset_interval is None:
            return
        made, self._resets = self._resets, env_steps // self.config.reset_interval
        if made is None or made == self._resets:
            return
        fresh = self.algorithm.init(generator(self.config.seed, "reset", self._resets))
        renewed = {name: fresh[name] for name in ("params", "target", "optimizer", "steps") if name in fresh}
        if self.config.reset_part == "heads":
            for name in ("params", "target"):
                renewed[name] = jax.tree_util.tree_map_with_path(
                    lambda path, new, old: new if "_head" in jax.tree_util.keystr(path) else old,
                    renewed[name],
                    self.state[name],
                )
        self.state = self.state | renewed

    def cut_episodes(self) -> None:
        self.bonus.forget_episodes()
        self.replay.cut()
        self.state = self.algorithm.forget_episodes(self.state)

    def to_arrays(self) -> dict[str, np.ndarray]:
        stored = {f"{REPLAY}{name}": array for name, array in self.replay.to_arrays().items()}
        if self.config.reset_interval is not None and self._resets is not None:
            stored[_RESETS] = np.array(self._resets)
        return stored | self.bonus.to_arrays()

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if name.startswith(REPLAY):
            return self.replay.place(name.removeprefix(REPLAY), shape, dtype)
        return new_array(name, shape, dtype)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self._resets = int(arrays[_RESETS]) if _RESETS in arrays else None
        stored = {name.removeprefix(REPLAY): array for name, array in arrays.items() if name.startswith(REPLAY)}
        if stored:
            self.replay.load(stored)
        else:
            self.notes.append("the checkpoint holds no replay: it fills anew before learning goes on")
        self.bonus.load(arrays)


def _use_accelerator(config: OffPolicyConfig, layout: Layout) -> bool:
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


def _read(sampled: dict[str, Any], layout: Layout) -> dict[str, Any]:
    rows = gather(sampled["arrays"], sampled["slots"], sampled["envs"], layout, jnp)
    return rows | {"weight": sampled["weight"]}


def _mean(rows: list[Numbers]) -> Numbers:
    """Of those rows that have the number."""
    names = {name for row in rows for name in row}
    return {name: float(np.mean([row[name] for row in rows if name in row])) for name in sorted(names)}
