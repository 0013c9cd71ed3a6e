"""One environment as the policy sees it, for watching an agent play."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.actions import action_codec, write_action_mask
from gymnasium_solver.envs.build import build_env, with_own_rewards
from gymnasium_solver.envs.observations import observation_codec


def make_env(config: Config, render_mode: str | None = None) -> gym.Env:
    """One wrapped environment: observations as the policy reads them, actions as it puts them out, own rewards."""
    return PolicyView(build_env(with_own_rewards(config), render_mode), config)


class PolicyView(gym.Wrapper):
    """The conversions of the engines around one environment; `info["action_mask"]` comes as one flat row."""

    def __init__(self, env: gym.Env, config: Config) -> None:
        super().__init__(env)
        self._observations = observation_codec(env.observation_space, config.env_id)
        self._actions = action_codec(env.action_space, config.rescale_actions, config.env_id)
        low, high = (0.0, 255.0) if self._observations.is_image else (-np.inf, np.inf)
        self.observation_space = spaces.Box(low, high, self._observations.shape, self._observations.dtype)
        spec = self._actions.spec
        if spec.kind == "discrete":
            self.action_space = spaces.Discrete(spec.sizes[0])
        elif spec.kind == "multi_discrete":
            self.action_space = spaces.MultiDiscrete(list(spec.sizes))
        else:
            self.action_space = spaces.Box(-np.inf, np.inf, (spec.dim,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return self._observed(obs), self._masked(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        (one,) = self._actions.rows(self._actions.batch(np.asarray(action)[None]))
        obs, reward, terminated, truncated, info = self.env.step(one)
        return self._observed(obs), reward, terminated, truncated, self._masked(info)

    def _observed(self, obs: Any) -> np.ndarray:
        out = np.zeros(self._observations.shape, self._observations.dtype)
        self._observations.write(obs, out)
        return out

    def _masked(self, info: dict[str, Any]) -> dict[str, Any]:
        if "action_mask" not in info or not self._actions.spec.sizes:
            return info
        row = np.zeros(sum(self._actions.spec.sizes), bool)
        write_action_mask(info["action_mask"], row)
        return {**info, "action_mask": row}
