"""Generalised advantage estimation in NumPy, step by step, and the known ways to get a step wrong."""

from __future__ import annotations

import numpy as np

from gymnasium_solver.verify.compliance.loss_formula import standardized
from gymnasium_solver.verify.compliance.mistakes import Changes, catalogue
from gymnasium_solver.verify.compliance.samples import Rollout

Array = np.ndarray


def _accumulated(delta: Array, decay: Array) -> Array:
    result, carry = np.zeros_like(delta), np.zeros(delta.shape[1])
    for t in reversed(range(len(delta))):
        result[t] = carry = delta[t] + decay[t] * carry
    return result


def _last(values: Array, last: Array) -> Array:
    return np.concatenate([values[:-1], last[None]])


RIGHT: Changes = {
    "reward": lambda rewards: rewards,
    "index": lambda flags: flags,
    "bootstrap": lambda terminated, done: 1 - terminated,
    "trace": lambda terminated, done: 1 - done,
    "successor": lambda x: x.next_values,
    "discount": lambda gamma, lambda_: gamma,
    "decay": lambda gamma, lambda_: gamma * lambda_,
    "baseline": lambda values: values,
    "accumulate": _accumulated,
    "output": lambda advantages, values: advantages,
}


def advantages(changes: Changes, x: Rollout) -> Array:
    """https://arxiv.org/abs/1506.02438 equation 16, with some steps done otherwise. [T, N]"""
    do = {**RIGHT, **changes}
    flags = do["index"](x.terminated), do["index"](x.done)
    target = do["reward"](x.rewards) + do["discount"](*x[-2:]) * do["successor"](x) * do["bootstrap"](*flags)
    result = do["accumulate"](target - do["baseline"](x.values), do["decay"](*x[-2:]) * do["trace"](*flags))
    return do["output"](result, x.values)


def _open(terminated: Array, done: Array) -> Array:
    return np.ones_like(done)


MISTAKES = catalogue(
    [
        ("normalised-inside", {"output": lambda a, v: standardized(a)}),
        ("normalised-inside", {"output": lambda a, v: standardized(a, ddof=1)}),
        ("dones-not-masked", {"bootstrap": _open, "trace": _open}),
        ("trace-not-cut", {"trace": _open}),
        ("bootstrap-not-masked", {"bootstrap": _open}),
        ("mask-inverted", {"bootstrap": lambda t, d: t, "trace": lambda t, d: d}),
        # The flag of the next row, or of the previous; what stands at the edge is a matter of how it was written.
        ("done-index", {"index": lambda f: np.concatenate([f[1:], 0 * f[:1]])}),
        ("done-index", {"index": lambda f: np.concatenate([f[1:], f[-1:]])}),
        ("done-index", {"index": lambda f: np.concatenate([f[1:], 0 * f[:1] + 1])}),
        ("done-index", {"index": lambda f: np.concatenate([0 * f[:1], f[:-1]])}),
        ("done-index", {"index": lambda f: np.roll(f, 1, axis=0)}),
        ("last-row-not-masked", {"index": lambda f: _last(f, 0 * f[-1])}),
        ("truncation-as-termination", {"bootstrap": lambda t, d: 1 - d}),
        ("trace-not-cut-at-truncation", {"trace": lambda t, d: 1 - t}),
        ("lambda-missing", {"decay": lambda gamma, lambda_: gamma}),
        ("gamma-missing-in-trace", {"decay": lambda gamma, lambda_: lambda_}),
        ("trace-missing", {"decay": lambda gamma, lambda_: 0.0}),
        ("gamma-missing-in-bootstrap", {"discount": lambda gamma, lambda_: 1.0}),
        ("gamma-lambda-swapped", {"discount": lambda gamma, lambda_: lambda_}),
        ("value-not-subtracted", {"baseline": lambda values: 0.0}),
        ("successor-is-own-value", {"successor": lambda x: x.values}),
        ("last-value-everywhere", {"successor": lambda x: np.broadcast_to(x.next_values[-1], x.values.shape)}),
        ("last-value-ignored", {"successor": lambda x: _last(x.next_values, 0 * x.values[-1])}),
        ("last-value-ignored", {"successor": lambda x: _last(x.next_values, x.values[-1])}),
        ("runs-forwards", {"accumulate": lambda delta, decay: _accumulated(delta[::-1], decay[::-1])[::-1]}),
        ("rewards-shifted", {"reward": lambda rewards: np.concatenate([rewards[1:], 0 * rewards[:1]])}),
        ("advantage-sign", {"output": lambda a, v: -a}),
        ("returns-for-advantages", {"output": lambda a, v: a + v}),
    ]
)
