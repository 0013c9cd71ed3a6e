"""A config is typed, frozen and consistent; what it refuses, it names."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from gymnasium_solver.config.cards import all_cards, card_of, names
from gymnasium_solver.config.schema import A2CConfig, Config, PPOConfig, ReinforceConfig, Schedule


def ppo(**fields: Any) -> PPOConfig:
    """A rollout of 8 × 32 = 256."""
    return PPOConfig.model_validate({"env_id": "Any-v0", "n_envs": 8, "n_steps": 32, **fields})


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        ppo(**fields)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("batch_size", "minibatch"),
    [
        (64, 64),
        (256, 256),
        (2, 2),
        (0.25, 64),
        (1.0, 256),
        (1, 256),
        (1 / 128, 2),
        ("0.5", 128),
        ("64", 64),
        (64.0, 64),
    ],
)
def test_batch_size_is_rows_or_a_share_of_the_rollout(batch_size: Any, minibatch: int) -> None:
    assert ppo(batch_size=batch_size).minibatch == minibatch


def test_a_fraction_with_no_exact_binary_form_still_divides() -> None:
    assert ppo(n_envs=10, n_steps=30, batch_size=0.1).minibatch == 30
    assert ppo(n_envs=10, n_steps=30, batch_size=0.333333).minibatch == 100


@pytest.mark.parametrize(
    ("batch_size", "nearest"), [(100, "128"), (60, "64"), (255, "256"), (5000, "256"), (0.3, "0.25"), (0.7, "0.5")]
)
def test_batch_size_that_does_not_divide_names_value_and_nearest(batch_size: float, nearest: str) -> None:
    message = refusal(batch_size=batch_size)
    assert message.startswith(f"batch_size: {batch_size} does not divide the rollout (n_envs 8 × n_steps 32 = 256)")
    assert message.endswith(f"the nearest that does is {nearest}")


@pytest.mark.parametrize("batch_size", [0.001, 0.005, 0.3, 100, 5000])
def test_the_nearest_batch_size_named_is_valid(batch_size: float) -> None:
    nearest = refusal(batch_size=batch_size).rpartition(" ")[2]
    ppo(batch_size=nearest)


def test_a_large_batch_size_is_named_in_full() -> None:
    assert refusal(batch_size=1_234_567).startswith("batch_size: 1234567 ")


def test_batch_size_above_one_is_whole() -> None:
    assert refusal(batch_size=1.5) == "batch_size: 1.5 is neither a whole number nor a fraction in (0, 1]"


def test_a_batch_of_one_cannot_be_normalised() -> None:
    assert "batch_size" in (message := refusal(batch_size=1 / 256))
    assert "normalize_advantages: false" in message
    assert ppo(batch_size=1 / 256, normalize_advantages=False).minibatch == 1


def test_a_rollout_of_one_cannot_be_normalised_either() -> None:
    assert "normalize_advantages: false" in refusal(n_envs=1, n_steps=1, batch_size=1)


def test_max_env_steps_holds_at_least_one_rollout() -> None:
    message = refusal(max_env_steps=255)
    assert message.startswith("max_env_steps: 255 is less than one rollout (n_envs 8 × n_steps 32 = 256)")
    assert message.endswith("use at least 256")
    assert ppo(max_env_steps=256).max_env_steps == 256


@pytest.mark.parametrize("schema", [A2CConfig, ReinforceConfig])
def test_max_env_steps_is_checked_for_every_on_policy_algorithm(schema: type[Config]) -> None:
    with pytest.raises(ValidationError, match="less than one rollout"):
        schema.model_validate({"env_id": "Any-v0", "n_envs": 8, "n_steps": 32, "max_env_steps": 255})


def test_is_frozen() -> None:
    config = ppo()
    with pytest.raises(ValidationError, match="frozen"):
        config.gamma = 0.5  # type: ignore[misc]
    assert config.gamma == 0.99


def test_two_configs_share_no_defaults() -> None:
    ppo().env_kwargs["render_mode"] = "human"
    assert ppo().env_kwargs == {}


@pytest.mark.parametrize("schema", [card.config for card in all_cards()])
def test_unknown_field_is_an_error(schema: type[Config]) -> None:
    with pytest.raises(ValidationError) as caught:
        schema.model_validate({"env_id": "Any-v0", "learning_rate": 1})
    (error,) = caught.value.errors()
    assert (error["type"], error["loc"]) == ("extra_forbidden", ("learning_rate",))


@pytest.mark.parametrize("algo_id", names())
def test_an_algorithm_refuses_the_name_of_another(algo_id: str) -> None:
    assert card_of(algo_id).config.model_validate({"env_id": "Any-v0"}).algo_id == algo_id
    other = next(name for name in names() if name != algo_id)
    with pytest.raises(ValidationError, match="algo_id"):
        card_of(algo_id).config.model_validate({"env_id": "Any-v0", "algo_id": other})


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("policy_lr", "3e-4", 0.0003),
        ("max_env_steps", "1_000_000", 1_000_000),
        ("max_env_steps", "1e6", 1_000_000),
        ("max_env_steps", 1e6, 1_000_000),
        ("seed", "7", 7),
        ("gamma", ".5", 0.5),
        ("reward_threshold", "-2e2", -200.0),
        ("clip_range_vf", "1e-1", 0.1),
    ],
)
def test_numbers_written_as_strings(field: str, text: Any, value: float) -> None:
    read = getattr(ppo(**{field: text}), field)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("value", ["2.5", 2.5, "many", "1e-3", "inf", None, [4]])
def test_a_count_takes_whole_numbers_only(value: Any) -> None:
    refusal(n_epochs=value)


@pytest.mark.parametrize(
    "fields",
    [
        {"gamma": 1.01},
        {"gamma": -0.01},
        {"gae_lambda": 1.01},
        {"seed": -1},
        {"seed": 2**31},
        {"n_envs": 0},
        {"n_epochs": 0},
        {"policy_lr": -1e-9},
        {"policy_lr": {"start": 1, "end": -1e-9}},
        {"value_lr": -1e-9},
        {"ent_coef": -0.1},
        {"vf_coef": -0.1},
        {"clip_range": 0},
        {"clip_range_vf": 0},
        {"max_grad_norm": 0},
        {"target_kl": 0},
        {"weight_decay": -0.1},
        {"hidden_dims": [64, 0]},
        {"hidden_dims": []},
        {"batch_size": 0},
        {"gamma": float("nan")},
        {"log_std_init": float("-inf")},
        {"env_id": ""},
    ],
)
def test_a_value_out_of_range_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=re.escape(next(iter(fields)))):
        ppo(**fields)


def test_the_ends_of_closed_ranges_are_valid() -> None:
    config = ppo(gamma=1, gae_lambda=0, seed=2**31 - 1, policy_lr=0, ent_coef=0, weight_decay=0)
    assert (config.gamma, config.gae_lambda, config.seed, config.policy_lr) == (1, 0, 2**31 - 1, 0)


def test_a_clip_range_may_decay_to_zero() -> None:
    assert ppo(clip_range={"start": 0.2, "end": 0}).clip_range == Schedule(start=0.2, end=0)


def test_weight_decay_that_the_optimizer_would_ignore_is_refused() -> None:
    assert refusal(weight_decay=0.1, optimizer="adam").startswith("weight_decay: adam ignores it; use optimizer: adamw")
    assert ppo(weight_decay=0.1, optimizer="adamw").weight_decay == 0.1


def test_one_hidden_layer_may_be_written_as_a_number() -> None:
    assert ppo(hidden_dims=32).hidden_dims == (32,)
    assert ppo(hidden_dims=[32, "16"]).hidden_dims == (32, 16)


def test_what_may_be_unset_may_be_none() -> None:
    config = ppo(target_kl=None, max_grad_norm=None, clip_range_vf=None, value_lr=None, reward_threshold=None)
    assert config.max_grad_norm is None
