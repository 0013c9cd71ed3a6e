"""Train reinforcement-learning agents fast: `import gymnasium_solver as gs; run = gs.train("CartPole-v1:ppo")`.

Nothing is imported before it is used, so `import gymnasium_solver` is instant and brings in no JAX.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium_solver.api import (
        Options,
        checkpoints,
        compare,
        config,
        diagnose,
        envs,
        evaluate,
        import_run,
        insights,
        inspect,
        load_run,
        logs,
        noise_scale,
        optimize,
        play,
        probe,
        profile,
        regress,
        report,
        resume,
        runs,
        score,
        show,
        solve,
        start,
        status,
        stop,
        sweep,
        train,
        train_seeds,
        validate,
        verify,
    )
    from gymnasium_solver.runs.reader import Run

    __version__: str

__all__ = [
    "Options",
    "Run",
    "__version__",
    "checkpoints",
    "compare",
    "config",
    "diagnose",
    "envs",
    "evaluate",
    "import_run",
    "insights",
    "inspect",
    "load_run",
    "logs",
    "noise_scale",
    "optimize",
    "play",
    "probe",
    "profile",
    "regress",
    "report",
    "resume",
    "runs",
    "score",
    "show",
    "solve",
    "start",
    "status",
    "stop",
    "sweep",
    "train",
    "train_seeds",
    "validate",
    "verify",
]

_ALSO_SUBPACKAGES = {"config", "diagnose", "envs", "runs", "train", "verify"}


class _CallableSubpackage(ModuleType):
    """`gs.train` is both the verb and the package gymnasium_solver.train: calling the package runs the verb."""

    @property
    def _verb(self) -> Callable[..., Any]:
        return getattr(import_module("gymnasium_solver.api"), self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self._verb)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._verb(*args, **kwargs)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a subpackage to its parent when it is first imported, from wherever that happens.
        if name in _ALSO_SUBPACKAGES and isinstance(value, ModuleType):
            value.__class__ = _CallableSubpackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _ALSO_SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name == "Run":
        return import_module("gymnasium_solver.runs.reader").Run
    if name == "__version__":
        from importlib.metadata import version

        return version("gymnasium-solver")
    if name in __all__:
        return getattr(import_module("gymnasium_solver.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
