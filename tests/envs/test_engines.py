"""One contract for every engine: next-step autoreset, seeds, the choice among them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import Step, VectorEngine, describe
from gymnasium_solver.envs.envpool_engine import VERIFIED
from gymnasium_solver.errors import ConfigError, MissingExtraError

Make = Callable[..., VectorEngine]

# (env_id, fields): every engine, on an environment whose episodes are short under random actions or a short limit
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    "gymnasium/native": ("CartPole-v1", {"vectorization": "native", "max_episode_steps": 15}),
    "gymnasium/sync": ("CartPole-v1", {"vectorization": "sync", "max_episode_steps": 15}),
    "gymnasium/async": ("CartPole-v1", {"vectorization": "async", "max_episode_steps": 15}),
    "envpool": ("FrozenLake-v1", {"engine": "envpool", "max_episode_steps": 15}),
}
every_engine = pytest.mark.parametrize("kind", ENGINES)


def build(engine: Make, kind: str, n_envs: int = 6) -> VectorEngine:
    if kind == "envpool":
        pytest.importorskip("envpool")
    env_id, fields = ENGINES[kind]
    made = engine(env_id, n_envs, **fields)
    assert made.spec.engine == kind
    return made


def actions(made: VectorEngine, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, made.spec.action.sizes[0], made.n_envs).astype(np.int32)


def record(made: VectorEngine, seed: int, steps: int) -> list[np.ndarray]:
    """Everything the engine puts out, copied."""
    rng = np.random.default_rng(0)
    out = [made.reset(seed)[0].copy()]
    for _ in range(steps):
        out += [np.array(array) for array in made.step(actions(made, rng)) if array is not None]
    return out


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@every_engine
def test_autoreset_on_the_next_step(engine: Make, kind: str) -> None:
    made = build(engine, kind)
    first = made.reset(0)[0].copy()
    resets = {tuple(row) for row in first} if kind == "envpool" else None
    rng = np.random.default_rng(1)
    length = np.zeros(6, int)
    ended = np.zeros(6, bool)
    cut = over = 0
    for _ in range(120):
        step = Step(*(None if a is None else a.copy() for a in made.step(actions(made, rng))))  # type: ignore[arg-type]
        length = np.where(ended, 0, length + 1)
        assert np.all(step.reward[ended] == 0)
        assert not np.any(step.terminated[ended]) and not np.any(step.truncated[ended])
        if resets is None:  # CartPole starts within ±0.05, and its final observation is out of range or at the limit
            assert np.all(np.abs(step.obs[ended]) <= 0.05)
            out_of_range = (np.abs(step.obs[:, 0]) > 2.4) | (np.abs(step.obs[:, 2]) > 12 * np.pi / 180)
            np.testing.assert_array_equal(step.terminated, out_of_range & ~ended)
        else:
            assert all(tuple(row) in resets for row in step.obs[ended])
        np.testing.assert_array_equal(step.truncated, length == 15)
        ended = step.terminated | step.truncated
        cut, over = cut + step.truncated.sum(), over + step.terminated.sum()
    assert cut and over, "both kinds of ending were seen"


@every_engine
def test_types_and_shapes(engine: Make, kind: str) -> None:
    made = build(engine, kind)
    obs, mask = made.reset(3)
    step = made.step(actions(made, np.random.default_rng(0)))
    for array in (obs, step.obs):
        assert array.shape == (6, *made.spec.obs_shape) and array.dtype == made.spec.obs_dtype
    assert mask is None and step.action_mask is None
    assert (step.reward.shape, step.reward.dtype) == ((6,), np.float32)
    assert step.terminated.dtype == step.truncated.dtype == np.bool_


@every_engine
def test_the_same_seed_gives_the_same_stream_after_any_use(engine: Make, kind: str) -> None:
    used, fresh = build(engine, kind), build(engine, kind)
    record(used, 99, 37)
    again = record(used, 7, 60)
    assert same(again, record(fresh, 7, 60))
    assert same(again, record(used, 7, 60))
    assert not same(again, record(used, 8, 60))


@pytest.mark.parametrize("kind", ["gymnasium/native", "gymnasium/sync", "gymnasium/async"])
def test_every_environment_has_its_own_seed(engine: Make, kind: str) -> None:
    obs = build(engine, kind).reset(0)[0]
    assert len({tuple(row) for row in obs}) == 6


def test_envpool_environments_have_their_own_seeds(engine: Make) -> None:
    pytest.importorskip("envpool")
    obs = engine("Acrobot-v1", 6, engine="envpool").reset(0)[0]
    assert len({tuple(row) for row in obs}) == 6


def test_worker_processes_give_the_stream_of_the_in_process_engine(engine: Make) -> None:
    one = engine("Clock", 5, vectorization="sync")
    other = engine("Clock", 5, vectorization="async")
    assert same(record(one, 3, 30), record(other, 3, 30))


def test_a_clock_tells_the_true_successor_of_every_observation(engine: Make) -> None:
    made = engine("Clock", 3, vectorization="sync")
    made.reset(0)
    seen = []
    for t in range(11):
        step = made.step(np.full(3, t % 3, np.int32))
        seen.append((*step.obs[0, [0, 1]], step.obs[0, 3], step.reward[0], step.terminated[0], step.truncated[0]))
    assert seen[:6] == [
        (0, 1, 0, 1, False, False),
        (0, 2, 1, 2, False, False),
        (0, 3, 2, 3, False, False),
        (0, 4, 0, 4, True, False),  # the final observation itself
        (1, 0, -1, 0, False, False),  # the action was ignored
        (1, 1, 2, 1, False, False),
    ]
    assert seen[8][4:] == (False, True)


RESTARTED = [
    ("LunarLander-v3", {}),
    ("LunarLander-v3", {"env_kwargs": {"continuous": True}}),
    ("BipedalWalker-v3", {}),
    ("HalfCheetah-v5", {}),
    ("Taxi-v3", {}),
    ("MiniGrid-Empty-5x5-v0", {}),
    ("ALE/Pong-v5", {"env_kwargs": {"obs_type": "ram"}}),
    ("Clock", {}),
]


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "fields"), RESTARTED)
@pytest.mark.parametrize("engine_name", ["gymnasium", "envpool"])
def test_real_environments_restart_exactly(engine: Make, env_id: str, fields: dict[str, Any], engine_name: str) -> None:
    """Resume depends on it. BipedalWalker would not, were its world kept: Box2D remembers the last contacts."""

    def stream(made: VectorEngine, seed: int, steps: int) -> list[np.ndarray]:
        rng, spec = np.random.default_rng(0), made.spec.action
        out = [made.reset(seed)[0].copy()]
        for _ in range(steps):
            action = (
                rng.uniform(-1, 1, (4, spec.dim)).astype(np.float32)
                if spec.kind == "box"
                else rng.integers(0, spec.sizes[0], 4).astype(np.int32)
            )
            out += [np.array(array) for array in made.step(action) if array is not None]
        return out

    if engine_name == "envpool" and (env_id, tuple(fields.get("env_kwargs", {}).items())) not in VERIFIED:
        pytest.skip("not an environment of EnvPool")
    made = engine(env_id, 4, engine=engine_name, **fields)
    stream(made, 1, 90)
    again = stream(made, 2, 150)
    assert same(again, stream(engine(env_id, 4, engine=engine_name, **fields), 2, 150))


def test_the_vector_class_of_cartpole_takes_the_steps_of_the_single_one(engine: Make) -> None:
    made = engine("CartPole-v1", 16, vectorization="native")
    single = gym.make("CartPole-v1").unwrapped
    single.reset(seed=0)
    rng = np.random.default_rng(0)
    obs, ended = made.reset(0)[0].copy(), np.zeros(16, bool)
    for _ in range(60):
        action = actions(made, rng)
        step = made.step(action)
        for i in np.flatnonzero(~ended):
            single.state, single.steps_beyond_terminated = tuple(obs[i].astype(float)), None
            want, reward, terminated, _, _ = single.step(int(action[i]))
            np.testing.assert_allclose(step.obs[i], want, atol=1e-5)
            assert (step.reward[i], step.terminated[i]) == (reward, terminated)
        obs, ended = step.obs.copy(), step.terminated | step.truncated


# --- the choice ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "n_envs", "fields", "kind"),
    [
        ("CartPole-v1", 8, {}, "compiled"),
        ("CartPole-v1", 8, {"max_episode_steps": 50}, "compiled"),
        ("CartPole-v1", 8, {"engine": "gymnasium"}, "gymnasium/native"),
        ("CartPole-v1", 8, {"vectorization": "sync"}, "gymnasium/sync"),
        ("CartPole-v1", 8, {"env_kwargs": {"sutton_barto_reward": True}}, "gymnasium/native"),
        ("CartPole-v1", 8, {"frame_stack": 2}, "gymnasium/sync"),
        ("CartPole-v1", 8, {"env_wrappers": [{"reward_scale": 0.1}]}, "gymnasium/sync"),
        ("Acrobot-v1", 8, {"bonus": "rnd"}, "envpool"),
        ("Acrobot-v1", 8, {"frame_skip": 2}, "gymnasium/sync"),
        ("Acrobot-v1", 8, {"engine": "gymnasium"}, "gymnasium/sync"),
        ("Acrobot-v1", 8, {"vectorization": "sync"}, "gymnasium/sync"),
        ("Acrobot-v1", 8, {"evaluation": True}, "gymnasium/sync"),
        ("Acrobot-v1", 8, {"evaluation": True, "engine": "envpool"}, "gymnasium/sync"),
        ("FrozenLake-v1", 64, {}, "envpool"),
        ("FrozenLake-v1", 2, {}, "gymnasium/sync"),
        ("FrozenLake-v1", 64, {"env_kwargs": {"is_slippery": False}}, "gymnasium/sync"),
        ("LunarLander-v3", 8, {"env_kwargs": {"continuous": True}}, "envpool"),
        ("LunarLander-v3", 8, {"env_kwargs": {"enable_wind": True}}, "gymnasium/sync"),
        ("MiniGrid-Empty-5x5-v0", 8, {"max_episode_steps": 20}, "gymnasium/sync"),
        ("Clock", 4, {"env_kwargs": {"seconds": 0.003}}, "gymnasium/async"),
        ("Clock", 1, {"env_kwargs": {"seconds": 0.003}}, "gymnasium/sync"),
    ],
)
def test_auto_chooses(engine: Make, env_id: str, n_envs: int, fields: dict[str, Any], kind: str) -> None:
    if kind == "envpool":
        pytest.importorskip("envpool")
    made = engine(env_id, n_envs, **fields)
    assert made.spec.engine == kind and made.spec.reason


@pytest.mark.integration
def test_describe_says_what_training_would_use(config: Callable[..., PPOConfig]) -> None:
    spec = describe(config("CartPole-v1", n_envs=8))
    assert (spec.engine, spec.obs_shape, spec.action.sizes) == ("compiled", (4,), (2,))
    assert (spec.max_episode_steps, spec.reward_threshold, spec.has_action_mask) == (500, 475.0, False)
    assert describe(config("Hopper-v5")).reward_threshold == gym.spec("Hopper-v5").reward_threshold
    assert describe(config("MountainCar-v0", frame_skip=4)).max_episode_steps == 50
    assert describe(config("MountainCar-v0", max_episode_steps=80, reward_threshold=-70)).reward_threshold == -70


def test_envpool_asked_for_but_not_possible(engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("envpool")
    with pytest.raises(
        ConfigError, match=r"CartPole-v1.*not verified.*Acrobot-v1.*LunarLander-v3 \{'continuous': True\}"
    ):
        engine("CartPole-v1", 2, engine="envpool")
    with pytest.raises(ConfigError, match="no wrappers"):
        engine("Acrobot-v1", 2, engine="envpool", frame_stack=2)
    with pytest.raises(ConfigError, match="native cannot run Acrobot-v1"):
        engine("Acrobot-v1", 2, vectorization="native")


def test_envpool_not_installed(engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "envpool", None)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "envpool" else find_spec(name))
    with pytest.raises(MissingExtraError, match=r"gymnasium-solver\[envpool\]"):
        engine("Acrobot-v1", 2, engine="envpool")
    made = engine("LunarLander-v3", 8)
    assert made.spec.engine == "gymnasium/sync" and "gymnasium-solver[envpool]" in made.spec.reason
