"""Which engine steps the environments of a config, and why."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registration

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import envpool_engine, native
from gymnasium_solver.envs.actions import ActionCodec, action_codec, random_action
from gymnasium_solver.envs.build import build_env, registered_spec, time_limit, with_own_rewards
from gymnasium_solver.envs.compiled import choice as compiled
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.envpool_engine import VERIFIED, EnvPoolEngine
from gymnasium_solver.envs.faults import environment_fault
from gymnasium_solver.envs.local import SyncEngine
from gymnasium_solver.envs.native import NativeEngine
from gymnasium_solver.envs.observations import ObservationCodec, observation_codec
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.envs.workers import AsyncEngine, available_cores
from gymnasium_solver.envs.wrappers import changes_reward
from gymnasium_solver.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium_solver.envs.compiled.engine import CompiledEngine

SLOW_STEP_SECONDS = 1e-3  # from here on the message to a worker process (about 0.1 ms) is cheap beside the step
NATIVE_FROM = 6  # environments; a vector class costs some 40 µs per step whatever their number, one CartPole 8 µs
TIMING_SECONDS = 0.05
TIMING_STEPS = 20


@dataclass(frozen=True)
class Inspection:
    """What one built environment says about all of them."""

    registration: Registration | None
    observation_space: gym.Space
    observations: ObservationCodec
    actions: ActionCodec
    max_episode_steps: int | None
    reward_threshold: float | None
    has_action_mask: bool
    step_seconds: float


@overload
def make_engine(config: Config, n_envs: int, *, evaluation: Literal[True]) -> VectorEngine: ...
@overload
def make_engine(config: Config, n_envs: int, *, on_host: Literal[True]) -> VectorEngine: ...
@overload
def make_engine(config: Config, n_envs: int) -> VectorEngine | CompiledEngine: ...


def make_engine(
    config: Config, n_envs: int, *, evaluation: bool = False, on_host: bool = False
) -> VectorEngine | CompiledEngine:
    """N environments of the config. Evaluation always runs on Gymnasium's own, and on its own rewards.

    `on_host` is for whoever steps them by itself: never the compiled engine, which only a compiled program steps.
    """
    if evaluation:
        config = with_own_rewards(config)
    seen = inspect(config)
    kind, reason = _choose(config, n_envs, seen, evaluation, on_host)
    spec = _spec(config, seen, kind, reason)
    if kind == "compiled":
        from gymnasium_solver.envs.compiled.engine import compiled_engine  # it imports JAX

        return compiled_engine(config, spec, n_envs)
    if kind == "envpool":
        return EnvPoolEngine(config, spec, seen.observations, seen.actions, n_envs)
    if kind == "gymnasium/native":
        assert seen.registration is not None
        return NativeEngine(config, seen.registration, spec, seen.observations, seen.actions, n_envs)
    if kind == "gymnasium/async":
        return AsyncEngine(config, spec, n_envs)
    return SyncEngine(partial(build_env, config), spec, seen.observations, seen.actions, n_envs)


def describe(config: Config) -> EnvSpec:
    """The spec that training with this config would have, from one environment."""
    seen = inspect(config)
    return _spec(config, seen, *_choose(config, getattr(config, "n_envs", 1), seen))


def inspect(config: Config) -> Inspection:
    env = build_env(config)
    try:
        observations = observation_codec(env.observation_space, config.env_id)
        actions = action_codec(env.action_space, config.rescale_actions, config.env_id)
        registration = registered_spec(config)
        try:
            _, info = env.reset(seed=config.seed)
            step_seconds = _time_step(env, info, actions, config.seed)
        except Exception as error:
            raise environment_fault(f"environment {config.env_id} failed on trial", error) from error
        threshold = config.reward_threshold
        known = registration or env.unwrapped.spec  # a pure environment has one without being registered
        if threshold is None and known is not None and known.reward_threshold is not None:
            threshold = float(known.reward_threshold)
        return Inspection(
            registration=registration,
            observation_space=env.observation_space,
            observations=observations,
            actions=actions,
            max_episode_steps=time_limit(env),
            reward_threshold=threshold,
            has_action_mask=bool(actions.spec.sizes) and "action_mask" in info,
            step_seconds=step_seconds,
        )
    finally:
        env.close()


def _time_step(env: gym.Env, info: dict[str, Any], actions: ActionCodec, seed: int) -> float:
    """Mean seconds of a step under random actions; of the faster half, since the first ones set things up."""
    rng = np.random.default_rng(seed)
    spent: list[float] = []
    deadline = time.perf_counter() + TIMING_SECONDS
    while len(spent) < TIMING_STEPS and (len(spent) < 2 or time.perf_counter() < deadline):
        (action,) = actions.rows(actions.batch(random_action(actions.spec, info.get("action_mask"), rng)[None]))
        start = time.perf_counter()
        *_, terminated, truncated, info = env.step(action)
        spent.append(time.perf_counter() - start)
        if terminated or truncated:
            _, info = env.reset()
    settled = sorted(spent)[: max(1, len(spent) // 2 + 1)]
    return sum(settled) / len(settled)


def _choose(
    config: Config, n_envs: int, seen: Inspection, evaluation: bool = False, on_host: bool = False
) -> tuple[str, str]:
    may_compile = not evaluation and not on_host
    if config.engine == "compiled" and may_compile:
        compiled.require_served(config)
        return "compiled", "asked for"
    if config.engine == "envpool" and not evaluation:
        _require_envpool(config)
        return "envpool", "asked for"
    kind, reason = _vectorization(config, n_envs, seen)
    if evaluation:
        return kind, f"evaluation runs on Gymnasium; {reason}"
    if config.engine in ("gymnasium", "compiled") or config.vectorization != "auto":
        return kind, reason
    if may_compile and compiled.obstacle(config) is None:
        return "compiled", "a pure environment, stepped inside the program that learns"
    entry = envpool_engine.verified(config)
    if entry is None or envpool_engine.obstacle(config) is not None or n_envs < entry.faster_from:
        return kind, reason
    if importlib.util.find_spec("envpool") is None:
        return kind, f"{reason}; EnvPool would be faster: pip install 'gymnasium-solver[envpool]'"
    return "envpool", "verified to follow Gymnasium's rules, and faster"


def _require_envpool(config: Config) -> None:
    envpool_engine.import_envpool()
    obstacle = envpool_engine.obstacle(config)
    if obstacle is not None:
        ids = ", ".join(_written(env_id, arguments) for env_id, arguments in VERIFIED)
        raise ConfigError(
            f"engine: envpool cannot run {config.env_id}: {obstacle}; "
            f"use engine: auto, or one of {ids}, without wrappers"
        )


def _written(env_id: str, arguments: tuple[tuple[str, Any], ...]) -> str:
    return f"{env_id} {dict(arguments)}" if arguments else env_id


def _vectorization(config: Config, n_envs: int, seen: Inspection) -> tuple[str, str]:
    obstacle = native.obstacle(config, seen.registration)
    wanted = config.vectorization
    if wanted == "native" and obstacle is not None:
        raise ConfigError(f"vectorization: native cannot run {config.env_id}: {obstacle}; use auto, sync or async")
    if wanted != "auto":
        return f"gymnasium/{wanted}", "asked for"
    if obstacle is None and n_envs >= NATIVE_FROM:
        return "gymnasium/native", "the environment has its own vector class"
    took = f"a step takes {seen.step_seconds * 1e3:.2g} ms"
    if seen.step_seconds > SLOW_STEP_SECONDS and n_envs > 1 and available_cores() > 1:
        return "gymnasium/async", took
    return "gymnasium/sync", took


def _spec(config: Config, seen: Inspection, engine: str, reason: str) -> EnvSpec:
    return EnvSpec(
        env_id=config.env_id,
        obs_shape=seen.observations.shape,
        obs_dtype=seen.observations.dtype,
        is_image=seen.observations.is_image,
        action=seen.actions.spec,
        max_episode_steps=seen.max_episode_steps,
        reward_threshold=seen.reward_threshold,
        has_action_mask=seen.has_action_mask and engine != "envpool",
        engine=engine,
        reason="; ".join(filter(None, (reason, seen.observations.note))),
        changes_reward=any(map(changes_reward, config.env_wrappers)),
        obs_sizes=seen.observations.sizes,
    )
