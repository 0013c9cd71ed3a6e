"""Spaces that an algorithm cannot serve: which, and what to use instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.errors import ConfigError
from tests.algorithms.single_updates import (
    BOX,
    DISCRETE,
    OBS,
    spec_of,
)


def refusal(algorithm: str, spec: EnvSpec, **fields: Any) -> str:
    config = build_config({"env_id": "Fake-v0", "algo_id": algorithm, **fields}, "test")
    with pytest.raises(ConfigError) as caught:
        make_algorithm(config, spec)
    return str(caught.value)


MULTI_DISCRETE = ActionSpec("multi_discrete", (2, 3), 2)
UNBOUNDED = ActionSpec("box", (), 2, np.array([-1, -np.inf], np.float32), np.array([1, np.inf], np.float32))
HALF_BOUNDED = ActionSpec("box", (), 2, np.array([-1, -1], np.float32), np.array([1, np.inf], np.float32))


@pytest.mark.parametrize(
    ("algorithm", "action", "what", "remedy"),
    [
        ("dqn", BOX, "continuous actions", "use sac, td3 or ppo"),
        ("dqn", MULTI_DISCRETE, "several discrete actions", "use ppo"),
        ("sac", MULTI_DISCRETE, "several discrete actions", "use ppo"),
        ("td3", DISCRETE, "discrete actions", "use dqn or ppo"),
        ("ddpg", DISCRETE, "discrete actions", "use dqn or ppo"),
    ],
)
def test_actions_that_an_algorithm_cannot_serve(algorithm: str, action: ActionSpec, what: str, remedy: str) -> None:
    assert refusal(algorithm, spec_of(action)) == (f"algo_id: {algorithm} cannot serve the {what} of Fake-v0; {remedy}")


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "sac"])
@pytest.mark.parametrize("action", [UNBOUNDED, HALF_BOUNDED])
def test_actions_without_bounds(algorithm: str, action: ActionSpec) -> None:
    message = refusal(algorithm, spec_of(action))
    assert message.startswith(f"algo_id: {algorithm} acts within bounds, and the actions of Fake-v0 have none; use ppo")


@pytest.mark.parametrize("algorithm", ["ddpg", "td3", "sac"])
def test_actions_that_would_stay_unscaled(algorithm: str) -> None:
    message = refusal(algorithm, spec_of(BOX), rescale_actions=False)
    assert message.startswith(f"rescale_actions: false leaves {algorithm}")
    assert message.endswith("set it to true")


@pytest.mark.parametrize("algorithm", ["q_learning", "sarsa"])
def test_what_a_table_cannot_hold(algorithm: str) -> None:
    message = refusal(algorithm, spec_of(DISCRETE))
    assert message.startswith(f"algo_id: {algorithm} keeps a table of discrete observations, and those of Fake-v0")
    assert "use dqn, or a wrapper" in message
    message = refusal(algorithm, spec_of(BOX, obs_sizes=(3,)))
    assert message.startswith(f"algo_id: {algorithm} keeps a table of discrete actions; those of Fake-v0 are not")
    message = refusal(algorithm, spec_of(DISCRETE, obs_sizes=(1000, 1000, 1000)))
    assert "3,000,000,000 entries for Fake-v0; use dqn" in message


def test_a_cnn_needs_images() -> None:
    assert refusal("dqn", spec_of(DISCRETE), network="cnn") == (
        f"network: cnn needs images, and the observations of Fake-v0 are [{OBS}]; use auto"
    )


def test_an_entropy_that_so_many_actions_cannot_have() -> None:
    message = refusal("sac", spec_of(DISCRETE), target_entropy=1.2)
    assert message.startswith("target_entropy: 1.2 is more than the 3 actions of Fake-v0 can have")
    assert message.endswith("use less than 1.1 (log 3), or auto")
    for fields in ({"target_entropy": 1.09}, {"target_entropy": 1.2, "ent_coef": 0.1}):
        make_algorithm(build_config({"env_id": "Fake-v0", "algo_id": "sac", **fields}, "test"), spec_of(DISCRETE))
    make_algorithm(build_config({"env_id": "Fake-v0", "algo_id": "sac", "target_entropy": 1.2}, "test"), spec_of(BOX))
