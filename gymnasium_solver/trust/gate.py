"""The one gate to code that text names (`module:Name`). Closed by default, it is opened name by name:

- by the person who started this process and asked for it, on the command line or in Python (`allow`);
- for a run that this user's own installation is on record to have made (`origin.admit`);
- with `--trust`, `trust=True` or a yes in the terminal: then only what declares itself to be of the kind is taken.

Within `closed`, as servers work, and where GSOLVE_ALLOW_CODE is set, only what is listed there is let in, whoever asks.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from gymnasium_solver.errors import ConfigError, TrustError
from gymnasium_solver.trust.names import split

ALLOWED = "GSOLVE_ALLOW_CODE"  # modules, or module:Name, separated by commas: these and no others
_PASSED_ON = "GSOLVE_TRUSTED"  # what the process that started this one may import
_MARK = "__gymnasium_solver_factory__"
_ANYTHING = "*"

# Environments and wrappers that come with the package.
_OURS = (
    *("gymnasium_solver.envs.probes", "gymnasium_solver.envs.compiled.probes"),
    *("gymnasium_solver.envs.compiled.classic_control", "gymnasium_solver.verify.scoring.transfer_tasks"),
)

Level = Literal["asked", "trusted"]  # by name: a plain function will do; as a whole: only what says what it is
Function = TypeVar("Function", bound=Callable[..., Any])

_closed: ContextVar[tuple[str, ...] | None] = ContextVar("closed", default=None)
_doubts: dict[str, str] = {}  # why a name is not allowed, where more is known
_question: Callable[[str], bool] | None = None


def _inherited() -> dict[str, set[str]]:
    try:
        passed = json.loads(os.environ.get(_PASSED_ON) or "{}")
        return {level: {str(name) for name in passed.get(level, ())} for level in ("asked", "trusted")}
    except (ValueError, AttributeError, TypeError):
        return {"asked": set(), "trusted": set()}


_open = _inherited()


def factory(function: Function) -> Function:
    """Declare a function to be a factory of environments or wrappers, so that configurations may name it."""
    setattr(function, _MARK, True)
    return function


def allow(names: Iterable[str], level: Level = "asked") -> None:
    """Let these in, for as long as the process lives. In one that is closed it changes nothing. The first word counts:
    what only a file names does not become the user's own wish when that file is acted upon."""
    if is_closed():
        return
    other = _open["trusted" if level == "asked" else "asked"]
    _open[level].update(name for name in names if split(name) and name not in other)


def allow_everything() -> None:
    """`--trust`: whatever the runs of this command name."""
    _open["trusted"].add(_ANYTHING)


def doubt(names: Iterable[str], why: str) -> None:
    _doubts.update(dict.fromkeys(names, why))


def ask_with(question: Callable[[str], bool] | None) -> None:
    """How to ask the person at the terminal; None: nobody is there."""
    global _question
    _question = question


@contextmanager
def closed(modules: Sequence[str] = ()) -> Iterator[None]:
    """As servers work: nothing but these is imported, here and in processes started meanwhile, whoever asks."""
    before = _closed.set(tuple(modules))
    try:
        yield
    finally:
        _closed.reset(before)


def close(modules: Sequence[str] = ()) -> None:
    """The same for a whole process, from now on."""
    os.environ[ALLOWED] = ",".join(modules)


def is_closed() -> bool:
    return _list() is not None


def allowed_for_children() -> dict[str, str]:
    """The environment variables that hold a process started from here to the same."""
    listed = _list()
    if listed is not None:
        return {ALLOWED: ",".join(listed), _PASSED_ON: ""}
    return {_PASSED_ON: json.dumps({level: sorted(names) for level, names in _open.items()})}


def may_import(reference: str) -> bool:
    """Without asking anybody."""
    return _level(reference) is not None


def require(reference: str, field: str) -> Level:
    """TrustError unless it may be imported; a person at the terminal is asked."""
    _parts(reference, field)
    level = _level(reference)
    if level is not None:
        return level
    if _question is not None and not is_closed() and _question(_described(reference, field)):
        allow([reference], "trusted")
        return "trusted"
    raise refusal(reference, field)


def load(reference: str, field: str, fits: Callable[[Any], bool], wanted: str) -> Any:
    """What `module:Name` names, if it may be imported and is of the kind: `fits` looks at it and calls nothing.

    A function is taken if it is declared to be a factory, or was asked for by its name.
    """
    level = require(reference, field)
    module = load_module(reference, field)
    _, name = _parts(reference, field)
    if not hasattr(module, name):
        raise ConfigError(f"{field}: module {module.__name__!r} has no {name!r}")
    found = getattr(module, name)
    if fits(found) or (isfunction(found) and (level == "asked" or getattr(found, _MARK, False) is True)):
        return found
    if isfunction(found):
        raise ConfigError(
            f"{field}: {reference} is a function that does not say what it makes; put @gymnasium_solver.factory over "
            f"it if it makes {wanted}"
        )
    kind = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
    raise ConfigError(f"{field}: {reference} is {kind}, not {wanted}; it was not called")


def load_module(reference: str, field: str) -> ModuleType:
    """The module of a reference, which may be imported; found in the working directory too."""
    require(reference, field)
    return load_from_variable(reference, field)


def load_from_variable(reference: str, field: str) -> ModuleType:
    """As `load_module`, of what an environment variable names: whoever sets it starts this process, and asks for it."""
    name, _ = _parts(reference, field)
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # a console script, unlike `python -m`, does not look here by itself
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not name.startswith(error.name):
            raise ConfigError(f"{field}: module {name!r} needs {error.name!r}, which is not installed") from error
        raise ConfigError(
            f"{field}: no module {name!r}; run from the directory that holds it, or install its package"
        ) from error
    except Exception as error:  # any error in someone else's module
        raise ConfigError(f"{field}: importing {name!r} failed: {type(error).__name__}: {error}") from error


def load_file(path: Path, field: str) -> ModuleType:
    """A .py file that a person named. Servers take none."""
    if is_closed():
        raise TrustError(f"{field}: {path} is code, and no file of code is run here; use gsolve in a terminal")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any error in someone else's file
        raise ConfigError(f"{field}: importing {path} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def _list() -> tuple[str, ...] | None:
    """All that may be imported where the gate is closed; None where it is not."""
    here = _closed.get()
    if here is not None:
        return here
    return None if ALLOWED not in os.environ else allowed_by_variable()


def allowed_by_variable() -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, os.environ.get(ALLOWED, "").split(","))))


def _level(reference: str) -> Level | None:
    module = reference.partition(":")[0]
    if split(reference) is None:
        return None
    if module in _OURS:
        return "asked"
    listed = _list()
    if listed is not None:
        if reference in listed:
            return "asked"
        return "trusted" if any(_within(module, one) for one in listed) else None
    if reference in _open["asked"]:
        return "asked"
    return "trusted" if {reference, _ANYTHING} & _open["trusted"] else None


def _within(module: str, listed: str) -> bool:
    return module == listed or module.startswith(f"{listed}.")


def _parts(reference: str, field: str) -> tuple[str, str]:
    place, parts = reference.partition(":")[0], split(reference)
    if place.endswith(".py"):
        module = ".".join(Path(place).with_suffix("").parts)
        raise ConfigError(f"{field}: {place!r} is a file, a module is wanted; write {module}:Class")
    if parts is None:
        raise ConfigError(f"{field}: {reference!r} is not module:Name")
    return parts


def _described(reference: str, field: str) -> str:
    why = _doubts.get(reference, "nobody asked for it by name")
    return f"{field} names code, {reference}, from {_origin(reference)}; {why}"


def refusal(reference: str, field: str) -> TrustError:
    module, _ = _parts(reference, field)
    if is_closed():
        return TrustError(
            f"{field}: {reference} is code that is not imported here; whoever starts the server may allow it with "
            f"--allow-code {module} (without --read-only), whoever starts a command in {ALLOWED}"
        )
    why = _doubts.get(reference, "nobody asked for it by name")
    return TrustError(
        f"{field}: {reference} is code that was not imported: {why}; read it first, then allow it with --trust "
        "(in Python: trust=True)"
    )


def _origin(reference: str) -> str:
    """The file or directory of its package, found without importing anything."""
    top = reference.partition(":")[0].partition(".")[0]
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(top, [str(Path.cwd()), *sys.path])
    if found is None:
        return "a module that is not found"
    return found.origin or next(iter(found.submodule_search_locations or ()), top)
