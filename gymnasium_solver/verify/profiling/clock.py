"""Where the seconds of a training go: a clock around the calls of its parts, nested as they are."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

Result = TypeVar("Result")
Path = tuple[str, ...]

_COMPILING = "/jax/core/compile/"  # begins JAX's own events of tracing, lowering and compiling
PHASES = ("step", "act", "transfer", "update", "record", "evaluate", "write", "compile", "other")

_listening: list[Clock] = []


class Clock:
    """Seconds of each phase without those of the phases inside it, in the thread that made the clock. What other
    threads do meanwhile is counted apart: it costs no time unless somebody waits for it."""

    def __init__(self) -> None:
        self.seconds: dict[Path, float] = defaultdict(float)
        self.calls: dict[Path, int] = defaultdict(int)
        self.background: dict[str, float] = defaultdict(float)
        self._thread = threading.get_ident()
        self._path: Path = ()
        self._inside = [0.0]  # seconds already booked by phases inside each open one
        self._compiled: list[tuple[float, float]] = []  # begin and length of the latest compilations, outermost only

    @property
    def path(self) -> Path:
        """The phases that are open, outermost first."""
        return self._path

    def call(self, phase: str, function: Callable[..., Result], *arguments: Any) -> Result:
        begun = time.perf_counter()
        if threading.get_ident() != self._thread:
            try:
                return function(*arguments)
            finally:
                self.background[phase] += time.perf_counter() - begun
        outer = self._path
        path = self._path = (*outer, phase)
        self._inside.append(0.0)
        try:
            return function(*arguments)
        finally:
            spent = time.perf_counter() - begun
            self.seconds[path] += spent - self._inside.pop()
            self.calls[path] += 1
            self._inside[-1] += spent
            self._path = outer

    def compiled(self, seconds: float) -> None:
        """JAX has just compiled for so long, within the phase that is open; what it told before may lie inside it."""
        if threading.get_ident() != self._thread:
            return
        begun, inside = time.perf_counter() - seconds, 0.0
        while self._compiled and self._compiled[-1][0] >= begun:
            inside += self._compiled.pop()[1]
        self._compiled.append((begun, seconds))
        self.seconds[(*self._path, "compile")] += seconds - inside
        self._inside[-1] += seconds - inside

    def move(self, source: Path, target: Path, seconds: float) -> None:
        """Part of a phase turned out to belong to another."""
        seconds = min(seconds, self.seconds[source])
        self.seconds[source] -= seconds
        self.seconds[target] += seconds

    @contextmanager
    def told_of_compilations(self) -> Iterator[None]:
        _attach_to_jax()
        _listening.append(self)
        try:
            yield
        finally:
            _listening.remove(self)


@cache
def _attach_to_jax() -> None:
    """Once: not every version of JAX has a way to take a listener back."""
    import jax.monitoring

    def on_duration(event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith(_COMPILING):
            for clock in _listening:
                clock.compiled(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(on_duration)


def phase_of(path: tuple[str, ...]) -> str:
    """`path` begins with the run itself."""
    if path[-1] in ("compile", "write"):
        return path[-1]
    if "evaluate" in path:
        return "evaluate"
    return {"run": "other", "epoch": "record", "replay": "record", "bonus": "update"}.get(path[-1], path[-1])


def phase_seconds(clock: Clock) -> dict[str, float]:
    booked = dict.fromkeys(PHASES, 0.0)
    for path, seconds in clock.seconds.items():
        booked[phase_of(path)] += seconds
    return booked


def tree_of(clock: Clock) -> dict[str, Any]:
    """Name, seconds and children, nested as the calls were; an epoch's are told apart as collecting and
    learning."""
    root: dict[str, Any] = {"name": "training", "seconds": 0.0, "children": []}
    for path, seconds in clock.seconds.items():
        names = list(path[1:])
        if names and names[0] == "epoch":
            part = "learn" if len(names) > 1 and names[1] in ("update", "bonus") else "collect"
            names = [part, *(names[1:] or ["record"])]
        names = names or ["other"]
        node = root
        node["seconds"] += seconds
        for name in names:
            child = next((child for child in node["children"] if child["name"] == name), None)
            if child is None:
                child = {"name": name, "seconds": 0.0, "children": []}
                node["children"].append(child)
            child["seconds"] += seconds
            node = child
    return root


class Watched:
    """An object whose methods are booked under one phase."""

    def __init__(self, inner: Any, phase: str, clock: Clock) -> None:
        self._inner, self._phase, self._clock = inner, phase, clock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        def timed(*arguments: Any, **named: Any) -> Any:
            return self._clock.call(self._phase, partial(value, **named) if named else value, *arguments)

        setattr(self, name, timed)
        return timed
