"""An environment without a file gets fields that suit its spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Space

from gymnasium_solver.config.cards import names
from gymnasium_solver.config.load import load_config
from gymnasium_solver.data.layout import make_layout
from gymnasium_solver.envs import describe

VECTOR = Box(-1, 1, (3,), np.float32)
IMAGE = Box(0, 255, (32, 32, 3), np.uint8)
ARROWS = Discrete(4)
STEERING = Box(-1, 1, (2,), np.float32)

ENV_ID = "WithoutFile-v0"


class Blank(gym.Env):
    def __init__(self, observation: Space, action: Space) -> None:
        self.observation_space, self.action_space = observation, action


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Register the environment with these spaces, until the test is over."""
    monkeypatch.chdir(tmp_path)

    def register(observation: Space, action: Space, limit: int | None = None) -> None:
        gym.register(ENV_ID, lambda: Blank(observation, action), max_episode_steps=limit)

    yield register
    gym.registry.pop(ENV_ID, None)


def load(algo_id: str, *overrides: str) -> Any:
    config = load_config(f"{ENV_ID}:{algo_id}", overrides)
    assert (config.env_id, config.algo_id) == (ENV_ID, algo_id)
    return config


def load_for(register: Callable[..., None], algo_id: str, observation: Space, action: Space) -> Any:
    gym.registry.pop(ENV_ID, None)
    register(observation, action)
    return load(algo_id)


@pytest.mark.parametrize("algo_id", ["ppo", "a2c", "reinforce"])
def test_discrete_actions_explore_by_entropy_and_continuous_ones_are_normalised(
    register: Callable[..., None], algo_id: str
) -> None:
    arrows, steering = (load_for(register, algo_id, VECTOR, action) for action in (ARROWS, STEERING))
    assert arrows.ent_coef > steering.ent_coef == 0
    assert steering.normalize_obs and not arrows.normalize_obs


@pytest.mark.parametrize("image", [IMAGE, Box(0, 255, (3, 32, 32), np.uint8)], ids=["channels last", "first"])
@pytest.mark.parametrize("action", [ARROWS, STEERING], ids=["discrete", "continuous"])
@pytest.mark.parametrize("algo_id", ["ppo", "a2c", "reinforce"])
def test_images_get_one_wide_trunk(register: Callable[..., None], algo_id: str, image: Space, action: Space) -> None:
    vectors, images = (load_for(register, algo_id, observation, action) for observation in (VECTOR, image))
    assert images.shared_network
    assert len(images.hidden_dims) == 1
    assert images.hidden_dims[0] > max(vectors.hidden_dims)


@pytest.mark.parametrize(
    "grid",
    [Box(0, 255, (7, 7, 3), np.uint8), Box(0, 1, (32, 32, 3), np.float32), Box(0, 255, (128,), np.uint8)],
    ids=["small", "float", "flat"],
)
def test_what_is_no_picture_is_a_vector(register: Callable[..., None], grid: Space) -> None:
    assert load_for(register, "ppo", grid, ARROWS) == load_for(register, "ppo", VECTOR, ARROWS)


def test_the_spaces_of_a_class_are_looked_at() -> None:
    assert load_config("gymnasium_solver.envs.probes:ContinuousAction:ppo").normalize_obs
    assert not load_config("gymnasium_solver.envs.probes:ActionReward:ppo").normalize_obs


@pytest.mark.parametrize(("limit", "n_steps"), [(200, 200), (5000, 1000), (None, 256)])
def test_a_reinforce_rollout_holds_whole_episodes(
    register: Callable[..., None], limit: int | None, n_steps: int
) -> None:
    register(VECTOR, ARROWS, limit)
    assert load("reinforce").n_steps == n_steps


@pytest.mark.parametrize("algo_id", names())
def test_overrides_change_defaults(register: Callable[..., None], algo_id: str) -> None:
    register(VECTOR, ARROWS)
    assert load(algo_id, "gamma=0.5", "policy_lr.end=0").gamma == 0.5
    assert load(algo_id, "policy_lr.end=0").policy_lr.end == 0


def test_a_replay_of_images_is_small_and_one_of_vectors_large(register: Callable[..., None]) -> None:
    vectors, images = (load_for(register, "dqn", observation, ARROWS) for observation in (VECTOR, IMAGE))
    assert images.buffer_size < vectors.buffer_size


def test_one_algorithms_load_does_not_change_anothers_defaults(register: Callable[..., None]) -> None:
    register(VECTOR, ARROWS)
    before = load("ppo")
    load("ppo", "policy_lr.end=0", "n_envs=32")
    assert load("ppo") == before


def test_an_environment_that_cannot_be_made_is_judged_later() -> None:
    gym.register(ENV_ID, "no.such.module:Env")
    try:
        assert load("ppo").env_id == ENV_ID
    finally:
        gym.registry.pop(ENV_ID)


@pytest.mark.parametrize("algo_id", ["ppo", "a2c", "dqn"])
def test_atari_is_grey_small_and_stacked(algo_id: str) -> None:
    config: Any = load_config(f"ALE/Breakout-v5:{algo_id}")
    assert config.hidden_dims == (512,)
    assert (config.env_wrappers, config.frame_stack) == (["grey", {"resize": 84}], 4)
    own: Any = load_config(f"ALE/Breakout-v5:{algo_id}", {"env_wrappers": [], "frame_stack": 2})
    assert (own.env_wrappers, own.frame_stack) == ([], 2)


def test_a_replay_of_atari_fits_into_most_machines() -> None:
    config: Any = load_config("ALE/Breakout-v5:dqn")
    spec = describe(config)
    assert (spec.obs_shape, spec.is_image) == ((84, 84, 4), True)
    layout = make_layout(
        spec, rows=config.buffer_rows, n_envs=config.n_envs, frame_stack=config.frame_stack, n_step=1, gamma=0.99
    )
    assert layout.nbytes < 1e9


@pytest.mark.parametrize("ref", ["ALE/Pong-v5:dqn", "ALE/Breakout-v5:dqn", "ALE/Breakout-v5:ppo"])
def test_the_memory_of_atari_is_no_image(ref: str) -> None:
    """Pong's file says so for all its variants."""
    overrides = [] if "Pong" in ref else ["env_kwargs.obs_type=ram"]
    config: Any = load_config(ref, overrides)
    assert config.env_kwargs["obs_type"] == "ram"
    assert (config.env_wrappers, config.frame_stack) == ([], 1)
    assert config.hidden_dims != (512,)


def test_atari_that_is_grey_already_is_only_made_small() -> None:
    config: Any = load_config("ALE/Breakout-v5:dqn", ["env_kwargs.obs_type=grayscale"])
    assert (config.hidden_dims, config.env_wrappers) == ((512,), [{"resize": 84}])
    assert describe(config).obs_shape == (84, 84, 4)


def test_images_of_others_stay_as_they_are(register: Callable[..., None]) -> None:
    register(Box(0, 255, (210, 160, 3), np.uint8), ARROWS)
    assert (load("dqn").env_wrappers, load("dqn").frame_stack) == ([], 1)
