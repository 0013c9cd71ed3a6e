"""Learning, one row of metrics at a time, and what is known of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.cards import card_of
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.train import backend
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.driving import ChunkDriver, CompiledDriver, Driver
from gymnasium_solver.train.parts import Arrays, Clock, Numbers, Source, State
from gymnasium_solver.train.randomness import generator
from gymnasium_solver.train.renewal import Renewal

FEEDS = {
    "rollout": "gymnasium_solver.train.rollout_feed:RolloutFeed",
    "replay": "gymnasium_solver.train.replay_feed:ReplayFeed",
}
COMPILED_FEEDS = {
    "rollout": "gymnasium_solver.train.compiled_feeds:CompiledRollouts",
    "replay": "gymnasium_solver.train.compiled_feeds:CompiledReplay",
}
Function = TypeVar("Function", bound=Callable[..., Any])


class Timed(Protocol):
    """The function, with a clock around its calls that books them under the phase."""

    def __call__(self, phase: str, function: Function, /) -> Function: ...


def untimed(phase: str, function: Function, /) -> Function:
    return function


class Learnt(NamedTuple):
    metrics: Numbers
    updates: int  # gradient steps
    time_rollout: float  # of the host: where environments are compiled with the update, all time is the update's
    time_update: float
    epochs: int


class Learner:
    """Holds the algorithm's state and its compiled functions, and what feeds it."""

    def __init__(
        self,
        config: Config,
        spec: EnvSpec,
        timed: Timed = untimed,
        engine: VectorEngine | CompiledEngine | None = None,
    ) -> None:
        """`engine`: of the environments, where they are compiled with the update; any other may be left out."""
        backend.start(config, spec)
        self.config, self.spec = config, spec
        self.algorithm = make_algorithm(config, spec)
        self.state: State = self.algorithm.init(generator(config.seed, "init", 0))
        self.bonus, self.renewal = BonusGiver(config, spec), Renewal(config, self.algorithm)
        name = card_of(config.algo_id).feed
        self.feed: Any
        self._driver: Driver
        if isinstance(engine, CompiledEngine):
            self.feed = _make(name, COMPILED_FEEDS, config, spec, self.algorithm)
            self._driver = CompiledDriver(config, self.algorithm, self.feed, engine)
        else:
            self.feed = _make(name, FEEDS, config, spec, self.algorithm)
            self._driver = ChunkDriver(config, self.algorithm, self.feed, self.bonus)
        self.act = timed("act", jax.jit(self.algorithm.act))
        self.greedy = timed("act", jax.jit(self.algorithm.greedy))
        self._observe = jax.jit(self.algorithm.observe) if self.algorithm.observe is not None else None
        self._report = jax.jit(self.algorithm.report) if self.algorithm.report is not None else None
        self._normalizes = any(getattr(config, name, False) for name in ("normalize_obs", "normalize_reward"))

    @property
    def actor(self) -> Any:
        return self.algorithm.actor(self.state)

    def hyperparameters(self, done: float) -> Numbers:
        """Values in force of scheduled fields, at this point of the config's clock."""
        names = (*self.algorithm.scheduled, *self.feed.scheduled, *self.bonus.scheduled)
        in_force = ((name, value_at(getattr(self.config, name), done, self.config.budget)) for name in names)
        return {name: value for name, value in in_force if value is not None}

    def compile(self) -> Any:
        """The update; in a thread of its own, beside the first steps of the environments."""
        return self._driver.compile(self.state, self.hyperparameters)

    def learn(
        self, source: Source | None, update: Future[Any], rng: np.random.Generator, hp: Numbers, clock: Clock
    ) -> Learnt:
        begun = time.perf_counter()
        self.state = self.renewal.applied(self.state, clock.env_steps)
        before = jax.tree.map(np.array, self.state.params) if self._report is not None else None
        driven = self._driver.row(self.state, source, update, rng, hp, clock)
        self.state = driven.state
        if driven.fault is not None:
            raise driven.fault
        paused = time.perf_counter()
        learnt, made = _mean(driven.bonuses) | self.feed.metrics(), driven.updates
        if made:
            learnt |= Scalars(made[0].names, np.mean([np.asarray(m.values) for m in made], axis=0)).to_dict()
            if self._report is not None:
                learnt |= self._report(before, self.state, self.feed.sample()).to_dict()
        if self._observe is not None and self._normalizes and driven.columns is not None:
            self.state = self._observe(self.state, driven.columns)
        updates = round(len(made) * self.algorithm.gradient_steps * learnt.get("train/metrics/epochs_done", 1.0))
        spent = driven.time_update + time.perf_counter() - paused
        return Learnt(learnt, updates, time.perf_counter() - begun - spent, spent, driven.epochs)

    def cut_episodes(self) -> None:
        """Environments begin anew, or a row broke off: the next step does not follow from the last."""
        self.bonus.forget_episodes()
        self.feed.cut_episodes()
        self.state = self.algorithm.forget_episodes(self.state)

    def snapshot(self, *, to_go_on: bool) -> Arrays:
        """The state and, `to_go_on`, what only a resumed run needs."""
        arrays = to_arrays(self.state)
        return arrays | self.feed.snapshot() | self.bonus.snapshot() | self.renewal.snapshot() if to_go_on else arrays

    def restore(self, arrays: Arrays, source: str) -> None:
        self.state = from_arrays(self.state, arrays, source)
        for part in (self.feed, self.bonus, self.renewal):
            part.restore(arrays)


def _make(name: str, known: Mapping[str, str], config: Config, spec: EnvSpec, algorithm: Algorithm) -> Any:
    module, _, factory = known.get(name, name).partition(":")
    return getattr(import_module(module), factory)(config, spec, algorithm)


def _mean(rows: list[Numbers]) -> Numbers:
    """Of those rows that have the number."""
    names = {name for row in rows for name in row}
    return {name: float(np.mean([row[name] for row in rows if name in row])) for name in sorted(names)}
