"""Learning from fresh rollouts: collect n_steps, update once, forget them."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.runs.checkpoints import new_array
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.collect import Collector
from gymnasium_solver.train.learner import Epoch, Numbers, State, as_inputs
from gymnasium_solver.train.signals import worth_signals


class RolloutLearner:
    def __init__(self, config: Config, spec: EnvSpec, algorithm: Algorithm, state: State) -> None:
        self.config, self.spec, self.algorithm, self.state = config, spec, algorithm, state
        self.bonus = BonusGiver(config, spec)
        self.scheduled: tuple[str, ...] = self.bonus.scheduled
        self.notes: list[str] = []

    def compile(self, hp: Numbers) -> Any:
        shuffle = self.algorithm.draw_shuffle(np.random.default_rng(0))
        batch = Collector.empty_batch(self.spec, self.config.n_envs, self.config.n_steps)
        jitted = jax.jit(self.algorithm.update, donate_argnums=0)
        return jitted.lower(self.state, batch, as_inputs(hp), shuffle).compile()

    def epoch(
        self, collector: Collector, update: Future[Any], rng: np.random.Generator, hp: Numbers, env_steps: int
    ) -> Epoch:
        config, algorithm = self.config, self.algorithm
        begun = time.perf_counter()
        noise = algorithm.draw_noise(rng, (config.n_steps, config.n_envs), hp)
        batch, ended = collector.collect(algorithm.actor(self.state), noise)
        collected = time.perf_counter()
        shuffle = algorithm.draw_shuffle(rng)
        rewarded, bonus_metrics = self.bonus.add_to(batch, 0, config.n_steps, hp)
        self.state, device_metrics, device_worth = update.result()(self.state, rewarded, as_inputs(hp), shuffle)
        metrics, worth = jax.device_get((device_metrics, device_worth))
        learnt = metrics.to_dict() | worth_signals(worth.advantage, worth.value, worth.target, batch["valid"])
        gradient_steps = round(algorithm.gradient_steps * learnt.get("train/metrics/epochs_done", 1.0))
        updated = time.perf_counter()
        return Epoch(batch, ended, learnt | bonus_metrics, gradient_steps, collected - begun, updated - collected)

    def cut_episodes(self) -> None:
        self.bonus.forget_episodes()
        self.state = self.algorithm.forget_episodes(self.state)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return self.bonus.to_arrays()

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return new_array(name, shape, dtype)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self.bonus.load(arrays)
