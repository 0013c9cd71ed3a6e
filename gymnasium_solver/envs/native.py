"""An environment's own vector class, when Gymnasium's registry has one (CartPole: one NumPy step for all)."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registration
from gymnasium.envs.registration import load_env_creator
from gymnasium.vector import AutoresetMode

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.actions import ActionCodec, write_action_mask
from gymnasium_solver.envs.engine import Step, allocate_step, environment_seeds
from gymnasium_solver.envs.faults import environment_fault
from gymnasium_solver.envs.observations import ObservationCodec
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault


def obstacle(config: Config, registration: Registration | None) -> str | None:
    """Why the vector class cannot stand for the config; None if it can."""
    if registration is None or registration.vector_entry_point is None:
        return "it has no vector class of its own"
    if str(registration.vector_entry_point).startswith("gymnasium.envs.phys2d"):
        return "its vector class is a JAX one, slower here than in process"
    if config.env_wrappers or config.frame_skip > 1 or config.frame_stack > 1:
        return "its vector class takes no wrappers"
    entry_point = registration.vector_entry_point
    creator: Any = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    accepted = inspect.signature(creator).parameters
    foreign = [name for name in config.env_kwargs if name not in accepted]
    if foreign:
        return f"its vector class does not take {', '.join(foreign)}"
    if getattr(creator, "metadata", {}).get("autoreset_mode") is not AutoresetMode.NEXT_STEP:
        return "its vector class does not reset on the next step"
    return None


class NativeEngine:
    """One call steps them all; nothing is converted when nothing has to be."""

    def __init__(
        self,
        config: Config,
        registration: Registration,
        spec: EnvSpec,
        observations: ObservationCodec,
        actions: ActionCodec,
        n_envs: int,
    ) -> None:
        self.spec = spec
        self.n_envs = n_envs
        self._registration = registration
        self._arguments = dict(config.env_kwargs)
        if config.max_episode_steps is not None:
            self._arguments["max_episode_steps"] = config.max_episode_steps
        self._observations = observations
        self._batch = actions.batch
        self._out = allocate_step(spec, n_envs)
        self._envs: Any = None

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        self.close()
        try:
            self._envs = gym.make_vec(
                self._registration, self.n_envs, vectorization_mode="vector_entry_point", **self._arguments
            )
            obs, info = self._envs.reset(seed=environment_seeds(seed, 1)[0])
            return self._observations.batch(obs, self._out.obs), self._mask(info)
        except Exception as error:
            raise self._fault("reset", error) from error

    def step(self, action: np.ndarray) -> Step:
        try:
            obs, reward, terminated, truncated, info = self._envs.step(self._batch(action))
            obs = self._observations.batch(obs, self._out.obs)
            return Step(obs, np.asarray(reward, np.float32), terminated, truncated, self._mask(info))
        except Exception as error:
            raise self._fault("step", error) from error

    def close(self) -> None:
        if self._envs is not None:
            self._envs.close()
            self._envs = None

    def _mask(self, info: dict[str, Any]) -> np.ndarray | None:
        masks = self._out.action_mask
        if masks is None:
            return None
        values = info.get("action_mask")
        present = info.get("_action_mask", np.full(self.n_envs, values is not None))
        for i, row in enumerate(masks):
            write_action_mask(values[i] if values is not None and present[i] else None, row)
        return masks

    def _fault(self, call: str, error: Exception) -> EnvironmentFault:
        return environment_fault(f"environment {self.spec.env_id} (vector class) failed in {call}()", error)
