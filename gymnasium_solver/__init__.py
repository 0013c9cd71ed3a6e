"""Train reinforcement-learning agents fast: `import gymnasium_solver as gs; run = gs.train("CartPole-v1:ppo")`.

Nothing is imported before it is used, so `import gymnasium_solver` is instant and brings in no JAX.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium_solver.api import *  # noqa: F403 - what it lists in `__all__`
    from gymnasium_solver.runs.reader import Run as Run
    from gymnasium_solver.trust import factory as factory

    __version__: str


class _Verb:
    """A verb that a subpackage shares its name with: `gs.train` is the function, whatever has been imported."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, package: ModuleType, owner: type | None = None) -> Any:
        if self._name in package.__dict__:
            return package.__dict__[self._name]
        verb = getattr(import_module(f"{__name__}.api"), self._name)
        if subpackage := sys.modules.get(f"{__name__}.{self._name}"):
            verb.__dict__ = subpackage.__dict__  # `import gymnasium_solver.train.loop as loop` asks the verb for `loop`
        return verb

    def __set__(self, package: ModuleType, value: Any) -> None:
        if not isinstance(value, ModuleType):  # which the import system binds to its parent; it stays in sys.modules
            package.__dict__[self._name] = value


class _Package(ModuleType):
    config, diagnose, envs, runs, train, verify = _Verb(), _Verb(), _Verb(), _Verb(), _Verb(), _Verb()


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "Run":
        return import_module("gymnasium_solver.runs.reader").Run
    if name == "factory":
        return import_module("gymnasium_solver.trust").factory
    if name == "__version__":
        from importlib.metadata import version

        return version("gymnasium-solver")
    verbs = import_module("gymnasium_solver.api")
    if name == "__all__":  # the verbs are listed in one place
        return sorted([*verbs.__all__, "Run", "__version__", "factory"])
    if name in verbs.__all__:
        return getattr(verbs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
