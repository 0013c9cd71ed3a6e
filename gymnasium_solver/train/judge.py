"""Evaluation on fresh episodes of the Gymnasium environment itself, with frozen parameters and statistics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gymnasium_solver.envs import make_engine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.parts import Numbers
from gymnasium_solver.train.policy import Policy, policy_of
from gymnasium_solver.train.randomness import generator, seed_for
from gymnasium_solver.train.source import require_finite

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

MAX_PARALLEL = 64
UNKNOWN_LIMIT = 27_000  # steps of an episode whose environment names no limit; Atari's own is 108,000 frames, by fours

# Observations [N, …], action mask, and which observations begin an episode [N] → actions [N, …].
Act = Callable[[np.ndarray, np.ndarray | None, np.ndarray], np.ndarray]


class EvaluationStopped(Exception):
    """The user asked to stop in the midst of an evaluation."""


@dataclass(frozen=True)
class Evaluation:
    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        return float(self.returns.std())

    @property
    def length_mean(self) -> float:
        return float(self.lengths.mean())

    def metrics(self, prefix: str) -> dict[str, float]:
        return {
            f"{prefix}/ep_rew_mean": self.mean,
            f"{prefix}/ep_rew_std": self.std,
            f"{prefix}/ep_rew_min": float(self.returns.min()),
            f"{prefix}/ep_rew_max": float(self.returns.max()),
            f"{prefix}/ep_len_mean": self.length_mean,
            f"{prefix}/episodes": len(self.returns),
        }


class EpisodeJudge:
    """Plays whole episodes on environments of its own."""

    def __init__(self, policy: Policy) -> None:
        """`policy`: with the functions of the training; every evaluation brings its own actor."""
        self._policy = policy
        self._engine: VectorEngine | None = None

    def evaluate(
        self, actor: Any, purpose: str, index: int, hp: Numbers, stop: Callable[[], bool] = lambda: False
    ) -> Evaluation:
        """Seeds follow from the purpose and the index. Raises EvaluationStopped when asked to stop."""
        config = self._policy.config
        if self._engine is None:
            self._engine = make_engine(config, min(config.eval_episodes, MAX_PARALLEL), evaluation=True)
        rng = None if config.eval_deterministic else generator(config.seed, f"{purpose}-noise", index)
        act = self._policy.with_actor(actor, hp).acting(rng)
        seed = seed_for(config.seed, purpose, index)
        return run_episodes(self._engine, act, config.eval_episodes, seed, stop)

    def close(self) -> None:
        engine, self._engine = self._engine, None
        with suppress(Exception):  # a broken environment may not even close
            if engine is not None:
                engine.close()


def run_episodes(
    engine: VectorEngine, act: Act, episodes: int, seed: int, should_stop: Callable[[], bool] = lambda: False
) -> Evaluation:
    """Exactly `episodes` episodes, a fixed number from each environment: taking whichever end first would favour
    short ones. Raises EvaluationStopped when asked to stop."""
    n, limit = engine.n_envs, engine.spec.max_episode_steps or UNKNOWN_LIMIT
    quota = np.full(n, episodes // n) + (np.arange(n) < episodes % n)
    returns: list[float] = []
    lengths: list[int] = []
    total, length, resetting = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, bool)
    obs, mask = engine.reset(seed)
    started = np.ones(n, bool)
    while quota.any():
        if should_stop():
            raise EvaluationStopped
        step = engine.step(act(obs, mask, started))
        obs, mask = step.obs, step.action_mask
        for name, values in (("obs", obs), ("reward", step.reward)):
            require_finite(name, values[None], engine.spec.env_id, "in an evaluation")
        started = resetting  # what a reset returns begins an episode
        total += np.where(resetting, 0.0, step.reward)
        length += ~resetting
        resetting = step.terminated | step.truncated
        if length.max() > limit:
            raise EnvironmentFault(
                f"an episode of {engine.spec.env_id} did not end within {limit} steps; set max_episode_steps"
            )
        for i in np.flatnonzero(resetting):
            if quota[i]:
                returns.append(float(total[i]))
                lengths.append(int(length[i]))
                quota[i] -= 1
            total[i], length[i] = 0.0, 0
    return Evaluation(np.array(returns), np.array(lengths))


def evaluate_policy(policy: Policy, *, episodes: int, deterministic: bool, seed: int) -> Evaluation:
    engine = make_engine(policy.config, min(episodes, MAX_PARALLEL), evaluation=True)
    rng = None if deterministic else generator(seed, "evaluation-noise", 0)
    try:
        return run_episodes(engine, policy.acting(rng), episodes, seed)
    finally:
        engine.close()


def evaluate_checkpoint(
    run: Run, checkpoint: str, *, episodes: int, deterministic: bool, seed: int | None = None
) -> Evaluation:
    policy = policy_of(run, checkpoint)
    if seed is None:
        seed = seed_for(policy.config.seed, "evaluate", 0)
    return evaluate_policy(policy, episodes=episodes, deterministic=deterministic, seed=seed)
