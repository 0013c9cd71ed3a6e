"""Learning, one row of metrics at a time: collect a chunk, take the batches that are due, update, over and over."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.cards import card_of
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.parts import Arrays, Clock, Feed, Numbers, Source, State, as_inputs
from gymnasium_solver.train.randomness import generator
from gymnasium_solver.train.renewal import Renewal

FEEDS = {
    "rollout": "gymnasium_solver.train.rollout_feed:RolloutFeed",
    "replay": "gymnasium_solver.train.replay_feed:ReplayFeed",
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
    time_rollout: float
    time_update: float


class Learner:
    """Holds the algorithm's state and its compiled functions, and what feeds it."""

    def __init__(self, config: Config, spec: EnvSpec, timed: Timed = untimed) -> None:
        self.config, self.spec = config, spec
        self.algorithm = make_algorithm(config, spec)
        self.state: State = self.algorithm.init(generator(config.seed, "init", 0))
        self.feed = _make_feed(config, spec, self.algorithm)
        self.bonus, self.renewal = BonusGiver(config, spec), Renewal(config, self.algorithm)
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

    def compile(self, hp: Numbers) -> Any:
        """The update; in a thread of its own, beside the first steps of the environments."""
        batch, inputs = self.feed.example()
        noise = self.algorithm.update_noise(np.random.default_rng(0))
        jitted = jax.jit(self._update, donate_argnums=0)
        return jitted.lower(self.state, batch, as_inputs(hp | inputs), noise).compile()

    def _update(self, state: State, batch: Any, hp: Any, noise: Any) -> Any:
        return self.algorithm.update(state, self.feed.rows(batch), hp, noise)

    def learn(
        self, source: Source | None, update: Future[Any], rng: np.random.Generator, hp: Numbers, clock: Clock
    ) -> Learnt:
        begun = time.perf_counter()
        self.state = self.renewal.applied(self.state, clock.env_steps)
        before = jax.tree.map(np.array, self.state.params) if self._report is not None else None
        made: list[Scalars] = []
        bonuses: list[Numbers] = []
        spent, columns = 0.0, None
        n_steps = self.feed.chunk if source is None else len(source.columns["valid"])
        noise = None if source is None else self._acting_noise(rng, n_steps, hp, clock)
        for start in range(0, n_steps, self.feed.chunk):
            if source is not None and noise is not None:
                chunk = source.advance(self.actor, noise, start, start + self.feed.chunk)
                rewarded, bonus_metrics = self.bonus.add_to(chunk, hp)
                bonuses.append(bonus_metrics)
                self.feed.add(rewarded, clock)
                columns = rewarded.columns
                clock = clock._replace(env_steps=clock.env_steps + chunk.env_steps)
            paused = time.perf_counter()
            while (found := self.feed.next(rng, hp)) is not None:
                batch, inputs = found
                drawn = self.algorithm.update_noise(rng)
                self.state, metrics, outcome = update.result()(self.state, batch, as_inputs(hp | inputs), drawn)
                made.append(metrics)
                self.feed.learnt(batch, outcome)
            spent += time.perf_counter() - paused
        paused = time.perf_counter()
        learnt = _mean(bonuses) | self.feed.metrics()
        if made:
            learnt |= Scalars(made[0].names, np.mean([np.asarray(m.values) for m in made], axis=0)).to_dict()
            if self._report is not None:
                learnt |= self._report(before, self.state, self.feed.sample()).to_dict()
        if self._observe is not None and self._normalizes and columns is not None:
            self.state = self._observe(self.state, columns)
        updates = round(len(made) * self.algorithm.gradient_steps * learnt.get("train/metrics/epochs_done", 1.0))
        spent += time.perf_counter() - paused
        return Learnt(learnt, updates, time.perf_counter() - begun - spent, spent)

    def _acting_noise(self, rng: np.random.Generator, n_steps: int, hp: Numbers, clock: Clock) -> np.ndarray:
        random_rows = self.feed.random_rows(clock)
        parts = [
            self.algorithm.acting_noise(rng, (count, self.config.n_envs), hp | {"random_actions": random})
            for count, random in ((random_rows, 1.0), (n_steps - random_rows, 0.0))
            if count
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

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


def _make_feed(config: Config, spec: EnvSpec, algorithm: Any) -> Feed:
    name = card_of(config.algo_id).feed
    module, _, factory = FEEDS.get(name, name).partition(":")
    feed: Feed = getattr(import_module(module), factory)(config, spec, algorithm)
    return feed


def _mean(rows: list[Numbers]) -> Numbers:
    """Of those rows that have the number."""
    names = {name for row in rows for name in row}
    return {name: float(np.mean([row[name] for row in rows if name in row])) for name in sorted(names)}
