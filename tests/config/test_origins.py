"""Every field says what it means, and where its value was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gymnasium_solver.config.cards import names
from gymnasium_solver.config.load import SHIPPED, load_config, to_dict
from gymnasium_solver.config.origins import described_config

MINE = """
env_id: CartPole-v1
gamma: 0.9
dqn:
  n_envs: 2
  train_freq: 2
  policy_lr: {start: 0.01, end: 0}
"""


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("config") / "environments" / "Mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(MINE, encoding="utf-8")
    return path


@pytest.mark.parametrize("algo_id", names())
def test_every_field_of_every_algorithm_is_described(algo_id: str) -> None:
    env_id = "Pendulum-v1" if algo_id in ("td3", "ddpg", "sac") else "FrozenLake-v1"
    assert not [name for name, field in described_config(f"{env_id}:{algo_id}").items() if not field.description]


def test_values_are_those_of_the_config() -> None:
    overrides = ["policy_lr.end=0.001", "buffer_size=5000"]
    found = described_config("LunarLander-v3:dqn", overrides)
    assert {name: field.value for name, field in found.items()} == to_dict(load_config("LunarLander-v3:dqn", overrides))


def test_where_values_come_from(own_file: Path) -> None:
    found = described_config("Mine:dqn", ["batch_size=16", "policy_lr.end=0.001"])
    sources = {name: (field.source, field.file) for name, field in found.items()}
    assert sources["gamma"] == sources["env_id"] == ("environment", own_file)
    assert sources["n_envs"] == ("variant", own_file)
    assert sources["batch_size"] == sources["policy_lr"] == ("override", None)
    assert sources["algo_id"] == ("name", None)
    assert sources["n_steps"] == ("derived", None), "an epoch of about a thousand steps"
    assert sources["tau"] == sources["seed"] == ("default", None)
    assert found["n_envs"].description == "environments stepped side by side"


def test_a_shipped_file_and_a_variant_that_no_file_has() -> None:
    shipped = SHIPPED / "ALE-Pong-v5.yaml"
    assert described_config("ALE/Pong-v5:ppo")["env_kwargs"][1:3] == ("environment", shipped)
    chosen = described_config("Blackjack-v1:dqn")
    assert chosen["buffer_size"].source == chosen["hidden_dims"].source == "spaces"
    assert chosen["n_steps"].source == "derived" and chosen["gamma"].source == "default"
    assert chosen["env_id"].source == chosen["algo_id"].source == "name"


def test_what_an_algorithm_declares_anew_keeps_its_meaning() -> None:
    assert described_config("CartPole-v1:a2c")["policy_lr"].description == "learning rate"
