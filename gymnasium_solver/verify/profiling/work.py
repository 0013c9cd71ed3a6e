"""Floating-point work: how much a training does, and how much this machine can do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from gymnasium_solver.train.parts import as_inputs
from gymnasium_solver.train.source import empty_columns

PRODUCT = 1024  # rows and columns of the matrices whose product shows the machine's peak
REPEATS = 8


class Peak(NamedTuple):
    flops_per_second: float
    cores: float  # that were busy meanwhile; 0 on an accelerator


def flops_of_acting(learner: Any) -> float:
    """For one step of one environment."""
    algorithm, n_envs = learner.algorithm, learner.config.n_envs
    columns = empty_columns(learner.spec, {}, n_envs, 1)
    mask = columns["action_mask"][0] if "action_mask" in columns else None
    in_force = learner.hyperparameters(0.0) | {"random_actions": 0.0}
    noise = algorithm.acting_noise(np.random.default_rng(0), (1, n_envs), in_force)[0]
    return flops(algorithm.act, learner.actor, algorithm.begin(n_envs), columns["obs"][0], noise, mask) / n_envs


def flops_of_update(learner: Any) -> float:
    """One that the host calls."""
    algorithm, feed = learner.algorithm, learner.feed
    batch, inputs = feed.example()
    noise = algorithm.update_noise(np.random.default_rng(0))

    def update(state: Any, batch: Any, hp: Any, noise: Any) -> Any:
        return algorithm.update(state, feed.rows(batch), hp, noise)

    return flops(update, learner.state, batch, as_inputs(learner.hyperparameters(0.0) | inputs), noise)


def flops(function: Callable[..., Any], *arguments: Any) -> float:
    """Floating-point operations of the matrix products and convolutions of a call. XLA's own analysis counts the body
    of a loop once, however often it runs."""
    return _flops(jax.make_jaxpr(function)(*arguments).jaxpr)


def _flops(jaxpr: Any) -> float:
    return sum(_of_equation(equation) for equation in jaxpr.eqns)


def _of_equation(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        left, out = equation.invars[0].aval, equation.outvars[0].aval
        return 2.0 * out.size * math.prod(left.shape[axis] for axis in contracted)
    if name == "conv_general_dilated":
        kernel, out = equation.invars[1].aval, equation.outvars[0].aval
        return 2.0 * out.size * kernel.size / kernel.shape[params["dimension_numbers"].rhs_spec[0]]
    inner = [_flops(jaxpr) for jaxpr in _inner(params)]
    if name == "cond":
        return max(inner, default=0.0)
    return sum(inner) * (params["length"] if name == "scan" else 1)


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if hasattr(one, "eqns") or hasattr(one, "jaxpr"):
                yield getattr(one, "jaxpr", one)


def peak() -> Peak:
    """Of a matrix product large enough, in this process and so with its threads; the fastest of several."""
    rng = np.random.default_rng(0)
    left, right = (jax.device_put(rng.normal(size=(PRODUCT, PRODUCT)).astype(np.float32)) for _ in range(2))
    product = jax.jit(lambda a, b: a @ b)
    product(left, right).block_until_ready()
    best, cores = math.inf, 0.0
    for _ in range(REPEATS):
        begun, cpu_begun = time.perf_counter(), time.process_time()
        product(left, right).block_until_ready()
        seconds = time.perf_counter() - begun
        if seconds < best:
            best, cores = seconds, (time.process_time() - cpu_begun) / max(seconds, 1e-9)
    return Peak(2.0 * PRODUCT**3 / max(best, 1e-9), cores if jax.default_backend() == "cpu" else 0.0)
