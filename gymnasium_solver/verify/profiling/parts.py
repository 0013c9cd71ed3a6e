"""The parts of a compiled row, each compiled alone: inside the row, no clock can tell them apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax

from gymnasium_solver.envs.compiled.engine import CompiledEngine, Environments
from gymnasium_solver.train.compiled_row import Drawn, Learning, Standing, collector
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.verify.profiling.clock import Clock
from gymnasium_solver.verify.profiling.work import flops

ROUNDS = 9
ROW = ("run", "epoch", "update")  # where the clock books a row


class Alone(NamedTuple):
    seconds: dict[str, float]  # of `step`, `act` and `update` for a row
    update_flops: float  # of one update


def measure_alone(learner: Learner, engine: CompiledEngine, standing: Standing, drawn: Drawn, most: float) -> Alone:
    """With the inputs that a row of the run had. The parts take turns, two at least, until `most` seconds have passed;
    the fastest turn of each counts. The learner has given its state away afterwards."""
    algorithm, feed = learner.algorithm, learner.feed
    collect = collector(algorithm, engine)

    def step(environments: Environments, row: tuple[Any, Any]) -> tuple[Environments, Any]:
        after, paid = engine.step(environments, *row)
        return after, (paid, environments.obs)

    def act(memory: Any, row: tuple[Any, Any]) -> tuple[Any, Any]:
        action, memory, extras = algorithm.act(actor, memory, row[0], row[1], None)
        return memory, (action, extras)

    def learn(learning: Learning, row: tuple[Drawn, Any]) -> tuple[Learning, Any]:
        chunk, columns = row
        taken = feed.take(learning.feed, columns, columns["valid"], standing.env_steps, chunk.batches)
        state, metrics, outcome = algorithm.update(learning.state, taken.batch, chunk.hp | taken.inputs, chunk.update)
        return Learning(state, taken.state), (metrics, feed.findings(outcome))

    acting_in_row = jax.jit(lambda start, rows: jax.lax.scan(act, start, rows))
    stepping = jax.jit(lambda start, rows: jax.lax.scan(step, start, rows))
    learning_in_row = jax.jit(lambda start, rows: jax.lax.scan(learn, start, rows), donate_argnums=0)

    standing, drawn = jax.device_put((standing, drawn))
    actor, learning = jax.tree.map(lambda x: x.copy(), learner.actor), Learning(learner.state, feed.state)
    columns = jax.jit(lambda start, rows: jax.lax.scan(partial(collect, actor), start, rows)[1])(standing, drawn)
    seen, action, noise, keys = jax.tree.map(
        lambda x: x.reshape(-1, *x.shape[2:]),
        (columns["obs"][:, :-1], columns["action"], drawn.acting, drawn.environments),
    )
    update_flops = flops(learn, learning, jax.tree.map(lambda x: x[0], (drawn, columns)))
    spent: dict[str, list[float]] = {"step": [], "act": [], "update": []}
    begun = time.perf_counter()
    for turn in range(1 + ROUNDS):  # the first compiles
        if turn > 2 and time.perf_counter() - begun > most:
            break
        spent["step"].append(_timed(stepping, standing.environments, (action, keys))[1])
        spent["act"].append(_timed(acting_in_row, standing.memory, (seen, noise))[1])
        (learning, _), seconds = _timed(learning_in_row, learning, (drawn, columns))
        spent["update"].append(seconds)
    return Alone({part: min(seconds[1:]) for part, seconds in spent.items()}, update_flops)


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    begun = time.perf_counter()
    made = jax.block_until_ready(function(*arguments))
    return made, time.perf_counter() - begun


def apportion(clock: Clock, alone: Mapping[str, float]) -> float:
    """Book the seconds of the rows by what their parts take alone. Returns which share of a row those add up to."""
    rows, whole = clock.calls[ROW] * sum(alone.values()), clock.seconds[ROW]
    for phase in ("step", "act"):
        clock.move(ROW, (*ROW[:-1], phase), whole * alone[phase] / sum(alone.values()))
    return rows / whole
