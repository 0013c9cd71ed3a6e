"""A trained policy, restored from a run: the one way from a checkpoint to actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from gymnasium import spaces

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.envs import describe
from gymnasium_solver.envs.actions import write_action_mask
from gymnasium_solver.envs.choose import inspect
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.train.checkpoint import from_arrays, without_replay
from gymnasium_solver.train.source import with_fresh_episodes

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run


@dataclass
class Policy:
    """Acts on observations as the environments of its config give them: one, or a batch. It keeps its own memory of the
    episodes it is in, if it has any: `reset()` forgets them, and `started` marks observations that begin one."""

    config: Config
    spec: EnvSpec
    actor: Any
    act: Callable[..., Any]  # compiled
    greedy: Callable[..., Any]  # compiled
    algorithm: Algorithm
    hp: dict[str, float] = field(default_factory=dict)  # values in force, for noise that depends on them
    value: Callable[[np.ndarray], np.ndarray] | None = None  # estimated values of observations [B, …] → [B]
    _carry: Any = None

    def __call__(
        self,
        obs: np.ndarray,
        mask: np.ndarray | None = None,
        *,
        started: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """The mode of the policy, or a sample when given a generator."""
        obs = np.asarray(obs, self.spec.obs_dtype)
        if obs.shape == self.spec.obs_shape:
            one = self(obs[None], None if mask is None else mask[None], started=started, rng=rng)
            return one[0]
        carry = self._memory(len(obs), started)
        if rng is None:
            action, self._carry = self.greedy(self.actor, carry, obs, mask)
        else:
            noise = self.algorithm.acting_noise(rng, (len(obs),), self.hp)
            action, self._carry, _ = self.act(self.actor, carry, obs, noise, mask)
        return np.asarray(action)

    def _memory(self, n: int, started: np.ndarray | None) -> Any:
        fresh = self.algorithm.begin(n)
        leaves = jax.tree.leaves(fresh)
        if not leaves or self._carry is None or len(jax.tree.leaves(self._carry)[0]) != n:
            return fresh
        if started is None:
            return self._carry
        return with_fresh_episodes(self._carry, fresh, np.broadcast_to(started, n))

    def reset(self) -> None:
        self._carry = None

    def acting(self, rng: np.random.Generator | None) -> Callable[..., np.ndarray]:
        """For whoever plays episodes: observations, masks and beginnings → actions, drawn if given a generator."""
        return lambda obs, mask, started: self(obs, mask, started=started, rng=rng)

    def with_actor(self, actor: Any, hp: dict[str, float]) -> Policy:
        return replace(self, actor=actor, hp=hp, _carry=None)


class EnvironmentPolicy:
    """The same on the environment's own terms: observations as it gives them, one or a batch, and actions it takes."""

    def __init__(self, policy: Policy) -> None:
        seen = inspect(policy.config)
        self.policy, self._space = policy, seen.observation_space
        self._observations, self._actions = seen.observations, seen.actions

    def __call__(
        self,
        obs: Any,
        action_mask: Any = None,
        *,
        started: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> Any:
        """The mode of the policy, or a sample when given a generator. `action_mask`: as the environment's info has it,
        one for each observation."""
        encoded, is_one = self._encoded(obs)
        mask = None
        if self.policy.spec.has_action_mask:
            mask = np.ones((len(encoded), sum(self.policy.spec.action.sizes)), bool)
            given = [action_mask] * len(mask) if is_one or action_mask is None else action_mask
            for row, allowed in zip(mask, given, strict=True):
                write_action_mask(allowed, row)
        actions = self._actions.batch(self.policy(encoded, mask, started=started, rng=rng))
        return self._actions.rows(actions)[0] if is_one else actions

    def reset(self) -> None:
        self.policy.reset()

    def _encoded(self, obs: Any) -> tuple[np.ndarray, bool]:
        """[N, …] as the policy sees them, and whether it is a single one."""
        codec, count = self._observations, _batch_size(self._space, obs)
        out = np.empty((1 if count is None else count, *codec.shape), codec.dtype)
        codec.write(obs, out[0] if count is None else out)
        return out, count is None


def _batch_size(space: spaces.Space, obs: Any) -> int | None:
    """How many observations of the space these are; None for a single one, or where they are not of the space."""
    try:
        while isinstance(space, spaces.Dict | spaces.Tuple):
            part: Any = next(iter(space.spaces)) if isinstance(space, spaces.Dict) else 0
            space, obs = space[part], obs[part]
    except (KeyError, IndexError, TypeError):  # the codec says what is missing
        return None
    return len(obs) if np.ndim(obs) > len(space.shape or ()) else None


def environment_policy(run: Run, checkpoint: str) -> EnvironmentPolicy:
    return EnvironmentPolicy(policy_of(run, checkpoint))


def policy_of(run: Run, checkpoint: str, engine: str | None = None) -> Policy:
    """`engine`: describe the environment as this one makes it, in place of the config's own."""
    run.admit_code()
    fields = run.config if engine is None else {**run.config, "engine": engine}
    config = build_config(fields, f"{run.run_id}/config.json")
    spec = describe(config)
    arrays, _ = run.read_checkpoint(checkpoint, without_replay)
    algorithm = make_algorithm(config, spec)
    state = from_arrays(algorithm.init(np.random.default_rng(0)), arrays, f"{run.run_id}/{checkpoint}")
    end = config.budget
    hp = {name: value_at(getattr(config, name), end, end) or 0.0 for name in algorithm.scheduled}
    act, greedy, value = (jax.jit(function) for function in (algorithm.act, algorithm.greedy, algorithm.value))
    estimate = lambda obs: np.asarray(value(state, obs))  # noqa: E731
    return Policy(config, spec, algorithm.actor(state), act, greedy, algorithm, hp, estimate)
