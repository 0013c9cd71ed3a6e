"""Whole episodes for a score card: a policy as it is, with noise on what it sees, and an agent without a clue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe, make_engine, make_env
from gymnasium_solver.envs.actions import random_action
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.train.judge import MAX_PARALLEL, Act, run_episodes
from gymnasium_solver.train.policy import Policy
from gymnasium_solver.train.randomness import generator, seed_for

PURPOSE = "score"  # of the seeds: episodes that training and its evaluations never saw
LOOKED_AT = 1000  # steps of one episode, to learn whether the environment tells successes

Perturb = Callable[[np.ndarray], np.ndarray]


class Spread:
    """Mean and standard deviation of observations [N, …] as they come, component by component."""

    def __init__(self) -> None:
        self._count, self._sum, self._squares = 0, np.zeros(()), np.zeros(())

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        wide = obs.astype(np.float64)
        self._count += len(obs)
        self._sum = self._sum + wide.sum(axis=0)
        self._squares = self._squares + np.square(wide).sum(axis=0)
        return obs

    @property
    def std(self) -> np.ndarray:
        mean = self._sum / self._count
        return np.sqrt(np.maximum(self._squares / self._count - mean**2, 0.0))

    @property
    def std_of_all(self) -> float:
        """Of all components together."""
        mean = self._sum.mean() / self._count
        return float(np.sqrt(max(0.0, self._squares.mean() / self._count - mean**2)))


def noise_on(spec: EnvSpec, spread: Spread, share: float, rng: np.random.Generator) -> Perturb:
    """Gaussian, as wide as `share` of each component's own spread (of an image: of all its pixels'); a discrete
    component is another one, drawn at random, `share` of the time."""
    if spec.obs_sizes:
        return lambda obs: _redrawn(obs, spec.obs_sizes, share, rng)
    width = share * (spread.std_of_all if spec.is_image else spread.std)

    def perturb(obs: np.ndarray) -> np.ndarray:
        noisy = obs + width * rng.standard_normal(obs.shape)
        return np.clip(np.rint(noisy), 0, 255).astype(np.uint8) if spec.is_image else noisy.astype(obs.dtype)

    return perturb


def _redrawn(obs: np.ndarray, sizes: tuple[int, ...], share: float, rng: np.random.Generator) -> np.ndarray:
    noisy, start = obs.copy(), 0
    for size in sizes:
        rows = np.flatnonzero(rng.random(len(obs)) < share)
        noisy[rows, start : start + size] = 0.0
        noisy[rows, start + rng.integers(size, size=len(rows))] = 1.0
        start += size
    return noisy


def play(policy: Policy, config: Config, episodes: int, perturb: Perturb = lambda obs: obs) -> np.ndarray:
    """Returns of the policy in the environment of the config, which need not be the one it was trained in."""
    seed = seed_for(policy.config.seed, PURPOSE, 0)
    rng = None if config.eval_deterministic else generator(policy.config.seed, f"{PURPOSE}-actions", 0)
    return _returns(
        config, episodes, seed, lambda obs, mask, started: policy(perturb(obs), mask, started=started, rng=rng)
    )


def play_at_random(config: Config, episodes: int) -> np.ndarray:
    """Returns of actions drawn without looking."""
    rng = generator(config.seed, f"{PURPOSE}-random", 0)
    action = describe(config).action

    def act(obs: np.ndarray, mask: np.ndarray | None, started: np.ndarray) -> np.ndarray:
        return np.stack([random_action(action, None if mask is None else mask[i], rng) for i in range(len(obs))])

    return _returns(config, episodes, seed_for(config.seed, PURPOSE, 1), act)


def tells_success(config: Config) -> bool:
    """Whether an episode ends with `is_success` in its info."""
    rng = generator(config.seed, f"{PURPOSE}-looks", 0)
    action = describe(config).action
    env = make_env(config)
    try:
        _, info = env.reset(seed=config.seed)
        for _ in range(LOOKED_AT):
            *_, terminated, truncated, info = env.step(random_action(action, info.get("action_mask"), rng))
            if "is_success" in info:
                return True
            if terminated or truncated:
                return False
    finally:
        env.close()
    return False


def _returns(config: Config, episodes: int, seed: int, act: Act) -> np.ndarray:
    engine = make_engine(config, min(episodes, MAX_PARALLEL), evaluation=True)
    try:
        return run_episodes(engine, act, episodes, seed).returns
    finally:
        engine.close()
