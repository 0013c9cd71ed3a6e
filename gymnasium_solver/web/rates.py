"""How often a client may ask: a bucket of tokens each, filled at a steady rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gymnasium_solver.errors import SolverError
from gymnasium_solver.web.settings import Rate

MOST_CLIENTS = 10_000


class Busy(SolverError):
    """Something of which the server does only so much at a time."""

    def __init__(self, sentence: str, seconds: int) -> None:
        super().__init__(sentence)
        self.seconds = seconds


@contextmanager
def alone(lock: threading.Lock, what: str, seconds: int) -> Iterator[None]:
    """One at a time: each takes a core for seconds."""
    if not lock.acquire(blocking=False):
        raise Busy(what, seconds)
    try:
        yield
    finally:
        lock.release()


class Buckets:
    """Used by the event loop alone, so without a lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._state: dict[tuple[str, Rate], tuple[float, float]] = {}  # tokens left, and when that was

    def wait(self, client: str, rate: Rate) -> float:
        """Seconds until this client may ask; 0 takes a token."""
        now, key = self._clock(), (client, rate)
        left, since = self._state.get(key, (rate.burst, now))
        left = min(rate.burst, left + (now - since) * rate.per_second)
        if left < 1:
            self._state[key] = (left, now)
            return (1 - left) / rate.per_second
        self._state[key] = (left - 1, now)
        if len(self._state) > MOST_CLIENTS:
            self._forget_idle(now)
        return 0.0

    def _forget_idle(self, now: float) -> None:
        """A full bucket is the same as none; of busy ones the oldest half goes."""
        busy = {
            (client, rate): (left, since)
            for (client, rate), (left, since) in self._state.items()
            if left + (now - since) * rate.per_second < rate.burst
        }
        newest = sorted(busy.items(), key=lambda entry: entry[1][1])[-MOST_CLIENTS // 2 :]
        self._state = dict(newest)
