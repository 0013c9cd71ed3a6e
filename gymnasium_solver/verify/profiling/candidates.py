"""Other engines and other numbers of environments that a config could be trained with."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config, OffPolicyConfig, OnPolicyConfig
from gymnasium_solver.envs import describe, envpool_engine, native
from gymnasium_solver.envs.build import registered_spec
from gymnasium_solver.envs.compiled import choice as compiled
from gymnasium_solver.envs.workers import available_cores
from gymnasium_solver.errors import SolverError

MOST_ENVS = 1024
LEAST_STEPS = 16  # of each environment in a rollout; with fewer, advantages see next to nothing of an episode
# Times the env steps between updates, at most: fewer updates cost more than steps per second bring. A replay is learnt
# from as much as before, only in larger portions.
MOST_APART, MOST_APART_REPLAY = 2, 8
WORKERS_FROM = 2e-4  # seconds of a step of all environments, from which on telling worker processes can pay


@dataclass(frozen=True, eq=False)
class Candidate:
    engine: str
    config: Config
    change: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.engine}, {self.config.n_envs} environments × {self.config.n_steps} steps"


def engines(config: Config, current: str, step_seconds: float, notes: list[str]) -> Iterator[str]:
    """The current one first, then those that could serve in its place; `step_seconds` is a step of all environments."""
    yield current
    kinds = ["gymnasium/sync"]
    if compiled.obstacle(config) is None:
        kinds.insert(0, "compiled")
    if native.obstacle(config, registered_spec(config)) is None:
        kinds.append("gymnasium/native")
    if envpool_engine.obstacle(config) is None:
        if importlib.util.find_spec("envpool") is not None:
            kinds.append("envpool")
        else:
            notes.append(
                "EnvPool has this environment too: pip install 'gymnasium-solver[envpool]', then profile again"
            )
    is_slow = current == "gymnasium/sync" and step_seconds > WORKERS_FROM
    if is_slow and config.n_envs > 1 and available_cores() > 1:
        kinds.append("gymnasium/async")
    yield from (kind for kind in kinds if kind != current)


def with_engine(config: Config, engine: str, change: Mapping[str, Any] = MappingProxyType({})) -> Candidate:
    kind, _, vectorization = engine.partition("/")
    full = {**change, "engine": kind, "vectorization": vectorization or "auto"}
    return Candidate(engine, build_config({**to_dict(config), **full}, config.env_id), full)


def resized(config: Config, engine: str, factor: float) -> Candidate | None:
    """As many times the environments, with as many env steps between updates as before where that is possible."""
    n_envs = config.n_envs * factor
    if not n_envs.is_integer() or not 1 <= n_envs <= MOST_ENVS or (n_envs == 1 and engine == "gymnasium/async"):
        return None
    change: dict[str, Any] = {"n_envs": int(n_envs)}
    if isinstance(config, OffPolicyConfig):
        train_freq = config.n_envs * config.train_freq / n_envs
        train_freq = int(train_freq) if train_freq.is_integer() else config.train_freq
        rounds = max(1, round(config.rollout / n_envs / train_freq))
        change |= {"train_freq": train_freq, "n_steps": rounds * train_freq}
    else:
        n_steps, least = config.rollout / n_envs, LEAST_STEPS if isinstance(config, OnPolicyConfig) else 1
        if n_steps.is_integer() and n_steps >= min(least, config.n_steps):
            change["n_steps"] = int(n_steps)
    try:
        candidate = with_engine(config, engine, change)
    except SolverError:
        return None
    most = MOST_APART_REPLAY if isinstance(config, OffPolicyConfig) else MOST_APART
    apart = env_steps_between_updates(candidate.config) / env_steps_between_updates(config)
    return candidate if apart <= most else None


def env_steps_between_updates(config: Config) -> int:
    return config.n_envs * config.train_freq if isinstance(config, OffPolicyConfig) else config.rollout


def shortest_change(config: Config, candidate: Candidate) -> dict[str, Any]:
    """Only what differs, no engine where it would be chosen anyway, and what was chosen by hand as it was."""
    before, names = to_dict(config), ("engine", "vectorization")
    chosen = {name: before[name] for name in names if before[name] != "auto"}
    changed = {name: value for name, value in candidate.change.items() if before[name] != value}
    free = {name: value for name, value in changed.items() if name not in names}
    if free and describe(build_config({**before, **free}, config.env_id)).engine == candidate.engine:
        return free | chosen
    return chosen | changed
