"""What keeps an environment from being compiled, said in one sentence before anything is trained or written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np
from gymnasium import spaces
from jax.extend.core import jaxpr_as_fun

from gymnasium_solver.envs.compiled.keeping import changed, held
from gymnasium_solver.envs.compiled.protocol import PureEnvironment, threshold, time_limit
from gymnasium_solver.envs.compiled.styles import METHODS
from gymnasium_solver.envs.faults import place_of
from gymnasium_solver.errors import ConfigError

_ARGUMENTS = {
    "initial": ("rng",),
    "transition": ("state", "action", "rng"),
    "observation": ("state", "rng"),
    "reward": ("state", "action", "next_state", "rng"),
    "terminal": ("state", "rng"),
}


def require_pure(environment: PureEnvironment, name: str) -> None:
    """ConfigError, naming the method and the line, unless all five methods are pure, traceable and of fixed shapes."""
    _require_methods(environment, name)
    _require_spaces(environment, name)
    time_limit(environment, name)
    threshold(environment, name)
    key = jax.eval_shape(lambda: jax.random.PRNGKey(0))
    action = _example(environment.action_space)
    state = _traced(environment, name, "initial", key)
    after = _traced(environment, name, "transition", state, action, key)
    _require_same_structure(name, state, after)
    _require_observation(environment, name, _traced(environment, name, "observation", state, key))
    _require_scalar(name, "reward", _traced(environment, name, "reward", state, action, after, key))
    _require_scalar(name, "terminal", _traced(environment, name, "terminal", state, key))


def _require_methods(environment: Any, name: str) -> None:
    for method in METHODS["pure"]:
        function = getattr(environment, method, None)
        wanted = f"{method}({', '.join(_ARGUMENTS[method])})"
        if not callable(function):
            raise ConfigError(f"env_id: {name} has no {wanted}, which a pure environment needs; write it")
        try:
            inspect.signature(function).bind(*_ARGUMENTS[method])
        except TypeError:
            raise ConfigError(
                f"env_id: {name}: {method}{inspect.signature(function)} is called with other arguments; write {wanted}"
            ) from None


def _require_spaces(environment: Any, name: str) -> None:
    for attribute, served, example in (
        ("observation_space", _is_served_observation, "Box(-1, 1, (4,)) or Discrete(4)"),
        ("action_space", _is_served_action, "Discrete(2), MultiDiscrete([2, 3]) or Box(-1, 1, (2,))"),
    ):
        space = getattr(environment, attribute, None)
        if not isinstance(space, gym.Space):
            raise ConfigError(
                f"env_id: {name} needs a Gymnasium space as its {attribute}, and has "
                f"{'none' if space is None else f'a {type(space).__name__}'}; set it, for example to {example}"
            )
        if not served(space):
            raise ConfigError(
                f"env_id: {name} has {space} as its {attribute}, which the compiled engine does not serve; make it "
                f"{example}, with float32 as the type of numbers"
            )


def _is_served_observation(space: gym.Space) -> bool:
    return isinstance(space, spaces.Discrete) or (isinstance(space, spaces.Box) and space.dtype.kind == "f")


def _is_served_action(space: gym.Space) -> bool:
    return isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.Box))


def _example(space: gym.Space) -> jax.ShapeDtypeStruct:
    kind = np.float32 if isinstance(space, spaces.Box) and space.dtype.kind == "f" else np.int32
    return jax.ShapeDtypeStruct(space.shape or (), kind)


def _traced(environment: Any, name: str, method: str, *arguments: Any) -> Any:
    """Shapes and types that the method returns; it is traced twice, since what is pure does the same twice."""
    first = _trace(environment, name, method, arguments)
    before = held(environment)
    second = _trace(environment, name, method, arguments)
    kept = changed(before, held(environment))
    if kept is not None:
        raise ConfigError(
            f"env_id: {name} is not pure: {method}() changes {kept}, which would happen once and never again "
            "when it runs compiled; keep it in the state that initial() and transition() return"
        )
    if _written_out(first) != _written_out(second) and _results_differ(first, second, arguments):
        raise ConfigError(
            f"env_id: {name} is not pure: {method}() gives different results for the same arguments; draw all "
            "randomness from rng with jax.random, and use no clock and no NumPy generator"
        )
    return first.shapes


class _Trace(NamedTuple):
    program: Any
    shapes: Any


def _trace(environment: Any, name: str, method: str, arguments: tuple[Any, ...]) -> _Trace:
    function: Callable[..., Any] = getattr(environment, method)
    try:
        # A new function each time: nothing is cached.
        traced = _Trace(*jax.make_jaxpr(lambda *given: function(*given), return_shape=True)(*arguments))
    except Exception as error:
        place = place_of(error)
        where = f"{method}() ({place})" if place else f"{method}()"
        raise ConfigError(f"env_id: {name} cannot be compiled: {where} {_complaint(error)}") from error
    if any(isinstance(constant, jax.core.Tracer) for constant in traced.program.consts):
        raise ConfigError(f"env_id: {name} is not pure: {method}() {_KEPT}")
    return traced


_KEPT = "uses a value that an earlier call kept outside of what it returned; put it into the state"


def _complaint(error: Exception) -> str:
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "hands a value that is known only when it runs to NumPy; use jax.numpy there"
    if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError)):
        return (
            "needs in Python (if, while, and, or, int, float, range, the index of a list) a value that is known only "
            "when it runs; use jax.numpy.where, jax.lax.cond, jax.lax.fori_loop or an array there"
        )
    if isinstance(error, jax.errors.UnexpectedTracerError):
        return _KEPT
    first = (str(error).splitlines() or [""])[0]
    if "not a valid JAX type" in first:
        return "returns something that is neither a number nor an array; return a pytree of arrays"
    return f"raises {type(error).__name__}: {first}; correct it there"


def _written_out(traced: _Trace) -> tuple[str, list[bytes]]:
    """The program, numbers in full; arrays that it takes from around it apart."""
    return str(traced.program.jaxpr), [_raw(constant).tobytes() for constant in traced.program.consts]


def _results_differ(first: _Trace, second: _Trace, arguments: tuple[Any, ...]) -> bool:
    """The programs do; whether their results do is seen by running both."""
    filled = jax.tree.leaves([_filled(argument) for argument in arguments])
    one, other = (list(map(_raw, jaxpr_as_fun(traced.program)(*filled))) for traced in (first, second))
    return not all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, other, strict=True))


def _raw(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _filled(argument: Any) -> Any:
    def fill(leaf: Any) -> Any:
        return jax.random.key(0) if _is_key(leaf) else jax.numpy.ones(leaf.shape, leaf.dtype)

    return jax.tree.map(fill, argument)


def _is_key(leaf: Any) -> bool:
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _require_same_structure(name: str, state: Any, after: Any) -> None:
    remedy = "return the same structure, shapes and types of numbers from both"
    was_structure, structure = str(jax.tree.structure(state)), str(jax.tree.structure(after))
    if was_structure != structure:
        raise ConfigError(
            f"env_id: {name}: transition() returns a state of another structure than initial() "
            f"({structure}, was {was_structure}); {remedy}"
        )
    for (path, was), (_, now) in zip(*map(jax.tree.leaves_with_path, (state, after)), strict=True):
        if (was.shape, was.dtype) != (now.shape, now.dtype):
            raise ConfigError(
                f"env_id: {name}: transition() turns state{jax.tree_util.keystr(path)} from {_written(was)} into "
                f"{_written(now)}; {remedy}"
            )


def _require_observation(environment: PureEnvironment, name: str, seen: Any) -> None:
    space = environment.observation_space
    kinds = "iu" if isinstance(space, spaces.Discrete) else "fiub"
    if not isinstance(seen, jax.ShapeDtypeStruct) or seen.shape != space.shape or seen.dtype.kind not in kinds:
        raise ConfigError(
            f"env_id: {name}: observation() returns {_written(seen)}, and observation_space is {space}; "
            "change one of them so that they agree"
        )


def _require_scalar(name: str, method: str, value: Any) -> None:
    if not isinstance(value, jax.ShapeDtypeStruct) or value.shape != () or value.dtype.kind not in "fiub":
        raise ConfigError(
            f"env_id: {name}: {method}() returns {_written(value)}, and one number is wanted; return a scalar, "
            "of shape ()"
        )


def _written(value: Any) -> str:
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{value.dtype}{list(value.shape)}"
    return f"a structure ({jax.tree.structure(value)})"
