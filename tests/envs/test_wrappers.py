"""Wrappers by name, by class, from fields; and what is said when one is written wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import VectorEngine, describe, make_env
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.errors import ConfigError

Make = Callable[..., VectorEngine]
Configure = Callable[..., PPOConfig]


def rewards(config: PPOConfig, steps: int = 3) -> list[float]:
    env = build_env(config)
    env.reset(seed=0)
    return [float(env.step(0)[1]) for _ in range(steps)]


def test_frame_skip_sums_rewards_and_stops_at_the_end(config: Configure) -> None:
    assert rewards(config("Clock", frame_skip=3), 2) == [1 + 2 + 3, 4]
    assert rewards(config("Clock", env_wrappers=[{"frame_skip": {"skip": 2}}]), 2) == [3, 7]


def test_reward_wrappers(config: Configure) -> None:
    assert rewards(config("Clock", env_wrappers=[{"reward_scale": {"scale": 0.5}}])) == [0.5, 1.0, 1.5]
    assert rewards(config("Clock", env_wrappers=[{"reward_scale": 0.5}])) == [0.5, 1.0, 1.5]
    assert rewards(config("Clock", env_wrappers=[{"reward_clip": {"low": -2, "high": 2}}])) == [1, 2, 2]
    inside_out = [{"reward_scale": 2}, {"reward_clip": {"high": 3}}]
    assert rewards(config("Clock", env_wrappers=inside_out)) == [2, 3, 3]


def test_one_number_clips_rewards_on_both_sides(config: Configure) -> None:
    assert rewards(config("Clock", env_wrappers=[{"reward_clip": 2}])) == [1, 2, 2]
    assert rewards(config("Clock", env_wrappers=[{"reward_scale": -1}, {"reward_clip": 2}])) == [-1, -2, -2]
    assert rewards(config("Clock", env_wrappers=[{"reward_clip": 0.5}])) == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_what_the_environment_paid_is_kept_beside_a_changed_reward(vectorization: str, engine: Make) -> None:
    wrappers = [{"reward_scale": 0.5}, {"frame_skip": 2}, {"reward_clip": 2}]
    made = engine("Clock", 2, env_wrappers=wrappers, vectorization=vectorization)
    made.reset(0)
    steps = []
    for _ in range(3):
        step = made.step(np.zeros(2, np.int32))
        assert step.own_reward is not None
        steps.append((float(step.reward[1]), float(step.own_reward[1])))
    assert steps == [(1.5, 3), (2, 7), (0, 0)]  # 1 + 2, 3 + 4, and the step that resets


def test_evaluations_and_single_episodes_see_the_environments_own_rewards(config: Configure, engine: Make) -> None:
    wrappers = [{"reward_scale": 0.5}, {"sample_environments:NeedsArgument": {"bonus": 10.0}}, "reward_clip"]
    made = engine("Clock", 1, evaluation=True, env_wrappers=wrappers)
    made.reset(0)
    assert made.step(np.zeros(1, np.int32)).reward[0] == 11, "a wrapper of the user's own is part of the task"
    env = make_env(config("Clock", env_wrappers=wrappers))
    env.reset(seed=0)
    assert env.step(np.zeros((), np.int32))[1] == 11


def test_time_limit(config: Configure) -> None:
    env = build_env(config("Clock", env_wrappers=[{"time_limit": 2}]))
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]
    assert describe(config("Clock", env_wrappers=[{"time_limit": 2}])).max_episode_steps == 2
    assert describe(config("Clock", max_episode_steps=3, frame_skip=2)).max_episode_steps == 2


def test_frame_stack_keeps_the_last_observations(engine: Make) -> None:
    made = engine("Clock", 2, frame_stack=3)
    assert made.spec.obs_shape == (12,)
    made.reset(0)
    for _ in range(3):
        obs = made.step(np.zeros(2, np.int32)).obs
    assert obs[0].reshape(3, 4)[:, 1].tolist() == [1, 2, 3]


def test_image_wrappers(config: Configure) -> None:
    spec = describe(
        config("AnySpace", env_kwargs={"observation": "image"}, env_wrappers=["grey", {"resize": 21}], frame_stack=4)
    )
    assert (spec.obs_shape, spec.is_image) == ((21, 21, 4), True)
    assert describe(config("AnySpace", env_kwargs={"observation": "image"}, frame_stack=2)).obs_shape == (30, 24, 6)


def test_sticky_actions_repeat_the_last_one(config: Configure) -> None:
    env = build_env(
        config("Clock", env_kwargs={"length": 200}, env_wrappers=[{"sticky_actions": {"probability": 0.5}}])
    )
    env.reset(seed=0)
    taken = [env.step(t % 3)[0][3] for t in range(150)]
    wrong = np.mean([a != t % 3 for t, a in enumerate(taken)])
    assert 0.3 < wrong < 0.7


def test_observation_noise_follows_the_seed(engine: Make) -> None:
    noisy: dict[str, Any] = {"env_wrappers": [{"observation_noise": {"std": 0.5}}]}
    one, other = engine("Pendulum-v1", 400, **noisy), engine("Pendulum-v1", 400, **noisy)
    np.testing.assert_array_equal(one.reset(3)[0], other.reset(3)[0])
    clean = engine("Pendulum-v1", 400, engine="gymnasium").reset(3)[0]
    assert abs((one.reset(3)[0] - clean).std() - 0.5) < 0.05
    quiet = engine("AnySpace", 1, env_kwargs={"observation": "ram"}, env_wrappers=[{"observation_noise": 3.0}])
    assert quiet.reset(0)[0].min() >= 0 and quiet.reset(0)[0].max() <= 1


def test_a_wrapper_of_the_users_own(config: Configure) -> None:
    own = "sample_environments:NeedsArgument"
    assert rewards(config("Clock", env_wrappers=[{own: {"bonus": 10}}])) == [11, 12, 13]
    flat = describe(config("AnySpace", env_kwargs={"observation": "matrix"}, env_wrappers=["flatten"]))
    assert flat.obs_shape == (6,)
    assert describe(config("CartPole-v1", env_wrappers=["gymnasium.wrappers:TimeAwareObservation"])).obs_shape == (5,)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("frame_skp", "'frame_skp' is not a wrapper; nearest is 'frame_skip'"),
        ("frame_skip", "frame_skip: missing a required argument: 'skip'; its arguments are: skip"),
        ({"frame_skip": {"skip": 0}}, "skip is 0, has to be at least 1"),
        ({"reward_scale": {"scael": 2}}, "its arguments are: scale"),
        ({"grey": {}, "resize": 84}, "one wrapper per entry"),
        ({"resize": 84}, "resize with 84 does not fit this environment"),
        ("sample_environments:Nothing", "module 'sample_environments' has no 'Nothing'"),
        ("no_such_module:Thing", "no module 'no_such_module'"),
        ("sample_environments:NeedsArgument", "missing a required argument: 'bonus'"),
    ],
)
def test_a_wrapper_written_wrong(entry: Any, message: str, config: Configure) -> None:
    with pytest.raises(ConfigError, match="env_wrappers: ") as caught:
        describe(config("Clock", env_wrappers=[entry]))
    assert message in str(caught.value)
