"""Rollouts: the current policy steps every environment n_steps times into one preallocated batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault

Batch = dict[str, np.ndarray]


def require_finite(name: str, values: np.ndarray, env_id: str, where: str = "step {} of the rollout") -> None:
    """`values` are [T, N, …]; one that is no number would spread through the learner without a trace."""
    # The sum is finite only if every value is: the quick way out, taken at every step of an evaluation.
    if values.dtype == np.uint8 or np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    t, n = np.argwhere(~np.isfinite(values))[0][:2]
    components = values[t, n].ravel()
    broken = np.flatnonzero(~np.isfinite(components))
    shown = ", ".join(map(str, broken[:4])) + (", …" if len(broken) > 4 else "")
    place = f" in component {shown} of {components.size}" if components.size > 1 else ""
    raise EnvironmentFault(
        f"{env_id} returned a non-finite {name} ({components[broken[0]]}{place}) in environment {n}, "
        f"{where.format(t)}; fix the environment, or bound its values with a wrapper"
    )


class Collector:
    """Holds the environments' side of training between rollouts: the current observation and episodes in flight."""

    def __init__(self, engine: VectorEngine, n_steps: int, act: Callable[..., Any], seed: int) -> None:
        self.engine, self.n_steps, self._act = engine, n_steps, act
        self.batch = self.empty_batch(engine.spec, engine.n_envs, n_steps)
        # Episodes are told in what the environment pays, whatever a wrapper makes of it for the learner.
        self._own_reward = np.zeros_like(self.batch["reward"]) if engine.spec.changes_reward else None
        self.restart(seed)

    @staticmethod
    def empty_batch(spec: EnvSpec, n_envs: int, n_steps: int) -> Batch:
        rows = (n_steps, n_envs)
        components = (spec.action.dim,) if spec.action.kind != "discrete" else ()
        action_dtype = np.float32 if spec.action.kind == "box" else np.int32
        batch: Batch = {
            "obs": np.zeros((n_steps + 1, n_envs, *spec.obs_shape), spec.obs_dtype),
            "action": np.zeros((*rows, *components), action_dtype),
            "reward": np.zeros(rows, np.float32),
            "terminated": np.zeros(rows, bool),
            "truncated": np.zeros(rows, bool),
            "valid": np.zeros(rows, bool),
        }
        if spec.has_action_mask:
            batch["action_mask"] = np.ones((*rows, sum(spec.action.sizes)), bool)
            batch["final_action_mask"] = np.ones(
                (n_envs, sum(spec.action.sizes)), bool
            )  # of the observation at the end
        return batch

    def restart(self, seed: int) -> None:
        """Begin anew in every environment, from a seed: a point that a resumed run can return to."""
        n_envs = self.engine.n_envs
        self._resetting = np.zeros(n_envs, bool)
        self._return, self._length = np.zeros(n_envs), np.zeros(n_envs, np.int64)
        self._actions: list[np.ndarray] = []
        self._obs, self._mask = self.engine.reset(seed)

    @property
    def mask(self) -> np.ndarray | None:
        """Actions allowed where the environments stand."""
        return self._mask

    def collect(self, actor: Any, noise: np.ndarray) -> tuple[Batch, list[tuple[float, int]]]:
        """One rollout, and (return, length) of the episodes that ended in it."""
        self.advance(actor, noise, 0, self.n_steps)
        return self.finish()

    def advance(self, actor: Any, noise: np.ndarray, start: int, stop: int) -> None:
        """Rows start … stop-1 of the batch, and the observation that follows them."""
        obs, mask = self.batch["obs"], self.batch.get("action_mask")
        for t in range(start, stop):
            obs[t] = self._obs
            if mask is not None and self._mask is not None:
                mask[t] = self._mask
            action = np.asarray(self._act(actor, obs[t], noise[t], None if mask is None else mask[t]))
            self._step(t, action)
        obs[stop] = self._obs
        if mask is not None and self._mask is not None:
            self.batch["final_action_mask"][:] = self._mask
        paid = (self.batch["reward"],) if self._own_reward is None else (self.batch["reward"], self._own_reward)
        for name, values in (("obs", obs[start : stop + 1]), *(("reward", one[start:stop]) for one in paid)):
            require_finite(name, values, self.engine.spec.env_id)

    def replay(self, actions: np.ndarray) -> None:
        """Bring freshly restarted environments to where these actions [K·n_steps, N, …] left them."""
        for start in range(0, len(actions), self.n_steps):
            for t in range(self.n_steps):
                self._step(t, actions[start + t])
            self.finish()
        self._actions = [actions]

    def keep_actions(self) -> None:
        """The rollout was learnt from: its actions are part of the way to here."""
        self._actions.append(self.batch["action"].copy())

    def actions_since_restart(self) -> np.ndarray | None:
        return np.concatenate(self._actions) if self._actions else None

    def _step(self, t: int, action: np.ndarray) -> None:
        batch = self.batch
        step = self.engine.step(action)
        batch["action"][t] = action
        batch["reward"][t] = step.reward
        if self._own_reward is not None:
            self._own_reward[t] = step.own_reward
        batch["terminated"][t] = step.terminated
        batch["truncated"][t] = step.truncated
        batch["valid"][t] = ~self._resetting
        self._resetting = step.terminated | step.truncated
        self._obs, self._mask = step.obs, step.action_mask

    def finish(self) -> tuple[Batch, list[tuple[float, int]]]:
        """The rollout, whole, and (return, length) of the episodes that ended in it. The next one overwrites it."""
        return self.batch, self._ended_episodes(self.batch["terminated"] | self.batch["truncated"])

    def _ended_episodes(self, done: np.ndarray) -> list[tuple[float, int]]:
        """Sums since each environment's last ending; reset steps count neither reward nor length."""
        valid = self.batch["valid"]
        paid = self.batch["reward"] if self._own_reward is None else self._own_reward
        returns = np.cumsum(np.where(valid, paid, 0.0), axis=0, dtype=np.float64) + self._return
        lengths = np.cumsum(valid, axis=0) + self._length
        self._return, self._length = returns[-1].copy(), lengths[-1].copy()
        base_return, base_length = np.zeros(self.engine.n_envs), np.zeros(self.engine.n_envs, np.int64)
        ended = []
        for t, n in zip(*np.nonzero(done), strict=True):
            ended.append((float(returns[t, n] - base_return[n]), int(lengths[t, n] - base_length[n])))
            base_return[n], base_length[n] = returns[t, n], lengths[t, n]
        self._return -= base_return
        self._length -= base_length
        return ended
