"""Experience from environments stepped on the host, into one preallocated window of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from gymnasium_solver.algorithms.interface import Algorithm, Column
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.parts import Arrays, Chunk, Columns, Episode

ACTIONS = "actions"  # tensor of a checkpoint: the actions that lead from the last restart to it
_CARRY = "carry/"  # prefix of the arrays that hold the policy's memory
_RESTART_EPISODES = 10  # full-length episodes of each environment between restarts


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


def empty_columns(spec: EnvSpec, own: Mapping[str, Column], n_envs: int, n_steps: int) -> Columns:
    """`own`: what the algorithm records beside the action."""
    rows = (n_steps, n_envs)
    components = (spec.action.dim,) if spec.action.kind != "discrete" else ()
    action_dtype = np.float32 if spec.action.kind == "box" else np.int32
    columns: Columns = {
        "obs": np.zeros((n_steps + 1, n_envs, *spec.obs_shape), spec.obs_dtype),
        "action": np.zeros((*rows, *components), action_dtype),
        "reward": np.zeros(rows, np.float32),
        "terminated": np.zeros(rows, bool),
        "truncated": np.zeros(rows, bool),
        "valid": np.zeros(rows, bool),
    }
    columns |= {name: np.zeros((*rows, *column.shape), column.dtype) for name, column in own.items()}
    if spec.has_action_mask:
        columns["action_mask"] = np.ones((*rows, sum(spec.action.sizes)), bool)
        columns["final_action_mask"] = np.ones((n_envs, sum(spec.action.sizes)), bool)  # of the last observation
    return columns


def with_fresh_episodes(carry: Any, fresh: Any, begins: np.ndarray) -> Any:
    """A policy's memory, forgotten where an episode begins [N]."""
    shaped = lambda x: begins.reshape(-1, *(1,) * (np.ndim(x) - 1))  # noqa: E731
    return jax.tree.map(lambda old, new: np.where(shaped(old), new, old), carry, fresh)


class Tally:
    """Returns and lengths of the episodes in flight."""

    def __init__(self, n_envs: int) -> None:
        self.returns, self.lengths = np.zeros(n_envs), np.zeros(n_envs, np.int64)

    def ended(self, columns: Columns, paid: np.ndarray) -> list[Episode]:
        """Episodes that ended in these columns; reset steps count neither reward nor length."""
        done, valid = columns["terminated"] | columns["truncated"], columns["valid"]
        returns = np.cumsum(np.where(valid, paid, 0.0), axis=0, dtype=np.float64) + self.returns
        lengths = np.cumsum(valid, axis=0) + self.lengths
        base_return, base_length = np.zeros_like(self.returns), np.zeros_like(self.lengths)
        episodes = []
        for t, n in zip(*np.nonzero(done), strict=True):
            episodes.append(Episode(float(returns[t, n] - base_return[n]), int(lengths[t, n] - base_length[n])))
            base_return[n], base_length[n] = returns[t, n], lengths[t, n]
        self.returns, self.lengths = returns[-1] - base_return, lengths[-1] - base_length
        return episodes


class HostSource:
    """Holds the environments' side of training: the current observation, episodes in flight, and the policy's memory of
    them."""

    def __init__(
        self, engine: VectorEngine, algorithm: Algorithm, act: Callable[..., Any], n_steps: int, seed: int
    ) -> None:
        self.engine, self.spec, self.n_steps = engine, engine.spec, n_steps
        self._act, self._begin = act, algorithm.begin
        self._own = tuple(algorithm.columns)
        self.columns = empty_columns(engine.spec, algorithm.columns, engine.n_envs, n_steps)
        # Returns of episodes are sums of the environment's own rewards, whatever a wrapper shows the learner.
        self._own_reward = np.zeros_like(self.columns["reward"]) if engine.spec.changes_reward else None
        # Environments begin anew from time to time, so that a resumed run has little to replay; seldom enough that the
        # episodes cut by it do not count.
        self.restart_every: int | None = max(1, _RESTART_EPISODES * (engine.spec.max_episode_steps or 1000) // n_steps)
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begin anew in every environment, from a seed: a point that a resumed run can return to."""
        n_envs = self.engine.n_envs
        self._resetting = np.zeros(n_envs, bool)
        self._tally = Tally(n_envs)
        self._carry = self._kept_carry = self._begin(n_envs)
        self._has_memory = bool(jax.tree.leaves(self._carry))
        self._actions: list[np.ndarray] = []
        self._obs, self._mask = self.engine.reset(seed)

    def advance(self, actor: Any, noise: np.ndarray, start: int, stop: int) -> Chunk:
        columns = self.columns
        obs, mask = columns["obs"], columns.get("action_mask")
        for t in range(start, stop):
            obs[t] = self._obs
            if mask is not None and self._mask is not None:
                mask[t] = self._mask
            action, carry, extras = self._act(actor, self._carry, obs[t], noise[t], None if mask is None else mask[t])
            for name in self._own:
                columns[name][t] = extras[name]
            self._step(t, np.asarray(action))
            if self._has_memory:
                self._carry = self._after_resets(carry, ~columns["valid"][t])
        obs[stop] = self._obs
        if mask is not None and self._mask is not None:
            columns["final_action_mask"][:] = self._mask
        paid = (columns["reward"],) if self._own_reward is None else (columns["reward"], self._own_reward)
        for name, values in (("obs", obs[start : stop + 1]), *(("reward", one[start:stop]) for one in paid)):
            require_finite(name, values, self.spec.env_id)
        return Chunk(columns, start, stop, self._mask)

    def _after_resets(self, carry: Any, was_reset: np.ndarray) -> Any:
        """After a step that only reset, the next observation is the first of an episode: nothing is remembered."""
        if not was_reset.any():
            return carry
        return with_fresh_episodes(carry, self._begin(len(was_reset)), was_reset)

    def _step(self, t: int, action: np.ndarray) -> None:
        columns = self.columns
        step = self.engine.step(action)
        columns["action"][t] = action
        columns["reward"][t] = step.reward
        if self._own_reward is not None:
            self._own_reward[t] = step.own_reward
        columns["terminated"][t] = step.terminated
        columns["truncated"][t] = step.truncated
        columns["valid"][t] = ~self._resetting
        self._resetting = step.terminated | step.truncated
        self._obs, self._mask = step.obs, step.action_mask

    def ended(self) -> list[Episode]:
        paid = self.columns["reward"] if self._own_reward is None else self._own_reward
        return self._tally.ended(self.columns, paid)

    def keep(self) -> None:
        """The window was learnt from: its actions are part of the way to here."""
        self._actions.append(self.columns["action"].copy())
        self._kept_carry = self._carry

    def snapshot(self) -> Arrays:
        if not self._actions:
            return {}
        return {ACTIONS: np.concatenate(self._actions)} | {
            f"{_CARRY}{name}": array for name, array in to_arrays(self._kept_carry).items()
        }

    @staticmethod
    def can_resume(arrays: Arrays) -> bool:
        return ACTIONS in arrays

    def restore(self, arrays: Arrays) -> str | None:
        """Bring freshly restarted environments to where the recorded actions [K·n_steps, N, …] left them; returns what
        to say of it."""
        if not self.can_resume(arrays):
            return None
        actions = arrays[ACTIONS]
        for start in range(0, len(actions), self.n_steps):
            for t in range(self.n_steps):
                self._step(t, actions[start + t])
            self.ended()
        self._actions = [actions]
        remembered = {name.removeprefix(_CARRY): array for name, array in arrays.items() if name.startswith(_CARRY)}
        self._carry = self._kept_carry = from_arrays(self._carry, remembered, "the checkpoint's memory")
        return f"replayed {len(actions)} steps to bring the environments back"

    def close(self) -> None:
        self.engine.close()
