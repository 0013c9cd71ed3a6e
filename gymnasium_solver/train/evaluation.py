"""Evaluation on fresh episodes of the Gymnasium environment itself, with frozen parameters and statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.envs import make_engine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.collect import require_finite
from gymnasium_solver.train.randomness import generator, seed_for

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config
    from gymnasium_solver.runs.reader import Run

MAX_PARALLEL = 64
UNKNOWN_LIMIT = 27_000  # steps of an episode whose environment names no limit; Atari's own is 108,000 frames, by fours

# Observations [N, …] and action mask → actions [N, …].
Act = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


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


@dataclass(frozen=True)
class Policy:
    """A trained policy, ready to act on observations as the environments of its config give them."""

    config: Config
    spec: EnvSpec
    actor: dict[str, Any]
    act: Callable[..., Any]  # compiled
    act_greedy: Callable[..., Any]  # compiled
    draw_noise: Callable[..., np.ndarray]
    hp: dict[str, float] = field(default_factory=dict)  # values in force, for noise that depends on them

    def __call__(
        self, obs: np.ndarray, mask: np.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """The mode of the policy, or a sample when given a generator."""
        if rng is None:
            return np.asarray(self.act_greedy(self.actor, obs, mask))
        return np.asarray(self.act(self.actor, obs, self.draw_noise(rng, (len(obs),), self.hp), mask))


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
    while quota.any():
        if should_stop():
            raise EvaluationStopped
        step = engine.step(act(obs, mask))
        obs, mask = step.obs, step.action_mask
        for name, values in (("obs", obs), ("reward", step.reward)):
            require_finite(name, values[None], engine.spec.env_id, "in an evaluation")
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
        return run_episodes(engine, lambda obs, mask: policy(obs, mask, rng), episodes, seed)
    finally:
        engine.close()


def evaluate_checkpoint(
    run: Run, checkpoint: str, *, episodes: int, deterministic: bool, seed: int | None = None
) -> Evaluation:
    policy = policy_of(run, checkpoint)
    if seed is None:
        seed = seed_for(policy.config.seed, "evaluate", 0)
    return evaluate_policy(policy, episodes=episodes, deterministic=deterministic, seed=seed)


def policy_of(run: Run, checkpoint: str) -> Policy:
    import jax

    from gymnasium_solver.algorithms import make_algorithm
    from gymnasium_solver.envs import describe
    from gymnasium_solver.train.checkpoint import from_arrays, without_replay

    config = build_config(run.config, f"{run.run_id}/config.json")
    spec = describe(config)
    arrays, _ = run.read_checkpoint(checkpoint, without_replay)
    algorithm = make_algorithm(config, spec)
    state = from_arrays(algorithm.init(np.random.default_rng(0)), arrays, f"{run.run_id}/{checkpoint}")
    act, act_greedy = jax.jit(algorithm.act), jax.jit(algorithm.act_greedy)
    steps = config.max_env_steps
    hp = {name: value_at(getattr(config, name), steps, steps) or 0.0 for name in algorithm.scheduled}
    return Policy(config, spec, algorithm.actor(state), act, act_greedy, algorithm.draw_noise, hp)
