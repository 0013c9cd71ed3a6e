"""A change of our fields, said in the words of another library."""

from __future__ import annotations

from typing import Any

import pytest

from gymnasium_solver.config.cards import all_cards
from gymnasium_solver.config.parameter_names import PARAMETERS
from gymnasium_solver.runs.foreign.parameters import translate
from gymnasium_solver.runs.foreign.recover import fields


@pytest.mark.parametrize(
    ("library", "changes", "line"),
    [
        ("sb3", {"policy_lr": 0.0003}, "learning_rate=0.0003  # stable-baselines3"),
        (
            "sb3",
            {"policy_lr": {"start": 0.001, "end": 0.0}},
            "learning_rate=lambda left: 0.001 * left  # stable-baselines3",
        ),
        ("sb3", {"n_envs": 8}, "make_vec_env(env_id, n_envs=8)  # stable-baselines3"),
        ("sb3", {"hidden_dims": (64, 64)}, "policy_kwargs=dict(net_arch=[64, 64])  # stable-baselines3"),
        ("sb3", {"normalize_obs": True}, "VecNormalize(env, norm_obs=True)  # stable-baselines3"),
        ("sb3", {"value_lr": 0.001}, "(value_lr=0.001 has no counterpart)  # stable-baselines3"),
        (
            "sb3",
            {"epsilon": {"start": 1.0, "end": 0.05, "to": 0.2}},
            "exploration_initial_eps=1.0, exploration_final_eps=0.05, exploration_fraction=0.2  # stable-baselines3",
        ),
        ("cleanrl", {"policy_lr": 0.0003}, "--learning-rate 0.0003  # CleanRL"),
        ("cleanrl", {"normalize_advantages": False}, "--no-norm-adv  # CleanRL"),
        ("cleanrl", {"n_epochs": 10}, "--update-epochs 10  # CleanRL"),
        ("cleanrl", {"hidden_dims": [256]}, "(hidden_dims=[256] has no counterpart: edit the script)  # CleanRL"),
        ("rllib", {"policy_lr": 0.0003}, ".training(lr=0.0003)  # RLlib"),
        ("rllib", {"ent_coef": 0.01}, ".training(entropy_coeff=0.01)  # RLlib"),
        ("rllib", {"clip_range_vf": None}, ".training(vf_clip_param=math.inf)  # RLlib"),
        ("tianshou", {"clip_range": 0.1}, "eps_clip=0.1  # Tianshou"),
        ("tianshou", {"n_epochs": 4}, "update_step_num_repetitions=4 (repeat_per_collect before 2.0)  # Tianshou"),
    ],
)
def test_translate(library: str, changes: dict[str, Any], line: str) -> None:
    assert translate(library, changes) == [line]


def test_settings_that_are_several_of_ours() -> None:
    config = {"algo_id": "ppo", "n_envs": 4, "n_steps": 128, "batch_size": 128}
    assert translate("cleanrl", {"batch_size": 64}, config) == ["--num-minibatches 8  # CleanRL"]
    assert translate("rllib", {"n_steps": 256}, config) == [".training(train_batch_size_per_learner=1024)  # RLlib"]
    assert translate("sb3", {"update_to_data": 0.5}, {"n_envs": 4, "train_freq": 2}) == [
        "gradient_steps=4  # stable-baselines3"
    ]


def test_a_format_without_names_of_its_own_says_nothing() -> None:
    assert translate("csv", {"policy_lr": 0.1}) == []


@pytest.mark.parametrize("library", PARAMETERS)
def test_every_field_can_be_said(library: str) -> None:
    """No field of any algorithm, at its default, makes it stumble."""
    for algo_id, schema in ((card.algo_id, card.config) for card in all_cards()):
        changes = {name: field.default for name, field in schema.model_fields.items() if not field.is_required()}
        lines = translate(library, {**changes, "n_steps": 128}, {"algo_id": algo_id, "n_envs": 2})
        assert len(lines) == len({**changes, "n_steps": 128})
        assert all("\n" not in line for line in lines)


@pytest.mark.parametrize("library", PARAMETERS)
def test_fields_that_are_mapped_to_exist(library: str) -> None:
    known = {name for card in all_cards() for name in card.config.model_fields}
    assert set(PARAMETERS[library]) <= known


def test_there_and_back() -> None:
    """What is said to CleanRL is what is read from it."""
    ours = {"policy_lr": 0.0003, "n_epochs": 5, "clip_range": 0.1, "gamma": 0.98, "n_envs": 16}
    said = [line.split("  #")[0].removeprefix("--").split(" ") for line in translate("cleanrl", ours)]
    settings = {name.replace("-", "_"): float(value) for name, value in said}
    assert fields("cleanrl", "ppo", settings)[0] == ours
