"""What cannot be compiled is refused in one sentence that names the method, the line and the remedy."""

from __future__ import annotations

import re
import time
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from gymnasium_solver.envs.compiled.purity import require_pure
from gymnasium_solver.errors import ConfigError

HERE = "test_purity.py"


class Walk:
    """Pure: one number goes up or down."""

    observation_space: Any = spaces.Box(-10, 10, (1,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def initial(self, rng: Any) -> Any:
        return {"x": jax.random.uniform(rng), "time": 0}

    def transition(self, state: Any, action: Any, rng: Any) -> Any:
        return {"x": state["x"] + 2.0 * action - 1, "time": state["time"] + 1}

    def observation(self, state: Any, rng: Any) -> Any:
        return state["x"][None]

    def reward(self, state: Any, action: Any, next_state: Any, rng: Any) -> Any:
        return -jnp.abs(next_state["x"])

    def terminal(self, state: Any, rng: Any) -> Any:
        return state["time"] >= 5


def altered(**members: Any) -> Any:
    return type("Altered", (Walk,), members)()


def refusal(environment: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        require_pure(environment, "mine:Walk")
    sentence = str(refused.value)
    assert sentence.startswith("env_id: mine:Walk") and "\n" not in sentence and "; " in sentence
    return sentence


def test_a_pure_one_is_accepted() -> None:
    require_pure(Walk(), "mine:Walk")


@pytest.mark.parametrize(
    "space",
    [spaces.Discrete(2), spaces.MultiDiscrete([2, 3]), spaces.Box(-1, 1, (2,)), spaces.Box(0, 5, (2,), np.int32)],
)
def test_served_actions(space: Any) -> None:
    require_pure(altered(action_space=space, transition=lambda self, state, action, rng: state), "mine:Walk")


def _if(self: Any, state: Any, action: Any, rng: Any) -> Any:
    if state["x"] > 0:
        return state
    return state


def _loop(self: Any, state: Any, action: Any, rng: Any) -> Any:
    for _ in range(action):
        pass
    return state


def _numpy(self: Any, state: Any, action: Any, rng: Any) -> Any:
    return {**state, "x": np.sin(state["x"])}


def _float(self: Any, state: Any, rng: Any) -> Any:
    return jnp.array([float(state["x"])])


def _raises(self: Any, state: Any, rng: Any) -> Any:
    return state["y"]


@pytest.mark.parametrize(
    ("method", "function", "said"),
    [
        ("transition", _if, "jax.numpy.where"),
        ("transition", _loop, "fori_loop"),
        ("transition", _numpy, "to NumPy; use jax.numpy"),
        ("observation", _float, "float"),
        ("observation", _raises, "raises KeyError: 'y'"),
        ("initial", lambda self, rng: {"x": "left"}, "neither a number nor an array"),
    ],
)
def test_what_cannot_be_traced_is_named_with_its_line(method: str, function: Any, said: str) -> None:
    sentence = refusal(altered(**{method: function}))
    assert f"{method}()" in sentence and said in sentence
    if method != "initial":
        line = int(re.search(rf"{HERE}:(\d+)", sentence)[1])  # type: ignore[index]
        first = function.__code__.co_firstlineno
        assert first < line <= first + 2


@pytest.mark.parametrize(
    ("transition", "said"),
    [
        (lambda self, state, action, rng: {"x": state["x"]}, "another structure"),
        (
            lambda self, state, action, rng: {**state, "x": state["x"][None]},
            "state['x'] from float32[] into float32[1]",
        ),
        (lambda self, state, action, rng: {**state, "x": action}, "state['x'] from float32[] into int32[]"),
    ],
)
def test_a_state_that_changes_shape_is_refused(transition: Any, said: str) -> None:
    assert said in refusal(altered(transition=transition))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (
            {"observation": lambda self, state, rng: state["x"]},
            "observation() returns float32[], and observation_space",
        ),
        ({"observation": lambda self, state, rng: state}, "observation() returns a structure"),
        ({"observation_space": spaces.Discrete(3), "observation": lambda self, state, rng: state["x"]}, "Discrete(3)"),
        ({"reward": lambda self, *given: jnp.zeros(2)}, "reward() returns float32[2]"),
        ({"terminal": lambda self, *given: jnp.zeros(1, bool)}, "terminal() returns bool[1]"),
        ({"terminal": lambda self, *given: None}, "terminal() returns a structure"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_refused(members: dict[str, Any], said: str) -> None:
    assert said in refusal(altered(**members))


def _counts(self: Any, state: Any, action: Any, rng: Any) -> Any:
    self.count = getattr(self, "count", 0) + 1
    return state


def _collects(self: Any, state: Any, action: Any, rng: Any) -> Any:
    self.seen.append(1)
    return state


def _writes(self: Any, state: Any, action: Any, rng: Any) -> Any:
    self.table[0] += 1
    return state


def _on_class(self: Any, state: Any, action: Any, rng: Any) -> Any:
    type(self).count = getattr(self, "count", 0) + 1
    return state


KEPT: list[Any] = []


def _in_module(self: Any, state: Any, action: Any, rng: Any) -> Any:
    KEPT.append(state["x"])
    return state


@pytest.mark.parametrize(
    ("transition", "said"),
    [
        (_counts, "self.count"),
        (_collects, "self.seen"),
        (_writes, "self.table"),
        (_on_class, "Altered.count"),
        (_in_module, "the module's KEPT"),
    ],
)
def test_what_is_kept_outside_of_the_state_is_refused(transition: Any, said: str) -> None:
    environment = altered(transition=transition)
    environment.seen, environment.table = [], np.zeros(3)
    sentence = refusal(environment)
    assert f"transition() changes {said}" in sentence and "keep it in the state" in sentence


def test_using_what_another_method_kept_is_refused() -> None:
    kept = []

    def transition(self: Any, state: Any, action: Any, rng: Any) -> Any:
        kept[:] = [state["x"]]
        return state

    environment = altered(transition=transition, reward=lambda self, *given: kept[0] * 2)
    assert "reward()" in refusal(environment) and "an earlier call kept" in refusal(environment)


def test_a_constant_worked_out_once_is_no_impurity() -> None:
    class Table(Walk):
        @cached_property
        def table(self) -> Any:
            return np.arange(3.0)

        def reward(self, *given: Any) -> Any:
            return jnp.float32(self.table.sum())

    require_pure(Table(), "mine:Walk")


GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    "drawn",
    [lambda: GENERATOR.normal(), lambda: jnp.asarray(GENERATOR.normal(size=300))[7], lambda: time.perf_counter() % 1],
    ids=["number", "array", "clock"],
)
def test_different_results_for_the_same_arguments_are_refused(drawn: Any) -> None:
    sentence = refusal(altered(reward=lambda self, *given: jnp.asarray(drawn(), jnp.float32) % 1))
    assert "reward() gives different results for the same arguments" in sentence


def test_a_callback_that_is_pure_is_no_impurity() -> None:
    """Traced twice it is two programs, with the same results."""

    def observation(self: Any, state: Any, rng: Any) -> Any:
        shape = jax.ShapeDtypeStruct((1,), jnp.float32)
        return jax.pure_callback(lambda x: np.float32([x]), shape, state["x"], vmap_method="sequential")

    require_pure(altered(observation=observation), "mine:Walk")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"observation_space": None}, "needs a Gymnasium space as its observation_space"),
        ({"observation_space": spaces.Box(0, 255, (4,), np.uint8)}, "does not serve"),
        ({"observation_space": spaces.Dict({"a": spaces.Discrete(2)})}, "does not serve"),
        ({"action_space": spaces.MultiBinary(2)}, "does not serve"),
        ({"max_episode_steps": 0}, "max_episode_steps 0"),
        ({"max_episode_steps": 2.5}, "max_episode_steps 2.5"),
        ({"reward_threshold": "high"}, "reward_threshold 'high'"),
        ({"terminal": None}, "has no terminal(state, rng)"),
        ({"reward": lambda self, state: 0.0}, "write reward(state, action, next_state, rng)"),
    ],
)
def test_what_is_missing_or_not_served_is_said(members: dict[str, Any], said: str) -> None:
    assert said in refusal(altered(**members))
