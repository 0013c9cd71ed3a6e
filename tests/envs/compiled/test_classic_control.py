"""What lets an id into the table of the compiled engine: from the same state, the same action leads to the same step.

Gymnasium's environments are put into thousands of states, drawn from the whole of what an episode can reach. They
compute in double precision, ours in single, so a comparison that falls within rounding of a threshold may go either
way: such states are left out by the distance from it, and counted, so that they stay few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium as gym
import jax
import numpy as np
import pytest
from scipy.stats import kstest

from gymnasium_solver.envs import named
from gymnasium_solver.envs.compiled import classic_control, protocol
from gymnasium_solver.envs.compiled.choice import VERIFIED
from gymnasium_solver.envs.compiled.purity import require_pure

PI = np.pi
N = 4000


class Case(NamedTuple):
    state: Callable[..., Any]  # ours, of columns
    low: tuple[float, ...]  # of the states to compare from
    high: tuple[float, ...]
    first_low: tuple[float, ...]  # of the states an episode begins with
    first_high: tuple[float, ...]
    margin: Callable[[np.ndarray], np.ndarray]  # distance of Gymnasium's next states from where a rule decides
    planted: tuple[str, float]  # a slightly wrong constant that the comparison has to notice
    tolerance: float = 2e-6
    rounding: float = 1e-5  # nearer to a threshold than this, rounding decides


def _cart_pole_margin(after: np.ndarray) -> np.ndarray:
    return np.minimum(np.abs(np.abs(after[:, 0]) - 2.4), np.abs(np.abs(after[:, 2]) - PI / 15))


def _acrobot_margin(after: np.ndarray) -> np.ndarray:
    height = np.abs(-np.cos(after[:, 0]) - np.cos(after[:, 0] + after[:, 1]) - 1)
    return np.minimum(height, 1)


def _valley_margin(goal: float) -> Callable[[np.ndarray], np.ndarray]:
    def margin(after: np.ndarray) -> np.ndarray:
        at_wall = after[:, 0] == -1.2  # there the speed is set to zero, not nearly
        return np.where(at_wall, 1, np.minimum(np.abs(after[:, 0] - goal), np.abs(after[:, 0] + 1.2)))

    return margin


CASES = {
    "CartPole-v1": Case(
        classic_control.Cart,
        *((-2.45, -4, -0.22, -4), (2.45, 4, 0.22, 4)),
        *((-0.05,) * 4, (0.05,) * 4),
        _cart_pole_margin,
        ("gravity", 9.81),
    ),
    "Acrobot-v1": Case(
        classic_control.Links,
        *((-PI, -PI, -4 * PI, -9 * PI), (PI, PI, 4 * PI, 9 * PI)),
        *((-0.1,) * 4, (0.1,) * 4),
        _acrobot_margin,
        ("gravity", 9.81),
        tolerance=2e-4,  # at full speed four steps of Runge-Kutta amplify rounding a hundredfold
        rounding=1e-3,
    ),
    "MountainCar-v0": Case(
        classic_control.Car,
        *((-1.2, -0.07), (0.6, 0.07)),
        *((-0.6, 0), (-0.4, 0)),
        _valley_margin(0.5),
        ("slope", 0.00251),
    ),
    "MountainCarContinuous-v0": Case(
        classic_control.Car,
        *((-1.2, -0.07), (0.6, 0.07)),
        *((-0.6, 0), (-0.4, 0)),
        _valley_margin(0.45),
        ("force", 0.00151),
    ),
    "Pendulum-v1": Case(
        classic_control.Rod,
        *((-PI, -8), (PI, 8)),
        *((-PI, -1), (PI, 1)),
        lambda after: np.full(len(after), 1.0),
        ("gravity", 9.99),
    ),
}
every_id = pytest.mark.parametrize("env_id", VERIFIED)


def ours(env_id: str) -> Any:
    return named.environment(VERIFIED[env_id])()


def drawn_states(case: Case, n: int, rng: np.random.Generator) -> np.ndarray:
    """Half from everywhere, half near the beginning of an episode and with small speeds, where most steps are taken."""
    low, high = np.array(case.low), np.array(case.high)
    states = rng.uniform(low, high, (n, len(low)))
    states[n // 2 :] *= rng.uniform(0, 0.3, (n - n // 2, 1))
    return states.astype(np.float32)


def drawn_actions(space: gym.Space, n: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(space, gym.spaces.Discrete):
        return rng.integers(0, space.n, n).astype(np.int32)
    return rng.uniform(1.3 * space.low, 1.3 * space.high, (n, *space.shape)).astype(np.float32)  # some out of bounds


class Steps(NamedTuple):
    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray


@lru_cache
def gymnasium_steps(env_id: str) -> tuple[np.ndarray, np.ndarray, Steps, np.ndarray]:
    """States, actions, what came of them, and the states after them in Gymnasium's own precision."""
    env: Any = gym.make(env_id, disable_env_checker=True).unwrapped
    rng = np.random.default_rng(1)
    states, actions = drawn_states(CASES[env_id], N, rng), drawn_actions(env.action_space, N, rng)
    env.reset(seed=0)
    rows, after = [], []
    for state, action in zip(states.astype(np.float64), actions, strict=True):
        env.state = state.copy()
        if env_id == "CartPole-v1":
            env.steps_beyond_terminated = None
        obs, reward, terminated, _, _ = env.step(action)
        rows.append((obs.copy(), reward, terminated))
        after.append(np.array(env.state, np.float64))
    obs, reward, terminated = (np.array(column) for column in zip(*rows, strict=True))
    return states, actions, Steps(obs, reward, terminated), np.array(after)


def our_steps(environment: Any, case: Case, states: np.ndarray, actions: np.ndarray) -> Steps:
    keys = protocol.draw_keys(np.random.default_rng(0), (len(states),))
    step = jax.jit(jax.vmap(lambda state, action, key: protocol.step(environment, state, action, key)))
    outcome = step(case.state(*states.T), actions, keys)
    return Steps(*(np.asarray(column) for column in outcome[1:]))


def difference(env_id: str, environment: Any) -> str | None:
    """What is not Gymnasium's step; None if nothing is."""
    case = CASES[env_id]
    states, actions, want, after = gymnasium_steps(env_id)
    got = our_steps(environment, case, states, actions)
    clear = case.margin(after) > case.rounding
    assert clear.mean() > 0.99, "few states are so near to a threshold that rounding decides"
    apart = np.flatnonzero(clear & (got.terminated != want.terminated))
    if len(apart):
        return f"{len(apart)} endings differ, first from {states[apart[0]]}"
    for name in ("obs", "reward"):
        one, other = getattr(got, name)[clear].astype(np.float64), getattr(want, name)[clear]
        off = np.abs(one - other) / (1 + np.abs(other))
        if off.max() > case.tolerance:
            return f"{name} is off by up to {off.max():.2g}"
    return None


@every_id
def test_every_step_is_the_step_gymnasium_takes(env_id: str) -> None:
    assert difference(env_id, ours(env_id)) is None


@every_id
def test_the_comparison_notices_a_slightly_different_rule(env_id: str) -> None:
    environment = ours(env_id)
    name, value = CASES[env_id].planted
    assert getattr(environment, name) != value
    setattr(environment, name, value)
    assert difference(env_id, environment) is not None


@pytest.mark.parametrize(
    ("env_id", "name", "value"),
    [
        ("CartPole-v1", "max_angle", 12.1 * PI / 180),
        ("Acrobot-v1", "max_speed2", 8.9 * PI),
        ("MountainCar-v0", "goal", 0.505),
        ("MountainCarContinuous-v0", "goal", 0.455),
        ("Pendulum-v1", "max_torque", 2.1),
    ],
)
def test_the_comparison_notices_a_slightly_different_bound(env_id: str, name: str, value: float) -> None:
    environment = ours(env_id)
    setattr(environment, name, value)
    assert difference(env_id, environment) is not None


@every_id
def test_both_kinds_of_outcome_are_compared(env_id: str) -> None:
    terminated = gymnasium_steps(env_id)[2].terminated
    assert not terminated.all()
    assert terminated.sum() > 20 or env_id == "Pendulum-v1", "which never ends"


@every_id
def test_episodes_begin_as_gymnasiums_do(env_id: str) -> None:
    """Uniform within the bounds; the first observation follows from the state as Gymnasium's does."""
    case, environment = CASES[env_id], ours(env_id)
    begin = jax.jit(jax.vmap(lambda keys: protocol.begin(environment, keys)))
    state, obs = begin(protocol.draw_keys(np.random.default_rng(3), (N,)))
    env: Any = gym.make(env_id, disable_env_checker=True).unwrapped
    gymnasiums = [np.array(env.reset(seed=seed) and env.state, np.float64) for seed in range(300)]
    for values, theirs, low, high in zip(state, np.array(gymnasiums).T, case.first_low, case.first_high, strict=True):
        for sample in (np.asarray(values, np.float64), theirs):
            if low == high:
                assert np.all(sample == low)
            else:
                assert low <= sample.min() and sample.max() <= high
                assert kstest(sample, "uniform", (low, high - low)).pvalue > 1e-3
    for i in range(50):
        env.state = np.array([column[i] for column in state], np.float64)
        want = env._get_obs() if env_id == "Pendulum-v1" else env._get_ob() if env_id == "Acrobot-v1" else env.state
        np.testing.assert_allclose(obs[i], want, rtol=1e-6, atol=1e-6)


@every_id
def test_spaces_time_limit_and_threshold_are_the_registered_ones(env_id: str) -> None:
    environment, env = ours(env_id), gym.make(env_id)
    registered = gym.spec(env_id)
    assert environment.observation_space == env.observation_space
    assert environment.action_space == env.action_space
    assert environment.max_episode_steps == registered.max_episode_steps
    assert environment.reward_threshold == registered.reward_threshold


@every_id
def test_it_is_pure(env_id: str) -> None:
    require_pure(ours(env_id), env_id)


@pytest.mark.integration
@every_id
def test_whole_episodes_stay_within_the_space(env_id: str) -> None:
    """In single precision too, an episode is finite and inside the bounds until it ends."""
    environment = ours(env_id)

    @jax.jit
    @jax.vmap
    def episode(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        state, _ = protocol.begin(environment, keys[0])

        def one(state: Any, keys: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            choose = keys[0]  # a step has no use for this one
            if isinstance(environment.action_space, gym.spaces.Discrete):
                action = jax.random.randint(choose, (), 0, environment.action_space.n)
            else:
                action = jax.random.uniform(choose, environment.action_space.shape, minval=-2, maxval=2)
            outcome = protocol.step(environment, state, action, keys)
            return outcome.state, (outcome.observation, outcome.terminated)

        _, seen = jax.lax.scan(one, state, keys[1:])
        return seen

    keys = protocol.draw_keys(np.random.default_rng(1), (50, 1 + environment.max_episode_steps))
    obs, terminated = map(np.asarray, episode(keys))
    running = np.cumsum(terminated, axis=1) <= terminated  # up to and including the end
    space = environment.observation_space
    inside = (obs >= space.low - 1e-6) & (obs <= space.high + 1e-6)
    assert np.isfinite(obs[running]).all() and inside[running].all()
