"""Which clock a config runs on: env steps, or updates where there are no environments to step."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from gymnasium_solver.config.base import Count, NetworkFields
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.errors import ConfigError


class ClonedConfig(NetworkFields):
    """Of an algorithm that learns from a dataset."""

    algo_id: Literal["cloned"] = "cloned"
    max_updates: Annotated[Count, Field(description="gradient steps to train for")] = 20_000


def cloned(**fields: object) -> ClonedConfig:
    return ClonedConfig.model_validate({"env_id": "CartPole-v1", **fields})


def test_the_clock_follows_from_the_budget() -> None:
    online = load_config("CartPole-v1:ppo")
    assert (online.clock, online.budget) == ("env_steps", online.max_env_steps)
    offline = cloned(max_updates="5e3")
    assert (offline.clock, offline.budget) == ("updates", 5000)


def test_a_config_without_environments_has_none_of_their_fields() -> None:
    fields = to_dict(cloned())
    assert fields["max_updates"] == 20_000
    assert not {"max_env_steps", "n_envs", "n_steps", "bonus"} & fields.keys()
    assert "max_updates" not in to_dict(load_config("CartPole-v1:ppo"))
    with pytest.raises(ValidationError, match="max_env_steps"):
        cloned(max_env_steps=1000)


def test_schedules_run_on_the_clock_of_the_config() -> None:
    config = cloned(policy_lr={"start": 1.0, "end": 0.0, "from": 5000, "to": 15_000, "clock": "updates"})
    assert isinstance(config.policy_lr, Schedule)
    assert [config.policy_lr.at(done, config.budget) for done in (0, 5000, 10_000, 20_000)] == [1.0, 1.0, 0.5, 0.0]
    assert to_dict(config)["policy_lr"]["clock"] == "updates"
    assert "clock" not in to_dict(cloned(policy_lr={"start": 1.0}))["policy_lr"], "as it was written"


def test_a_schedule_in_the_wrong_clock_is_refused_with_the_remedy() -> None:
    wrong = {"policy_lr": {"start": 1e-3, "to": 5000, "clock": "updates"}}
    with pytest.raises(ConfigError) as refused:
        load_config("CartPole-v1:ppo", wrong)
    assert str(refused.value) == (
        "CartPole-v1:ppo: policy_lr: its schedule counts updates, and this algorithm trains for max_env_steps; give "
        "`from`, `to` and `warmup` in env steps or as fractions, and leave `clock` out"
    )
    with pytest.raises(ValidationError, match="counts env_steps, and this algorithm trains for max_updates"):
        cloned(policy_lr={"start": 1e-3, "clock": "env_steps"})


def test_a_schedule_that_would_begin_after_the_end() -> None:
    """Most likely counted on the other clock."""
    late = {"policy_lr": {"start": 1e-3, "from": 200_000, "to": 900_000}}
    with pytest.raises(ConfigError, match=r"policy_lr: `from` \(200000\) is past the end of training \(max_env_steps"):
        load_config("CartPole-v1:ppo", {**late, "max_env_steps": 100_000})
    assert load_config("CartPole-v1:ppo", {**late, "max_env_steps": 1_000_000})
    with pytest.raises(ValidationError, match=r"past the end of training \(max_updates 20000\)"):
        cloned(**late)


def test_the_budget_of_the_other_clock_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_updates: this algorithm trains for max_env_steps; set that instead"):
        load_config("CartPole-v1:ppo", {"max_updates": 1000})
