"""A user's function: found, called with NumPy, JAX or torch arrays, differentiated by what its library offers."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gymnasium_solver import trust
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance.report import describe

Array = np.ndarray
Function = Callable[..., Any]
Settled = TypeVar("Settled")

FRAMEWORKS = ("torch", "jax", "numpy")


def load(reference: str) -> Function:
    """`module:function`, or path/to/file.py:function."""
    place, _, name = reference.rpartition(":")
    if not place or not name:
        raise ConfigError(
            f"validate: {reference!r} names no function; write module:function, or path/to/file.py:function"
        )
    is_file = place.endswith(".py")
    if is_file and not Path(place).expanduser().is_file():
        raise ConfigError(f"validate: there is no file {place}")
    module = (
        trust.load_file(Path(place).expanduser(), "validate") if is_file else trust.load_module(reference, "validate")
    )
    function = getattr(module, name, None)
    if function is None:
        raise ConfigError(f"validate: {place} has no {name!r}")
    if not callable(function):
        raise ConfigError(f"validate: {reference} is {type(function).__name__}, not a function")
    return function


class Backend(NamedTuple):
    name: str
    array: Callable[[Array], Any]
    exp: Callable[[Any], Any]
    gradient: Callable[[Function, Array], Array]  # of a scalar function, by one array
    tolerance: float
    detaches: bool  # whether the library can hold back gradients


class Subject(NamedTuple):
    """A function with the meaning of its parameters, and the kind of arrays it is called with."""

    function: Function
    parameters: Mapping[str, str]  # our name → the function's
    backend: Backend

    def takes(self, *names: str) -> bool:
        return all(name in self.parameters for name in names)

    def native(self, value: Any) -> Any:
        return self.backend.array(value) if isinstance(value, np.ndarray) else value

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """`given` by our names; NumPy arrays are passed as the library's own, everything else as it is."""
        named = {self.parameters[ours]: self.native(value) for ours, value in given.items() if ours in self.parameters}
        signature = inspect.signature(self.function).parameters
        leading = [name for name in signature if signature[name].kind is inspect.Parameter.POSITIONAL_ONLY]
        return self.function(*[named.pop(name) for name in leading if name in named], **named)


def settle(
    function: Function,
    framework: str | None,
    ways: Callable[[Backend], list[tuple[str, Settled]]],
    is_right: Callable[[Settled], bool],
) -> Settled:
    """The first way to call the function that is right; else the first that runs, with the first library it takes."""
    tried: list[str] = []
    for backend in _backends(function, framework):
        runs: list[Settled] = []
        for name, candidate in ways(backend):
            try:
                right = is_right(candidate)
            except ConfigError:
                raise
            except Exception as error:  # anything may happen in someone else's function
                tried.append(f"{backend.name} arrays{name}: {describe(error)}")
                continue
            if right:
                return candidate
            runs.append(candidate)
        if runs:  # another library would not make it right
            return runs[0]
    shown = "; with ".join(list(dict.fromkeys(tried))[:3])
    raise ConfigError(f"validate: calling {getattr(function, '__name__', function)} failed with {shown}")


def _backends(function: Function, framework: str | None) -> Iterator[Backend]:
    """The library that the function seems to be written for, then the others that are installed."""
    if framework is not None and framework not in FRAMEWORKS:
        raise ConfigError(f"validate: --framework {framework} is not one of {', '.join(FRAMEWORKS)}")
    makers = {"torch": _torch, "jax": _jax, "numpy": _numpy}
    for name in [framework] if framework else sorted(FRAMEWORKS, key=lambda name: name != _guess(function)):
        if importlib.util.find_spec(name) is not None:
            yield makers[name]()
        elif framework:
            raise ConfigError(f"validate: --framework {framework}: {framework} is not installed")


def _guess(function: Function) -> str:
    used = set(_libraries(function, []))
    around = {_root(value) for value in getattr(inspect.unwrap(function), "__globals__", {}).values()}
    return next((name for found in (used, around) for name in FRAMEWORKS if name in found), "numpy")


def _libraries(function: Function, seen: list[Function]) -> Iterator[str]:
    """Modules that a function uses, itself or through functions that it calls by their name."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not inspect.isfunction(plain) or plain in seen:
        return
    seen.append(plain)
    names = inspect.getclosurevars(plain)
    yield from names.unbound  # modules that it imports itself are among them
    for value in (*names.globals.values(), *names.nonlocals.values()):
        yield _root(value)
        if inspect.isroutine(value):
            yield from _libraries(value, seen)


def _root(value: Any) -> str:
    return value.__name__.partition(".")[0] if isinstance(value, ModuleType) else ""


def differences(function: Function, at: Array, step: float = 1e-3) -> Array:
    """Central ones; the step is wide enough for functions that compute in 32 bits."""
    moves = step * np.eye(at.size).reshape(at.size, *at.shape)
    slopes = [(float(function(at + move)) - float(function(at - move))) / (2 * step) for move in moves]
    return np.reshape(slopes, at.shape)


def _numpy() -> Backend:
    return Backend("numpy", np.copy, np.exp, differences, 2e-4, False)


def _jax() -> Backend:
    import jax
    import jax.numpy as jnp

    def array(x: Array) -> Any:
        return jnp.asarray(x, jnp.float32 if x.dtype.kind == "f" else x.dtype)

    def gradient(function: Function, at: Array) -> Array:
        try:
            return np.asarray(jax.grad(lambda x: jnp.asarray(function(x), jnp.float32))(array(at)), float)
        except (jax.errors.JAXTypeError, TypeError):  # it leaves JAX on its way
            return differences(lambda x: function(array(x)), at)

    return Backend("jax", array, jnp.exp, gradient, 1e-4, True)


def _torch() -> Backend:
    torch = importlib.import_module("torch")

    def array(x: Array) -> Any:
        return torch.tensor(x, dtype=torch.float32 if x.dtype.kind == "f" else None)

    def gradient(function: Function, at: Array) -> Array:
        leaf = array(at).requires_grad_()
        out = function(leaf)
        if not getattr(out, "requires_grad", False):
            return np.zeros_like(at)
        (found,) = torch.autograd.grad(out, leaf, allow_unused=True)
        return np.zeros_like(at) if found is None else found.double().numpy()

    return Backend("torch", array, torch.exp, gradient, 1e-4, True)


def to_numpy(value: Any) -> Array:
    """Whatever a function returned, as numbers: arrays, tensors with a gradient, lists of them."""
    if isinstance(value, (list, tuple)):
        return np.stack([to_numpy(part) for part in value])
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value, float)
