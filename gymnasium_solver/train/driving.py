"""One row of metrics of experience and updates: chunk by chunk on the host, or in one compiled call."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.compiled_feeds import CompiledFeed
from gymnasium_solver.train.compiled_row import Drawn, Learning, Standing, compiled_row
from gymnasium_solver.train.compiled_source import CompiledSource
from gymnasium_solver.train.parts import Clock, Columns, Feed, Numbers, State, SteppedSource, as_inputs

InForce = Callable[[float], Numbers]  # a point on the config's clock → values of scheduled fields


class Driven(NamedTuple):
    state: State
    updates: list[Scalars]  # metrics of each
    columns: Columns | None  # what was collected, as it was learnt from
    bonuses: list[Numbers]
    time_update: float
    epochs: int = 1
    fault: EnvironmentFault | None = None  # noticed after the row; the state has learnt nothing from it


class Driver(Protocol):
    def compile(self, state: State, in_force: InForce) -> Any: ...
    def row(
        self, state: State, source: Any, update: Future[Any], rng: np.random.Generator, hp: Numbers, clock: Clock
    ) -> Driven: ...


class ChunkDriver:
    """Collects a chunk, takes the batches that are due, updates, over and over."""

    def __init__(self, config: Config, algorithm: Algorithm, feed: Feed, bonus: BonusGiver) -> None:
        self._config, self._algorithm, self._feed, self._bonus = config, algorithm, feed, bonus

    def compile(self, state: State, in_force: InForce) -> Any:
        batch, inputs = self._feed.example()
        noise = self._algorithm.update_noise(np.random.default_rng(0))
        jitted = jax.jit(self._update, donate_argnums=0)
        return jitted.lower(state, batch, as_inputs(in_force(0.0) | inputs), noise).compile()

    def _update(self, state: State, batch: Any, hp: Any, noise: Any) -> Any:
        return self._algorithm.update(state, self._feed.rows(batch), hp, noise)

    def row(
        self,
        state: State,
        source: SteppedSource | None,
        update: Future[Any],
        rng: np.random.Generator,
        hp: Numbers,
        clock: Clock,
    ) -> Driven:
        feed, algorithm = self._feed, self._algorithm
        made: list[Scalars] = []
        bonuses: list[Numbers] = []
        spent, columns = 0.0, None
        n_steps = feed.chunk if source is None else len(source.columns["valid"])
        noise = None if source is None else acting_noise(algorithm, feed, self._config, rng, n_steps, hp, clock)
        for start in range(0, n_steps, feed.chunk):
            if source is not None and noise is not None:
                chunk = source.advance(algorithm.actor(state), noise, start, start + feed.chunk)
                rewarded, bonus_metrics = self._bonus.add_to(chunk, hp)
                bonuses.append(bonus_metrics)
                feed.add(rewarded, clock)
                columns = rewarded.columns
                clock = clock._replace(env_steps=clock.env_steps + chunk.env_steps)
            paused = time.perf_counter()
            while (found := feed.next(rng, hp)) is not None:
                batch, inputs = found
                drawn = algorithm.update_noise(rng)
                state, metrics, outcome = update.result()(state, batch, as_inputs(hp | inputs), drawn)
                made.append(metrics)
                feed.learnt(batch, outcome)
            spent += time.perf_counter() - paused
        return Driven(state, made, columns, bonuses, spent)


class CompiledDriver:
    """Rollouts and updates of the row in one call."""

    def __init__(self, config: Config, algorithm: Algorithm, feed: CompiledFeed, engine: CompiledEngine) -> None:
        self._config, self._algorithm, self._feed, self._engine = config, algorithm, feed, engine
        self._row = compiled_row(algorithm, engine, feed)

    def compile(self, state: State, in_force: InForce) -> Any:
        self._in_force = in_force
        standing = Standing(self._engine.begin(), self._algorithm.begin(self._engine.n_envs), np.int32(0), np.bool_(1))
        drawn = self._draw(np.random.default_rng(0), in_force(0.0), Clock())
        jitted = jax.jit(self._row, donate_argnums=0)
        return jitted.lower(Learning(state, self._feed.state), standing, drawn, np.int32(1)).compile()

    def row(
        self,
        state: State,
        source: CompiledSource,
        update: Future[Any],
        rng: np.random.Generator,
        hp: Numbers,
        clock: Clock,
    ) -> Driven:
        begun, feed = time.perf_counter(), self._feed
        left = -(-(self._config.budget - clock.env_steps) * feed.chunks // feed.row_length)
        chunks = max(1, min(feed.chunks, left)) if feed.epochs > 1 else feed.chunks
        drawn = self._draw(rng, hp, clock)
        standing = Standing(source.environments, source.memory, np.int32(clock.env_steps), np.bool_(True))
        learning, standing, made = update.result()(Learning(state, feed.state), standing, drawn, np.int32(chunks))
        made = jax.tree.map(lambda x: np.asarray(x)[:chunks], made)
        columns: Columns = {name: x.reshape(-1, *x.shape[2:]) for name, x in made.columns.items()}
        columns["obs"] = np.concatenate([columns["obs"], np.asarray(standing.environments.obs)[None]])
        feed.learnt(learning.feed, made, columns, drawn.batches)
        fault = source.arrived(standing.environments, standing.memory, columns)
        updates = [Scalars(made.metrics.names, values) for values in made.metrics.values[made.learnt]]
        epochs = feed.epochs * chunks // feed.chunks
        return Driven(learning.state, updates, columns, [], time.perf_counter() - begun, epochs, fault)

    def _draw(self, rng: np.random.Generator, hp: Numbers, clock: Clock) -> Drawn:
        algorithm, feed, config = self._algorithm, self._feed, self._config
        acting = acting_noise(algorithm, feed, config, rng, feed.chunk * feed.chunks, hp, clock)
        update = jax.tree.map(lambda *x: np.stack(x), *(algorithm.update_noise(rng) for _ in range(feed.chunks)))
        # Each epoch has its own values, as on the host; those of a replay's row are in force for all of it.
        length = feed.row_length / feed.epochs
        at = [clock.env_steps + (i + 0.5) * length for i in range(feed.epochs)]
        values = [self._in_force(point) for point in at] if feed.epochs > 1 else [hp] * feed.chunks
        in_force = {name: np.array([row[name] for row in values], np.float32) for name in hp}
        shaped = acting.reshape(feed.chunks, feed.chunk, *acting.shape[1:])
        keys = self._engine.draw_keys(rng, (feed.chunks, feed.chunk))
        return Drawn(shaped, keys, update, feed.draws(rng, feed.chunks), in_force)


def acting_noise(
    algorithm: Algorithm,
    feed: Feed | CompiledFeed,
    config: Config,
    rng: np.random.Generator,
    n_steps: int,
    hp: Numbers,
    clock: Clock,
) -> np.ndarray:
    """[n_steps, N, …], the first of them for random actions where the feed wants some."""
    random_rows = feed.random_rows(clock)
    parts = [
        algorithm.acting_noise(rng, (count, config.n_envs), hp | {"random_actions": random})
        for count, random in ((random_rows, 1.0), (n_steps - random_rows, 0.0))
        if count
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
