"""EnvPool: the same environments in C++ on threads, for ids that a test has shown to follow Gymnasium's rules.

tests/envs/test_envpool_equivalence.py is what lets an id into the table below. Left out:
- CartPole-v1: Gymnasium's own vector class is faster.
- Taxi-v3: EnvPool gives no action masks. CliffWalking-v1: EnvPool ignores max_episode_steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.actions import ActionCodec
from gymnasium_solver.envs.engine import Step, allocate_step, environment_seeds
from gymnasium_solver.envs.faults import environment_fault
from gymnasium_solver.envs.observations import ObservationCodec
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault, MissingExtraError

Ended = Callable[[Any, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Verified:
    """An environment that EnvPool has under `pool_id`.

    EnvPool calls an ending on the last step of the time limit a truncation even when the environment itself ended
    there; Gymnasium reports both. `ended` infers it from that step's observation and reward, so that we do too.
    """

    pool_id: str
    ended: Ended
    faster_from: int  # environments from which on it beats the in-process loop on two cores, as measured
    threads: int = 0  # 0: one per core; 1 where a step costs less than waking a thread
    limit_is_rule: bool = False  # the time limit is part of the environment (its reward), not a wrapper around it


def _never(obs: Any, reward: np.ndarray) -> np.ndarray:
    return np.zeros(len(reward), bool)


def _unhealthy_hopper(obs: np.ndarray, reward: np.ndarray) -> np.ndarray:
    height, angle = obs[:, 0], obs[:, 1]
    return (height <= 0.7) | (np.abs(angle) >= 0.2) | (np.abs(obs[:, 1:]) >= 100).any(axis=1)


def _reached_goal(obs: Any, reward: np.ndarray) -> np.ndarray:
    return reward > 0


def _landed_or_crashed(obs: np.ndarray, reward: np.ndarray) -> np.ndarray:
    return np.abs(reward) == 100


VERIFIED: dict[tuple[str, tuple[tuple[str, Any], ...]], Verified] = {
    ("Acrobot-v1", ()): Verified("Acrobot-v1", lambda obs, reward: reward == 0, 2, threads=1),
    ("MountainCar-v0", ()): Verified(
        "MountainCar-v0", lambda obs, reward: (obs[:, 0] >= 0.5) & (obs[:, 1] >= 0), 8, threads=1
    ),
    ("MountainCarContinuous-v0", ()): Verified(
        "MountainCarContinuous-v0", lambda obs, reward: (obs[:, 0] >= 0.45) & (obs[:, 1] >= 0), 32, threads=1
    ),
    ("Pendulum-v1", ()): Verified("Pendulum-v1", _never, 8, threads=1),
    ("LunarLander-v3", ()): Verified("LunarLander-v3", _landed_or_crashed, 4),
    ("LunarLander-v3", (("continuous", True),)): Verified("LunarLanderContinuous-v3", _landed_or_crashed, 4),
    # A walker that crosses the finish on the very last step (1600) cannot be distinguished from one cut off there.
    ("BipedalWalker-v3", ()): Verified("BipedalWalker-v3", lambda obs, reward: reward == -100, 1),
    ("HalfCheetah-v5", ()): Verified("HalfCheetah-v5", _never, 8),
    ("Hopper-v5", ()): Verified("Hopper-v5", _unhealthy_hopper, 4),
    ("FrozenLake-v1", ()): Verified(
        "FrozenLake-v1", lambda obs, reward: np.isin(obs, (5, 7, 11, 12, 15)), 16, threads=1
    ),
    ("MiniGrid-Empty-5x5-v0", ()): Verified("MiniGrid-Empty-5x5-v0", _reached_goal, 1, threads=1, limit_is_rule=True),
    ("MiniGrid-Empty-8x8-v0", ()): Verified("MiniGrid-Empty-8x8-v0", _reached_goal, 1, threads=1, limit_is_rule=True),
}


def verified(config: Config) -> Verified | None:
    """The table's entry for the config's id and arguments."""
    same = (
        entry
        for (env_id, kwargs), entry in VERIFIED.items()
        if env_id == config.env_id and dict(kwargs) == config.env_kwargs
    )
    return next(same, None)


def obstacle(config: Config) -> str | None:
    """Why EnvPool cannot stand for the config; None if it can."""
    entry = verified(config)
    if entry is None:
        known = config.env_id in {env_id for env_id, _ in VERIFIED}
        return f"not verified with env_kwargs {config.env_kwargs}" if known else "not verified to follow the same rules"
    if config.env_wrappers or config.frame_skip > 1 or config.frame_stack > 1:
        return "EnvPool takes no wrappers"
    if entry.limit_is_rule and config.max_episode_steps is not None:
        return "EnvPool would change its rewards along with max_episode_steps"
    return None


def import_envpool() -> Any:
    try:
        import envpool
    except ImportError as error:
        raise MissingExtraError("engine: envpool", "envpool") from error
    return envpool


class EnvPoolEngine:
    """A pool is seeded where it is made, so every reset makes a new one."""

    def __init__(
        self, config: Config, spec: EnvSpec, observations: ObservationCodec, actions: ActionCodec, n_envs: int
    ) -> None:
        entry = verified(config)
        assert entry is not None
        self.spec = spec
        self.n_envs = n_envs
        self._make = import_envpool().make
        self._entry = entry
        self._observations = observations
        self._batch = actions.batch
        self._out = allocate_step(spec, n_envs)
        self._pool: Any = None

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        self.close()
        limit = {} if self._entry.limit_is_rule else {"max_episode_steps": self.spec.max_episode_steps}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # EnvPool makes spaces that Gymnasium remarks upon
                self._pool = self._make(
                    self._entry.pool_id,
                    env_type="gymnasium",
                    num_envs=self.n_envs,
                    seed=environment_seeds(seed, self.n_envs),
                    num_threads=self._entry.threads,
                    **limit,
                )
                obs, _ = self._pool.reset()
            return self._observations.batch(obs, self._out.obs), None
        except Exception as error:
            raise self._fault("reset", error) from error

    def step(self, action: np.ndarray) -> Step:
        try:
            obs, reward, terminated, truncated, _ = self._pool.step(self._batch(action))
            if truncated.any():
                terminated = terminated | (truncated & self._entry.ended(obs, reward))
            obs = self._observations.batch(obs, self._out.obs)
            return Step(obs, reward.astype(np.float32, copy=False), terminated, truncated, None)
        except Exception as error:
            raise self._fault("step", error) from error

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _fault(self, call: str, error: Exception) -> EnvironmentFault:
        return environment_fault(f"environment {self.spec.env_id} (EnvPool) failed in {call}()", error)
