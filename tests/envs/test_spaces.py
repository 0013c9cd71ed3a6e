"""Every observation space becomes a vector or an image, every action space takes what a policy puts out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import VectorEngine, describe, make_env
from gymnasium_solver.envs.actions import action_codec
from gymnasium_solver.envs.observations import observation_codec
from gymnasium_solver.errors import ConfigError
from tests.envs.sample_environments import ACTIONS, SPACES

Make = Callable[..., VectorEngine]

VECTORS = {
    "vector": 3,
    "double": 3,
    "scalar": 1,
    "matrix": 6,
    "integers": 4,
    "ram": 128,
    "grid": 147,
    "discrete": 5,
    "multi_discrete": 9,
    "multi_binary": 6,
    "dict": 4 + 3,
    "tuple": 2 + 2,
}
IMAGES = {
    "image": (30, 24, 3),
    "grey": (30, 24, 1),
    "channels_first": (30, 24, 3),
    "stacked": (30, 24, 12),
    "mission": (30, 24, 3),
}


def encode(space: gym.Space, *values: Any) -> np.ndarray:
    codec = observation_codec(space, "test")
    out = np.full((len(values), *codec.shape), 7, codec.dtype)
    for value, row in zip(values, out, strict=True):
        codec.write(value, row)
    return out


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str, engine: Make) -> None:
    made = engine("AnySpace", 2, env_kwargs={"observation": name}, vectorization="sync")
    assert (made.spec.obs_shape, made.spec.obs_dtype, made.spec.is_image) == ((VECTORS[name],), np.float32, False)
    obs = made.reset(0)[0].copy()
    assert np.isfinite(obs).all()
    assert made.step(np.zeros(2, np.int32)).obs.shape == obs.shape


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, engine: Make) -> None:
    made = engine("AnySpace", 2, env_kwargs={"observation": name}, vectorization="sync")
    assert (made.spec.obs_shape, made.spec.obs_dtype, made.spec.is_image) == (IMAGES[name], np.uint8, True)
    assert made.reset(0)[0].max() > 200, "bytes pass as they are"
    assert ("mission left out" in made.spec.reason) == (name == "mission")


@pytest.mark.parametrize("name", [*VECTORS, *IMAGES])
def test_a_batch_is_encoded_like_its_rows(name: str) -> None:
    space = SPACES[name]
    space.seed(0)
    rows = [space.sample() for _ in range(4)]
    codec = observation_codec(space, "test")
    batch = gym.vector.utils.create_empty_array(space, n=4)
    if name == "mission":
        batch = {"image": np.stack([row["image"] for row in rows])}
    else:
        batch = gym.vector.utils.concatenate(space, rows, batch)
    out = np.zeros((4, *codec.shape), codec.dtype)
    codec.write(batch, out)
    np.testing.assert_array_equal(out, encode(space, *rows))


def test_what_the_numbers_are() -> None:
    np.testing.assert_array_equal(encode(SPACES["discrete"], -2, 2), [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    np.testing.assert_array_equal(encode(SPACES["multi_discrete"], np.array([2, 0, 1])), [[0, 0, 1, 1, 0, 0, 1, 0, 0]])
    np.testing.assert_allclose(encode(SPACES["ram"], np.full(128, 51, np.uint8)), 0.2)
    np.testing.assert_allclose(encode(SPACES["grid"], np.full((7, 7, 3), 5, np.uint8)), 0.5)
    both = {"where": 1, "what": np.full((2, 2), 255, np.uint8)}
    np.testing.assert_array_equal(sorted(encode(SPACES["dict"], both)[0]), [0, 0, 1, 1, 1, 1, 1])
    image = SPACES["channels_first"].sample()
    np.testing.assert_array_equal(encode(SPACES["channels_first"], image)[0], image.transpose(1, 2, 0))
    stack = SPACES["stacked"].sample()
    np.testing.assert_array_equal(encode(SPACES["stacked"], stack)[0][..., 3:6], stack[1])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("vector", np.zeros(4, np.float32)),
        ("vector", 0.0),
        ("vector", np.zeros((1, 3), np.float32)),
        ("vector", np.array(["a", "b", "c"])),
        ("image", np.zeros((30, 24, 3), np.float32)),
        ("discrete", 3),
        ("discrete", -3),
        ("multi_discrete", np.array([0, 2, 0])),
        ("dict", {"where": 1}),
    ],
)
def test_an_observation_outside_its_space_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        encode(SPACES[name], wrong)


@pytest.mark.parametrize("name", ["text", "sequence"])
def test_unreadable_observations(name: str, config: Callable[..., PPOConfig]) -> None:
    with pytest.raises(ConfigError, match=f"(?i){name} observations.*env_wrappers"):
        describe(config("AnySpace", env_kwargs={"observation": name}))


# --- actions ---------------------------------------------------------------------------------------------------------


def decode(name: str, action: list[Any], rescale: bool = True) -> list[Any]:
    codec = action_codec(ACTIONS[name], rescale, "test")
    dtype = np.float32 if codec.spec.kind == "box" else np.int32
    rows = codec.rows(codec.batch(np.array(action, dtype)))
    assert all(ACTIONS[name].contains(row) for row in rows), rows
    return list(rows)


def test_decoded_actions() -> None:
    assert decode("discrete", [0, 2]) == [5, 7]
    np.testing.assert_array_equal(decode("multi_discrete", [[0, 1], [2, 0]]), [[1, 1], [3, 0]])
    np.testing.assert_array_equal(decode("multi_binary", [[0, 1, 1]]), [[0, 1, 1]])
    np.testing.assert_allclose(decode("box", [[-1, -1], [0, 0], [9, 9]]), [[-2, 0], [0, 5], [2, 10]])
    np.testing.assert_allclose(
        decode("box", [[-1, -1], [0.5, 0.5], [9, 99]], rescale=False), [[-1, 0], [0.5, 0.5], [2, 10]]
    )
    np.testing.assert_allclose(decode("unbounded", [[-50, 50]]), [[-50, 50]])
    np.testing.assert_allclose(decode("half_bounded", [[-5, -5], [5, 5]]), [[0, -1], [5, 1]])
    assert decode("square", [[0, 0.5, 1, 2]])[0].tolist() == [[0, 0.5], [1, 1]]
    ((first, second),) = decode("tuple", [[1, 2, 3]])
    assert first == 1 and second.tolist() == [2, 3]
    (parts,) = decode("dict", [[0.5, -1, 1]])
    assert parts["a"].tolist() == [0.5] and parts["b"].tolist() == [0, 4]


@pytest.mark.parametrize(
    ("name", "kind", "sizes", "dim"),
    [
        ("discrete", "discrete", (3,), 1),
        ("multi_discrete", "multi_discrete", (3, 2), 2),
        ("multi_binary", "multi_discrete", (2, 2, 2), 3),
        ("tuple", "multi_discrete", (2, 3, 4), 3),
        ("box", "box", (), 2),
        ("square", "box", (), 4),
        ("dict", "box", (), 3),
    ],
)
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_engines_take_what_a_policy_puts_out(
    name: str, kind: str, sizes: tuple[int, ...], dim: int, vectorization: str, engine: Make
) -> None:
    if vectorization == "async" and name not in ("discrete", "dict"):
        pytest.skip("the same code in another process")
    made = engine("AnySpace", 3, env_kwargs={"action": name}, vectorization=vectorization)
    action = made.spec.action
    assert (action.kind, action.sizes, action.dim) == (kind, sizes, dim)
    made.reset(0)
    shape = (3,) if kind == "discrete" else (3, dim)
    made.step(np.full(shape, 5.0, np.float32) if kind == "box" else np.ones(shape, np.int32))


@pytest.mark.parametrize("name", ["mixed", "text"])
def test_actions_no_algorithm_serves(name: str, config: Callable[..., PPOConfig]) -> None:
    with pytest.raises(ConfigError, match=r"actions.*env_wrappers"):
        describe(config("AnySpace", env_kwargs={"action": name}))


# --- masks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_action_masks(vectorization: str, engine: Make) -> None:
    made = engine("Masked", 2, vectorization=vectorization)
    assert made.spec.has_action_mask
    _, mask = made.reset(0)
    assert mask is not None and mask.dtype == np.bool_
    rows = [mask[1].tolist()]
    for _ in range(3):
        step = made.step(np.zeros((2, 2), np.int32))
        assert step.action_mask is not None
        rows.append(step.action_mask[1].tolist())
    assert rows == [
        [True, True, True, False, False],
        [True, True, False, True, False],
        [True, True, True, True, True],  # absent: nothing is forbidden
        [True, True, True, False, False],
    ]


def test_taxi_has_masks_that_tell_which_moves_change_anything(engine: Make) -> None:
    made = engine("Taxi-v3", 4)
    assert made.spec.has_action_mask and made.spec.max_episode_steps == 200
    _, mask = made.reset(0)
    assert mask is not None and mask.shape == (4, 6) and not mask.all()
    for i in range(4):
        blocked = np.flatnonzero(~mask[i])
        made.reset(0)
        after = made.step(np.full(4, blocked[0], np.int32)).obs[i]
        np.testing.assert_array_equal(after, made.reset(0)[0][i])


# --- one environment, as the policy sees it --------------------------------------------------------------------------


def test_make_env_speaks_the_language_of_the_policy(config: Callable[..., PPOConfig]) -> None:
    env = make_env(config("AnySpace", env_kwargs={"observation": "dict", "action": "dict"}))
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs) and obs.shape == (7,)
    assert env.step(np.array([9.0, 0.0, -9.0], np.float32))[1] == 1.0
    masked = make_env(config("Masked"))
    assert masked.reset(seed=0)[1]["action_mask"].tolist() == [True, True, True, False, False]
    seen = make_env(config("CartPole-v1"), render_mode="rgb_array")
    seen.reset(seed=0)
    assert seen.render().ndim == 3


def test_make_env_and_engine_agree(config: Callable[..., PPOConfig], engine: Make) -> None:
    from gymnasium_solver.envs.engine import environment_seeds

    made = engine("Pendulum-v1", 2, vectorization="sync")
    env = make_env(config("Pendulum-v1"))
    obs, _ = env.reset(seed=environment_seeds(4, 2)[1])
    np.testing.assert_array_equal(obs, made.reset(4)[0][1])
    action = np.array([[0.1], [0.7]], np.float32)
    want, reward, *_ = env.step(action[1])
    step = made.step(action)
    np.testing.assert_array_equal(step.obs[1], want)
    assert step.reward[1] == np.float32(reward)
