"""What lets an id into the table of EnvPool: its observations, rewards and endings follow Gymnasium's rules.

Three kinds of proof, each with a control that has to fail it:
- where the observation tells the state: put Gymnasium's environment into it, take the same action, compare (exact);
- where everything is deterministic or tabular: compare the trajectory or the table (exact);
- Box2D: recompute the reward from successive observations (exact), and compare the distributions of observations,
  returns and lengths of whole episodes with two-sample tests (seeded, so the outcome is the same every time).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.box2d import bipedal_walker, lunar_lander
from scipy.stats import ks_2samp

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import VectorEngine, make_engine
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.envpool_engine import VERIFIED

pytest.importorskip("envpool")

pytestmark = pytest.mark.integration

SAME = 1e-4  # p-value below which two samples count as different; seeds are fixed, so nothing flickers


def config_of(env_id: str, **fields: Any) -> PPOConfig:
    return PPOConfig(env_id=env_id, n_envs=1, batch_size=1.0, **fields)


def pool_of(env_id: str, n_envs: int, **fields: Any) -> VectorEngine:
    return make_engine(config_of(env_id, engine="envpool", **fields), n_envs)


def gymnasium_of(env_id: str, n_envs: int, **fields: Any) -> VectorEngine:
    return make_engine(config_of(env_id, engine="gymnasium", vectorization="sync", **fields), n_envs)


def random_actions(engine: VectorEngine, rng: np.random.Generator) -> np.ndarray:
    action = engine.spec.action
    if action.kind == "discrete":
        return rng.integers(0, action.sizes[0], engine.n_envs).astype(np.int32)
    return rng.uniform(-1.2, 1.2, (engine.n_envs, action.dim)).astype(np.float32)


# --- the observation tells the state -----------------------------------------------------------------------------


def _acrobot(env: Any, obs: np.ndarray) -> None:
    c1, s1, c2, s2, v1, v2 = obs.astype(np.float64)
    env.state = np.array([np.arctan2(s1, c1), np.arctan2(s2, c2), v1, v2])


def _mountain_car(env: Any, obs: np.ndarray) -> None:
    env.state = tuple(obs.astype(np.float64))


def _pendulum(env: Any, obs: np.ndarray) -> None:
    cos, sin, velocity = obs.astype(np.float64)
    env.state = np.array([np.arctan2(sin, cos), velocity])


def _mujoco(env: Any, obs: np.ndarray) -> None:
    positions = np.concatenate([[0.0], obs[: env.model.nq - 1]])  # x is not observed, and matters to nothing
    env.set_state(positions, obs[env.model.nq - 1 :])


SET_STATE: dict[str, Callable[[Any, np.ndarray], None]] = {
    "Acrobot-v1": _acrobot,
    "MountainCar-v0": _mountain_car,
    "MountainCarContinuous-v0": _mountain_car,
    "Pendulum-v1": _pendulum,
    "HalfCheetah-v5": _mujoco,
    "Hopper-v5": _mujoco,
}

# Observations reach us as float32, so the state put into Gymnasium's environment is off by 1e-7 relative; contacts in
# MuJoCo and a double pendulum at full speed amplify that.
TOLERANCE = {"Acrobot-v1": 1e-4, "HalfCheetah-v5": 2e-2, "Hopper-v5": 2e-2}


def first_difference(env_id: str, altered: Callable[[Any], None] | None = None, steps: int = 60) -> str | None:
    """Step EnvPool at random, redo every step in Gymnasium's environment; say where they part."""
    pool = pool_of(env_id, 8)
    reference = build_env(config_of(env_id))
    reference.reset(seed=0)
    env = reference.unwrapped
    if altered is not None:
        altered(env)
    low, high = pool.spec.action.low, pool.spec.action.high
    rng = np.random.default_rng(5)
    tolerance = TOLERANCE.get(env_id, 1e-5)
    obs = pool.reset(11)[0].copy()
    ended = np.zeros(8, bool)
    for t in range(steps):
        action = random_actions(pool, rng)
        if t % 20 > 10 and pool.spec.action.kind == "box":
            action[:] = np.sign(action)  # full force for a while reaches states that noise does not
        after = pool.step(action)
        for i in np.flatnonzero(~ended):
            SET_STATE[env_id](env, obs[i])
            given = action[i] if low is None else (low + (np.clip(action[i], -1, 1) + 1) / 2 * (high - low))
            want_obs, want_reward, want_terminated, _, _ = env.step(given)
            off = np.abs(want_obs - after.obs[i]).max() / (1 + np.abs(want_obs).max())
            reward_off = abs(want_reward - after.reward[i]) / (1 + abs(want_reward))
            if off > tolerance or reward_off > tolerance:
                return f"step {t}: observation off by {off:.2g}, reward by {reward_off:.2g}"
            if want_terminated != after.terminated[i]:
                return f"step {t}: terminated is {after.terminated[i]}, Gymnasium says {want_terminated}"
        ended = after.terminated | after.truncated
        obs = after.obs.copy()
    pool.close()
    return None


@pytest.mark.parametrize("env_id", SET_STATE)
def test_every_step_is_the_step_gymnasium_takes(env_id: str) -> None:
    assert first_difference(env_id) is None


def _set(**attributes: Any) -> Callable[[Any], None]:
    def alter(env: Any) -> None:
        for name, value in attributes.items():
            assert hasattr(env, name), name
            setattr(env, name, value)

    return alter


@pytest.mark.parametrize(
    ("env_id", "altered"),
    [
        ("Acrobot-v1", _set(LINK_MASS_1=1.05)),
        ("MountainCar-v0", _set(gravity=0.0026)),
        ("MountainCarContinuous-v0", _set(power=0.0016)),
        ("Pendulum-v1", _set(g=9.9)),
        ("HalfCheetah-v5", _set(_ctrl_cost_weight=0.2)),
        ("Hopper-v5", _set(_healthy_reward=1.1)),
        ("Hopper-v5", _set(_healthy_z_range=(1.2, float("inf")))),
    ],
)
def test_the_comparison_notices_a_slightly_different_rule(env_id: str, altered: Callable[[Any], None]) -> None:
    assert first_difference(env_id, altered) is not None


@pytest.mark.parametrize("env_id", ["MountainCar-v0", "MountainCarContinuous-v0"])
def test_reaching_the_goal_ends_the_episode_by_the_same_rule(env_id: str) -> None:
    """Pushing along with the velocity gets there, which random actions never do."""
    pool = pool_of(env_id, 8)
    env = build_env(config_of(env_id)).unwrapped
    obs = pool.reset(3)[0].copy()
    ended = np.zeros(8, bool)
    endings = 0
    for _ in range(200):
        push = np.where(obs[:, 1] < 0, -1, 1)
        action = (push + 1).astype(np.int32) if env_id == "MountainCar-v0" else push[:, None].astype(np.float32)
        after = pool.step(action)
        for i in np.flatnonzero(~ended):
            _mountain_car(env, obs[i])
            _, reward, terminated, _, _ = env.step(action[i])
            assert terminated == after.terminated[i] and abs(reward - after.reward[i]) < 1e-4
            endings += terminated
        ended = after.terminated | after.truncated
        obs = after.obs.copy()
    assert endings >= 8


# --- tables and deterministic trajectories -------------------------------------------------------------------------


def frozen_lake_disagreement(env_kwargs: dict[str, Any]) -> str | None:
    """Count EnvPool's transitions, compare with Gymnasium's table; a G-test on every row that was seen often."""
    table = build_env(config_of("FrozenLake-v1", env_kwargs=env_kwargs)).unwrapped.P
    pool = pool_of("FrozenLake-v1", 256)
    rng = np.random.default_rng(1)
    state = pool.reset(1)[0].argmax(axis=1)
    ended = np.zeros(256, bool)
    seen: dict[tuple[int, int], list[int]] = {}
    for _ in range(400):
        action = random_actions(pool, rng)
        after = pool.step(action)
        successor = after.obs.argmax(axis=1)
        for i in np.flatnonzero(~ended):
            row = table[int(state[i])][int(action[i])]
            outcome = (int(successor[i]), float(after.reward[i]), bool(after.terminated[i]))
            if outcome not in [(int(s), float(r), bool(d)) for _, s, r, d in row]:
                return f"{state[i]} --{action[i]}--> {outcome} is not in the table"
            seen.setdefault((int(state[i]), int(action[i])), []).append(int(successor[i]))
        ended = after.terminated | after.truncated
        state = successor
    for (s, a), successors in seen.items():
        expected: dict[int, float] = {}
        for p, successor_state, _, _ in table[s][a]:
            expected[int(successor_state)] = expected.get(int(successor_state), 0) + p
        for successor_state, p in expected.items():
            share = np.mean(np.array(successors) == successor_state)
            if abs(share - p) > 5 * np.sqrt(p * (1 - p) / len(successors)) + 1e-9:
                return f"{s} --{a}--> {successor_state}: {share:.3f} of {len(successors)}, expected {p:.3f}"
    assert len(seen) == 11 * 4
    return None


def test_frozen_lake_follows_the_transition_table() -> None:
    assert frozen_lake_disagreement({}) is None


def test_frozen_lake_comparison_notices_other_rules() -> None:
    assert frozen_lake_disagreement({"is_slippery": False}) is not None
    assert frozen_lake_disagreement({"success_rate": 0.4}) is not None


@pytest.mark.parametrize(("env_id", "steps"), [("MiniGrid-Empty-5x5-v0", 320), ("MiniGrid-Empty-8x8-v0", 300)])
def test_minigrid_trajectories_are_identical(env_id: str, steps: int) -> None:
    pool, reference = pool_of(env_id, 16), gymnasium_of(env_id, 16)
    np.testing.assert_array_equal(pool.reset(0)[0], reference.reset(0)[0])
    rng = np.random.default_rng(0)
    cut = reached = both = 0
    for _ in range(steps):
        action = rng.integers(0, 3, 16).astype(np.int32)
        got, want = pool.step(action), reference.step(action)
        for name in ("obs", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name), err_msg=name)
        np.testing.assert_allclose(got.reward, want.reward, atol=1e-6)
        cut, reached = cut + want.truncated.sum(), reached + want.terminated.sum()
        both += (want.truncated & want.terminated).sum()
    assert cut and (reached or "8x8" in env_id)


# --- Box2D -----------------------------------------------------------------------------------------------------------

Policy = Callable[[np.ndarray, np.random.Generator], np.ndarray]
Table = dict[str, np.ndarray]


class Transitions(NamedTuple):
    env: np.ndarray
    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    after: np.ndarray
    terminated: np.ndarray

    def means(self, values: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Mean of `values` over each environment's episode: one independent number an environment."""
        count = np.bincount(self.env[where])
        return np.bincount(self.env[where], values[where])[count > 0] / count[count > 0]


def episodes(engine: VectorEngine, policy: Policy, steps: int, seed: int) -> tuple[Table, Transitions]:
    """First episode of every environment, cut at `steps`: what the samples are made of; and all transitions."""
    n = engine.n_envs
    rng = np.random.default_rng(seed)
    obs = engine.reset(seed)[0].copy()
    alive = np.ones(n, bool)
    returns, lengths, last_rewards = np.zeros(n), np.zeros(n), np.zeros(n)
    samples = {f"obs[{d}] at reset": obs[:, d] for d in range(obs.shape[1])}
    transitions = []
    for t in range(steps):
        action = policy(obs, rng)
        after = engine.step(action)
        rows = np.flatnonzero(alive)
        transitions.append(
            (rows, obs[rows], action[rows], after.reward[rows], after.obs[rows].copy(), after.terminated[rows])
        )
        returns[rows] += after.reward[rows]
        lengths[rows] += 1
        last_rewards[rows] = after.reward[rows]
        alive &= ~(after.terminated | after.truncated)
        obs = after.obs.copy()
        if t in (0, 9, 29):
            samples |= {f"obs[{d}] after {t + 1}": obs[alive, d] for d in range(obs.shape[1])}
        if not alive.any():
            break
    engine.close()
    joined = Transitions(*(np.concatenate(column) for column in zip(*transitions, strict=True)))
    return samples | {"return": returns, "length": lengths, "last reward": last_rewards}, joined


def differing(one: Table, other: Table) -> list[str]:
    return [name for name in one if len(one[name]) and ks_2samp(one[name], other[name]).pvalue < SAME]


def _random_discrete(obs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, len(obs)).astype(np.int32)


def _random_box(size: int) -> Policy:
    return lambda obs, rng: rng.uniform(-1, 1, (len(obs), size)).astype(np.float32)


def _pilot(env_kwargs: dict[str, Any]) -> Policy:
    """Gymnasium's own heuristic, which lands; random actions only ever crash."""
    env = gym.make("LunarLander-v3", **env_kwargs).unwrapped
    dtype = np.float32 if env_kwargs else np.int32
    return lambda obs, rng: np.array([lunar_lander.heuristic(env, row) for row in obs], dtype)


def _fuel(action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Power of the main and of the side engines; the sign of the latter is the side."""
    if action.ndim == 1:
        return (action == 2).astype(float), np.select([action == 1, action == 3], [-1.0, 1.0])
    throttle, lateral = np.clip(action, -1, 1).T
    return np.where(throttle > 0, (throttle + 1) / 2, 0), np.where(np.abs(lateral) > 0.5, lateral, 0)


def lunar_lander_reward_error(steps: Transitions) -> float:
    """Reward = difference of the shaping potential, minus fuel; ±100 in its place at the end."""

    def potential(obs: np.ndarray) -> np.ndarray:
        distance, speed = np.hypot(obs[:, 0], obs[:, 1]), np.hypot(obs[:, 2], obs[:, 3])
        return -100 * (distance + speed + np.abs(obs[:, 4])) + 10 * (obs[:, 6] + obs[:, 7])

    main, side = _fuel(steps.action)
    want = potential(steps.after) - potential(steps.obs) - 0.3 * main - 0.03 * np.abs(side)
    ended, reward = steps.terminated, steps.reward
    assert np.all(np.abs(reward[ended]) == 100) and np.all(np.abs(reward[~ended]) != 100)
    assert np.all(reward[np.abs(steps.after[:, 0]) >= 1] == -100), "leaving the viewport is a crash"
    return float(np.abs(reward - want)[~ended].max())


def lunar_lander_thrust(steps: Transitions) -> Table:
    """What gravity and each engine do to the velocities of the lander in one frame of free flight, in its own frame."""
    flying = (steps.obs[:, 6:].sum(axis=1) + steps.after[:, 6:].sum(axis=1) == 0) & ~steps.terminated
    change = steps.after - steps.obs
    right, up, angle = change[:, 2] * 5.0, change[:, 3] * 7.5, steps.obs[:, 4]  # metres per second
    main, side = _fuel(steps.action)
    samples = {}
    for name, where in {
        "no engine": (main == 0) & (side == 0),
        "main engine": (main > 0) & (side == 0),
        "left engine": (main == 0) & (side < 0),
        "right engine": (main == 0) & (side > 0),
    }.items():
        samples[f"{name}, along"] = steps.means(np.cos(angle) * up - np.sin(angle) * right, where & flying)
        samples[f"{name}, across"] = steps.means(np.cos(angle) * right + np.sin(angle) * up, where & flying)
        samples[f"{name}, turn"] = steps.means(change[:, 5], where & flying)
    return samples


@pytest.mark.parametrize("env_kwargs", [{}, {"continuous": True}], ids=["discrete", "continuous"])
def test_lunar_lander(env_kwargs: dict[str, Any]) -> None:
    random: Policy = _random_box(2) if env_kwargs else _random_discrete
    for policy, steps, n in ((random, 150, 200), (_pilot(env_kwargs), 400, 40)):
        made = {"env_kwargs": env_kwargs}
        got, got_steps = episodes(pool_of("LunarLander-v3", n, **made), policy, steps, seed=7)
        want, want_steps = episodes(gymnasium_of("LunarLander-v3", n, **made), policy, steps, seed=8)
        assert lunar_lander_reward_error(want_steps) < 2e-3, "the formula itself"
        assert lunar_lander_reward_error(got_steps) < 2e-3
        assert not differing(got, want)
        if policy is random:
            assert not differing(lunar_lander_thrust(got_steps), lunar_lander_thrust(want_steps))
    assert (got["last reward"] == 100).mean() > 0.3, "the pilot lands"


@pytest.mark.parametrize(
    ("constant", "value"), [("MAIN_ENGINE_POWER", 12.0), ("SIDE_ENGINE_POWER", 0.55), ("gravity", -9.5)]
)
def test_lunar_lander_comparison_notices_another_world(
    constant: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    env_kwargs = {"gravity": value} if constant == "gravity" else {}
    if not env_kwargs:
        monkeypatch.setattr(lunar_lander, constant, value)
    _, got = episodes(pool_of("LunarLander-v3", 150), _random_discrete, 60, seed=7)
    _, want = episodes(gymnasium_of("LunarLander-v3", 150, env_kwargs=env_kwargs), _random_discrete, 60, seed=8)
    assert differing(lunar_lander_thrust(got), lunar_lander_thrust(want))


def bipedal_reward_error(steps: Transitions) -> np.ndarray:
    """Reward = 130/30 a metre forward, minus 5 × tilt gained, minus torque; -100 in its place for a fall."""
    metres = steps.after[:, 2] / (0.3 * 20 / 50) / 50  # the hull's velocity as observed, over one frame
    tilt = 5 * (np.abs(steps.after[:, 0]) - np.abs(steps.obs[:, 0]))
    torque = 0.00035 * 80 * np.clip(np.abs(steps.action), 0, 1).sum(axis=1)
    ended, reward = steps.terminated, steps.reward
    assert np.all(reward[ended] == -100) and np.all(reward[~ended] != -100)
    return np.abs(reward - (130 / 30 * metres - tilt - torque))[~ended]


def test_bipedal_walker() -> None:
    policy = _random_box(4)
    got, got_steps = episodes(pool_of("BipedalWalker-v3", 100), policy, 70, seed=7)
    want, want_steps = episodes(gymnasium_of("BipedalWalker-v3", 100), policy, 70, seed=8)
    # Box2D pushes overlapping bodies apart after integrating, which the observed velocity does not show.
    for errors in (bipedal_reward_error(want_steps), bipedal_reward_error(got_steps)):
        assert np.median(errors) < 2e-3 and np.quantile(errors, 0.99) < 0.1
    assert not differing(got, want)


def bipedal_trajectories(engine: VectorEngine) -> np.ndarray:
    """Observations [time, environment, 24] of environments that all get the same actions."""
    rng = np.random.default_rng(0)
    seen = [engine.reset(5)[0].copy()]
    for _ in range(12):  # until the feet touch down, where a small difference grows
        action = np.tile(rng.uniform(-1, 1, 4).astype(np.float32), (engine.n_envs, 1))
        seen.append(engine.step(action).obs.copy())
    engine.close()
    return np.array(seen)


def bipedal_deviation(got: np.ndarray, want: np.ndarray) -> float:
    """Largest distance from Gymnasium's curve of "observation at t, given the random push at the start".

    That push is all that differs between walkers on the flat start of the course, and the first observation shows it
    (in the velocity, entry 2), so two environments with the same rules trace the same curve.
    """
    order = np.argsort(want[0, :, 2])
    push = want[0, order, 2]
    between = (got[0, :, 2] > push[0]) & (got[0, :, 2] < push[-1])
    curves = [[np.interp(got[0, :, 2], push, at[order, d]) for d in range(24)] for at in want]
    return float(np.abs(np.moveaxis(curves, 1, 2) - got)[:, between].max())


def test_bipedal_walker_follows_the_same_trajectories() -> None:
    want = bipedal_trajectories(gymnasium_of("BipedalWalker-v3", 150))
    assert bipedal_deviation(bipedal_trajectories(pool_of("BipedalWalker-v3", 50)), want) < 1e-3


@pytest.mark.parametrize(("constant", "value"), [("MOTORS_TORQUE", 78), ("SPEED_HIP", 3.9), ("LIDAR_RANGE", 5.2)])
def test_bipedal_comparison_notices_another_body(constant: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    got = bipedal_trajectories(pool_of("BipedalWalker-v3", 50))
    monkeypatch.setattr(bipedal_walker, constant, value)
    assert bipedal_deviation(got, bipedal_trajectories(gymnasium_of("BipedalWalker-v3", 40))) > 5e-3


# --- resets and time limits, for all of them -------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "env_kwargs"), [(env_id, dict(kwargs)) for env_id, kwargs in VERIFIED])
def test_first_observations_have_the_same_distribution(env_id: str, env_kwargs: dict[str, Any]) -> None:
    n = 150
    got = pool_of(env_id, n, env_kwargs=env_kwargs).reset(1)[0]
    want = gymnasium_of(env_id, n, env_kwargs=env_kwargs).reset(2)[0]
    assert min(ks_2samp(got[:, d], want[:, d]).pvalue for d in range(got.shape[1])) > SAME


@pytest.mark.parametrize(
    ("env_id", "env_kwargs"), [(env_id, dict(kwargs)) for env_id, kwargs in VERIFIED if "MiniGrid" not in env_id]
)
def test_time_limit_cuts_at_the_same_step(env_id: str, env_kwargs: dict[str, Any]) -> None:
    """The registered limit is the one EnvPool gets, and a shorter one is honoured to the step."""
    engine = pool_of(env_id, 4, env_kwargs=env_kwargs, max_episode_steps=4)
    assert pool_of(env_id, 4, env_kwargs=env_kwargs).spec.max_episode_steps == gym.spec(env_id).max_episode_steps
    engine.reset(1)
    rng = np.random.default_rng(0)
    cuts = [engine.step(random_actions(engine, rng)).truncated.copy() for _ in range(4)]
    assert not np.any(cuts[:3]) and cuts[3].sum() >= 3


def test_an_ending_on_the_last_permitted_step_is_an_ending_and_a_cut() -> None:
    """EnvPool itself calls it only a cut; a learner would then bootstrap from a hole in the ice."""
    engine = pool_of("FrozenLake-v1", 512, max_episode_steps=6)
    engine.reset(0)
    rng = np.random.default_rng(0)
    ended = np.zeros(512, bool)
    both = 0
    for _ in range(6):
        step = engine.step(random_actions(engine, rng))
        over = np.isin(step.obs.argmax(axis=1), (5, 7, 11, 12, 15))
        np.testing.assert_array_equal(step.terminated[~ended], over[~ended])
        both += int((step.terminated & step.truncated).sum())
        ended = step.terminated | step.truncated
    assert both > 0


def test_every_id_of_the_table_has_its_proof() -> None:
    exact = set(SET_STATE) | {"FrozenLake-v1", "MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-8x8-v0"}
    assert {env_id for env_id, _ in VERIFIED} == exact | {"LunarLander-v3", "BipedalWalker-v3"}
