from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver import trust
from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs import VectorEngine, make_engine

# Environments of the tests are named as a user names his own: module:Class, found in the working directory.
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def in_this_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])


@pytest.fixture(autouse=True)
def named_by_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that makes a config names what is in it, as the person does who starts a training."""
    monkeypatch.setattr(trust.gate, "_level", lambda reference: "asked")


@pytest.fixture
def config() -> Callable[..., PPOConfig]:
    def make(env_id: str, **fields: Any) -> PPOConfig:
        own = {"AnySpace", "Clock", "Masked", "Faulty"}
        name = f"sample_environments:{env_id}" if env_id in own else env_id
        return PPOConfig(env_id=name, **{"n_envs": 1, "batch_size": 1.0, **fields})

    return make


@pytest.fixture
def engine(config: Callable[..., PPOConfig]) -> Iterator[Callable[..., VectorEngine]]:
    made: list[VectorEngine] = []

    def make(env_id: str, n_envs: int, *, evaluation: bool = False, **fields: Any) -> VectorEngine:
        made.append(make_engine(config(env_id, **fields), n_envs, evaluation=evaluation))
        return made[-1]

    yield make
    for one in made:
        one.close()
