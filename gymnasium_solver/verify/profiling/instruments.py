"""A clock connected to a training."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gymnasium_solver.verify.profiling.clock import Clock, Watched

if TYPE_CHECKING:
    from concurrent.futures import Future

_CALIBRATION_CALLS = 40


class Instruments:
    """The clock's connections to a training. JAX computes in the background on accelerators: what was asked for is
    waited for before the clock moves on, and results are fetched under their own name."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.inputs: dict[str, tuple[Any, ...]] = {}  # of the last call of each kind, without what is learnt
        self.call_seconds: dict[str, float] = {}  # of a call that computes nothing, for each kind

    def timed(self, phase: str, function: Any, /) -> Any:
        if phase != "act":
            return lambda *arguments: self.clock.call(phase, function, *arguments)

        def act(*arguments: Any) -> Any:
            import jax

            made = jax.block_until_ready(function(*arguments))
            self.inputs["act"] = arguments[1:]  # all but the parameters, which are on the device already
            return self.clock.call("transfer", jax.device_get, made)

        return lambda *arguments: self.clock.call("act", act, *arguments)

    def learner(self, inner: Any) -> Any:
        inner.bonus.add_to = partial(self.clock.call, "bonus", inner.bonus.add_to)
        if hasattr(inner.feed, "replay"):
            inner.feed.replay = Watched(inner.feed.replay, "replay", self.clock)
        return _WatchedLearner(inner, self)

    def update(self, compiled: Any) -> Any:
        """The compiled update or, on the compiled engine, the whole row: three results each, the first stays where it
        is."""
        import jax

        def update(*arguments: Any) -> Any:
            state, metrics, extra = jax.block_until_ready(compiled(*arguments))
            self.inputs["update"] = arguments[1:]
            return state, *self.clock.call("transfer", jax.device_get, (metrics, extra))

        return lambda *arguments: self.clock.call("update", update, *arguments)

    def settle_transfers(self) -> None:
        """Inputs are copied to the device within the calls of act and update: book that share as transfer."""
        for name, inputs in self.inputs.items():
            seconds, self.call_seconds[name] = _hand_over_seconds(inputs)
            for path in [path for path in self.clock.calls if path[-1] == name]:
                self.clock.move(path, (*path, "transfer"), seconds * self.clock.calls[path])


class _WatchedLearner:
    """A Learner (see train/learner.py) whose epochs, compilation and updates are booked."""

    def __init__(self, inner: Any, instruments: Instruments) -> None:
        self._inner, self._instruments, self._call = inner, instruments, instruments.clock.call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def compile(self) -> Any:
        return self._instruments.update(self._call("compile", self._inner.compile))

    def learn(self, source: Any, update: Future[Any], *rest: Any) -> Any:
        return self._call("epoch", self._inner.learn, source, _Awaited(update, self._call), *rest)


class _Awaited:
    """The update that is being compiled in the background; to wait for it is time spent compiling."""

    def __init__(self, future: Future[Any], call: Any) -> None:
        self._future, self._call = future, call

    def result(self) -> Any:
        return self._future.result() if self._future.done() else self._call("compile", self._future.result)


def _hand_over_seconds(inputs: tuple[Any, ...]) -> tuple[float, float]:
    """What a call pays for inputs in host memory, beyond inputs that are on the device, and what it pays for those:
    by calls that do nothing."""
    import jax

    nothing = jax.jit(lambda *_: np.float32(0), keep_unused=True)
    kinds = (inputs, jax.device_put(inputs))
    spent: list[list[float]] = [[], []]
    for _ in range(_CALIBRATION_CALLS):
        for seconds, arguments in zip(spent, kinds, strict=True):
            begun = time.perf_counter()
            nothing(*arguments).block_until_ready()
            seconds.append(time.perf_counter() - begun)
    host, device = (float(np.median(seconds)) for seconds in spent)
    return max(0.0, host - device), device
