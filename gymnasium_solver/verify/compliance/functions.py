"""A user's function: found, called with NumPy, JAX or torch arrays, differentiated by what its library offers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.envs.user_code import import_attribute
from gymnasium_solver.errors import ConfigError

Array = np.ndarray
Function = Callable[..., Any]

FRAMEWORKS = ("torch", "jax", "numpy")
STEP = 1e-3  # of central differences: wide enough for functions that compute in 32 bits


class Backend(NamedTuple):
    name: str
    array: Callable[[Array], Any]
    exp: Callable[[Any], Any]
    gradient: Callable[[Callable[[Any], Any], Array], Array]  # of a scalar function, by one array
    tolerance: float
    detaches: bool  # whether the library can hold back gradients


def load(reference: str) -> Function:
    """`module:function`, or path/to/file.py:function."""
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise ConfigError(
            f"validate: {reference!r} names no function; write module:function, or path/to/file.py:function"
        )
    function = (
        getattr(_from_file(place), name, None) if place.endswith(".py") else import_attribute(reference, "validate")
    )
    if function is None:
        raise ConfigError(f"validate: {place} has no {name!r}")
    if not callable(function):
        raise ConfigError(f"validate: {reference} is {type(function).__name__}, not a function")
    return function


def _from_file(place: str) -> ModuleType:
    path = Path(place).expanduser()
    if not path.is_file():
        raise ConfigError(f"validate: there is no file {place}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any error in someone else's file
        raise ConfigError(f"validate: importing {place} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


@dataclass(frozen=True)
class Subject:
    """A function with the meaning of its parameters, and the kind of arrays it is called with."""

    function: Function
    parameters: Mapping[str, str]  # our name → the function's
    backend: Backend

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """`given` by our names; arrays come as the library's own, everything else as it is."""
        named = {
            self.parameters[ours]: self.backend.array(value) if isinstance(value, np.ndarray) else value
            for ours, value in given.items()
            if ours in self.parameters
        }
        leading = [
            named.pop(name)
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and name in named
        ]
        return self.function(*leading, **named)


def backends(function: Function, framework: str | None) -> Iterator[Backend]:
    """The library that the function seems to be written for, then the others that are installed."""
    if framework is not None and framework not in FRAMEWORKS:
        raise ConfigError(f"validate: --framework {framework} is none of {', '.join(FRAMEWORKS)}")
    names = [framework] if framework else sorted(FRAMEWORKS, key=lambda name: name != _guess(function))
    for name in names:
        if importlib.util.find_spec(name) is not None:
            yield _MAKERS[name]()
        elif framework:
            raise ConfigError(f"validate: --framework {framework}: {framework} is not installed")


def _guess(function: Function) -> str:
    used = _libraries(function, set())
    around = {_root(value) for value in getattr(inspect.unwrap(function), "__globals__", {}).values()}
    return next((name for found in (used, around) for name in FRAMEWORKS if name in found), "numpy")


def _libraries(function: Function, seen: set[int]) -> set[str]:
    """Modules that a function uses, itself or through functions that it calls by their global name."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None or id(plain) in seen:
        return set()
    seen.add(id(plain))
    found = set()
    for name in _names(code):
        value = getattr(plain, "__globals__", {}).get(name)
        found |= {_root(value) or name} | (_libraries(value, seen) if inspect.isroutine(value) else set())
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _root(value: Any) -> str | None:
    return value.__name__.partition(".")[0] if isinstance(value, ModuleType) else None


def _numpy() -> Backend:
    return Backend("numpy", lambda x: x.copy(), np.exp, differences, 2e-4, False)


def differences(function: Callable[[Any], Any], at: Array) -> Array:
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += STEP
        down[index] -= STEP
        gradient[index] = (float(function(up)) - float(function(down))) / (2 * STEP)
    return gradient


def _jax() -> Backend:
    import jax
    import jax.numpy as jnp

    def array(x: Array) -> Any:
        return jnp.asarray(x, jnp.float32 if x.dtype.kind == "f" else x.dtype)

    def gradient(function: Callable[[Any], Any], at: Array) -> Array:
        try:
            return np.asarray(jax.grad(lambda x: jnp.asarray(function(x), jnp.float32))(array(at)), float)
        except (jax.errors.JAXTypeError, TypeError):  # it leaves JAX on its way
            return differences(lambda x: function(array(x)), at)

    return Backend("jax", array, jnp.exp, gradient, 1e-4, True)


def _torch() -> Backend:
    torch = importlib.import_module("torch")

    def array(x: Array) -> Any:
        return torch.tensor(x, dtype=torch.float32 if x.dtype.kind == "f" else None)

    def gradient(function: Callable[[Any], Any], at: Array) -> Array:
        leaf = array(at).requires_grad_()
        out = function(leaf)
        if not getattr(out, "requires_grad", False):
            return np.zeros_like(at)
        (found,) = torch.autograd.grad(out, leaf, allow_unused=True)
        return np.zeros_like(at) if found is None else found.double().numpy()

    return Backend("torch", array, torch.exp, gradient, 1e-4, True)


_MAKERS: dict[str, Callable[[], Backend]] = {"numpy": _numpy, "jax": _jax, "torch": _torch}


def to_numpy(value: Any) -> Array:
    """Whatever a function returned, as numbers: arrays, tensors with a gradient, lists of them."""
    if isinstance(value, (list, tuple)):
        return np.stack([to_numpy(part) for part in value])
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, float)


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def refuse(function: Function, tried: Sequence[str]) -> ConfigError:
    name = getattr(function, "__name__", type(function).__name__)
    return ConfigError(f"validate: calling {name} failed with {'; with '.join(dict.fromkeys(tried))}")
