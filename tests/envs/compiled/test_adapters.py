"""Environments in the style of gymnax and brax, written here in a few lines, through the pure protocol."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import make_engine
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.compiled import protocol
from gymnasium_solver.envs.compiled.adapters import adapted
from gymnasium_solver.envs.compiled.purity import require_pure
from gymnasium_solver.envs.compiled.styles import style_of
from gymnasium_solver.errors import ConfigError

LIMIT = 4


# --- gymnax ----------------------------------------------------------------------------------------------------------


class Params(NamedTuple):
    size: float = 3.0
    max_steps_in_episode: int = LIMIT

    def replace(self, **fields: Any) -> Params:
        return self._replace(**fields)


class Walker(NamedTuple):
    x: Any
    time: Any


class Walk:
    """One step to the right or to the left; over at the edge, and after a while. Their spaces are not Gymnasium's."""

    class Line:
        low, high, shape = -10.0, 10.0, (1,)

    class Two:
        n = 2

    @property
    def default_params(self) -> Params:
        return Params()

    def observation_space(self, params: Params) -> Any:
        return self.Line()

    def action_space(self, params: Params) -> Any:
        return self.Two()

    def reset_env(self, key: Any, params: Params) -> tuple[Any, Walker]:
        state = Walker(jax.random.randint(key, (), 0, 2), 0)
        return self._seen(state), state

    def step_env(self, key: Any, state: Walker, action: Any, params: Params) -> tuple[Any, ...]:
        state = Walker(state.x + 2 * action - 1, state.time + 1)
        return self._seen(state), state, jnp.float32(state.x), self.is_terminal(state, params), {"discount": 1.0}

    def is_terminal(self, state: Walker, params: Params) -> Any:
        return (jnp.abs(state.x) >= params.size) | (state.time >= params.max_steps_in_episode)

    def _seen(self, state: Walker) -> Any:
        return jnp.array([state.x], jnp.float32)


class WalkWithoutIsTerminal(Walk):
    """Nobody can tell why it is over."""

    @property
    def is_terminal(self) -> Any:
        raise AttributeError("is_terminal")

    def step_env(self, key: Any, state: Walker, action: Any, params: Params) -> tuple[Any, ...]:
        state = Walker(state.x + 2 * action - 1, state.time + 1)
        return self._seen(state), state, 1, state.time >= params.max_steps_in_episode, {}


# --- brax ------------------------------------------------------------------------------------------------------------


class Slide(NamedTuple):
    obs: Any
    reward: Any
    done: Any  # a float, as theirs
    info: dict[str, Any]


class Sled:
    """A sled is pushed along a line, and over the edge it is over."""

    observation_size = 2
    action_size = 1

    def reset(self, rng: Any) -> Slide:
        return Slide(jax.random.uniform(rng, (2,)), jnp.float32(0), jnp.float32(0), {})

    def step(self, state: Slide, action: Any) -> Slide:
        speed = state.obs[1] + action[0]
        x = state.obs[0] + speed
        return Slide(jnp.array([x, speed]), -jnp.abs(x), jnp.float32(jnp.abs(x) > 3), state.info)


class LimitedSled(Sled):
    """As within their EpisodeWrapper."""

    episode_length = LIMIT

    def reset(self, rng: Any) -> Slide:
        return super().reset(rng)._replace(info={"steps": jnp.float32(0), "truncation": jnp.float32(0)})

    def step(self, state: Slide, action: Any) -> Slide:
        after = super().step(state, action)
        steps = state.info["steps"] + 1
        is_cut = (steps >= LIMIT) & (after.done == 0)
        info = {"steps": steps, "truncation": jnp.float32(is_cut)}
        return after._replace(done=jnp.where(steps >= LIMIT, 1.0, after.done), info=info)


# --- both ------------------------------------------------------------------------------------------------------------

ENVIRONMENTS = (Walk, WalkWithoutIsTerminal, Sled, LimitedSled)


@pytest.mark.parametrize("made", ENVIRONMENTS)
def test_they_are_recognised_and_pure(made: Any) -> None:
    assert style_of(made) == style_of(made()) == ("gymnax" if issubclass(made, Walk) else "brax")
    require_pure(adapted(made(), made.__name__), made.__name__)


def test_what_has_neither_style_is_not_taken_for_one() -> None:
    class Half:
        reset = step = None

    assert style_of(Half()) is None
    with pytest.raises(ConfigError, match=r"not a gymnasium\.Env or a pure environment"):
        build_env(PPOConfig(env_id=f"{__name__}:NOTHING"))


NOTHING = dict


def episode(environment: Any, actions: list[Any]) -> list[protocol.Outcome]:
    state, _ = protocol.begin(environment, protocol.draw_keys(np.random.default_rng(1), ()))
    outcomes = []
    for i, action in enumerate(actions):
        outcomes.append(
            protocol.step(environment, state, jnp.asarray(action), protocol.draw_keys(np.random.default_rng(i), ()))
        )
        state = outcomes[-1].state
    return outcomes


def test_their_time_limit_is_a_truncation_where_an_ending_can_be_told_from_it() -> None:
    environment = adapted(Walk(), "Walk")
    assert environment.max_episode_steps == LIMIT  # type: ignore[attr-defined]
    idle = episode(environment, [0, 1] * 4)
    assert not any(bool(outcome.terminated) for outcome in idle), "past the limit, but not at the edge"
    fallen = episode(environment, [1, 1, 1])
    edge = [abs(float(outcome.observation[0])) >= 3 for outcome in fallen]
    assert [bool(outcome.terminated) for outcome in fallen] == edge and any(edge)
    assert float(fallen[-1].reward) == float(fallen[-1].observation[0])


def test_where_it_cannot_be_told_the_limit_is_an_ending() -> None:
    environment = adapted(WalkWithoutIsTerminal(), "Walk")
    assert environment.max_episode_steps is None  # type: ignore[attr-defined]
    assert [bool(outcome.terminated) for outcome in episode(environment, [0, 1, 0, 1])] == [False] * 3 + [True]


def test_an_episode_wrapper_around_brax() -> None:
    environment = adapted(LimitedSled(), "Sled")
    assert environment.max_episode_steps == LIMIT  # type: ignore[attr-defined]
    still = episode(environment, [[-1.0], [0.5], [0.0], [0.0], [0.0]])
    assert not any(bool(outcome.terminated) for outcome in still[:LIMIT])
    pushed = episode(environment, [[1.0]] * 3)
    assert bool(pushed[-1].terminated) and abs(float(pushed[-1].observation[0])) > 3


def test_spaces_become_gymnasiums() -> None:
    walk, sled = adapted(Walk(), "Walk"), adapted(Sled(), "Sled")
    assert walk.observation_space == spaces.Box(-10, 10, (1,), np.float32)
    assert walk.action_space == spaces.Discrete(2)
    assert sled.observation_space == spaces.Box(-np.inf, np.inf, (2,), np.float32)
    assert sled.action_space == spaces.Box(-1, 1, (1,), np.float32)

    class Odd(Walk):
        def action_space(self, params: Params) -> Any:
            return object()

    with pytest.raises(ConfigError, match=r"Odd has a object space, .*; wrap it"):
        adapted(Odd(), "Odd")


@pytest.mark.parametrize("made", [Walk, LimitedSled])
def test_they_run_by_name_on_the_host_and_compiled(made: Any) -> None:
    config = PPOConfig(env_id=f"{__name__}:{made.__name__}")
    env = build_env(config)
    env.reset(seed=0)
    still: Any = np.zeros(1, np.float32)
    cuts = [env.step(i % 2 if made is Walk else still)[2:4] for i in range(LIMIT)]
    assert cuts[-1][1] and not any(cut for _, cut in cuts[:-1])
    with pytest.raises(ConfigError, match=f"itself ends after {LIMIT} steps; use at most {LIMIT}"):
        build_env(config.model_copy(update={"max_episode_steps": LIMIT + 1}))
    engine = make_engine(config.model_copy(update={"engine": "compiled"}), 2)
    assert (engine.spec.engine, engine.spec.max_episode_steps) == ("compiled", LIMIT)
