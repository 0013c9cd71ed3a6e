"""What is put into a function: batches that reach every branch of the formulas, and keep away from their kinks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class LossBatch(NamedTuple):
    """[B] each; a function is given what it asks for."""

    log_prob: Array
    old_log_prob: Array
    advantages: Array
    values: Array
    old_values: Array
    returns: Array
    entropy: Array
    weight: Array
    clip_range: float = 0.2
    clip_range_vf: float = 0.3
    vf_coef: float = 0.7
    ent_coef: float = 0.05

    @property
    def ratio(self) -> Array:
        return np.exp(self.log_prob - self.old_log_prob)


# Within the clip range and outside on either side, with advantages of both signs.
_RATIOS = (0.55, 0.60, 0.92, 1.06, 1.30, 1.55, 0.97, 1.40, 0.70)
_ADVANTAGES = (1.3, -0.8, 0.7, -1.6, 0.9, -1.1, -0.4, 2.1, -2.3)


def loss_batch(rows: slice = slice(None)) -> LossBatch:
    rng = np.random.default_rng(7)
    ratios, advantages = np.array(_RATIOS)[rows], np.array(_ADVANTAGES)[rows]
    n = len(ratios)
    old = -rng.uniform(0.4, 2.5, n)
    returns = rng.normal(size=n)
    old_values = returns + rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 0.9, n)
    # Moves within and beyond the value's clip range, towards the target and away from it.
    values = old_values + np.resize([0.05, -0.16, 0.6, -0.7, 0.45], n)
    entropy = rng.uniform(0.3, 1.2, n)
    return LossBatch(old + np.log(ratios), old, advantages, values, old_values, returns, entropy, np.ones(n))


def loss_batches() -> list[LossBatch]:
    """Of several sizes and clip ranges; the last has a ratio of 1 everywhere, as the first minibatch of an update."""
    first = loss_batch()
    second = loss_batch(slice(2, 8))._replace(clip_range=0.1, vf_coef=0.4, ent_coef=0.2)
    return [first, second, first._replace(clip_range=0.42), first._replace(log_prob=first.old_log_prob)]


class Rollout(NamedTuple):
    """[T, N] each. `next_values[t]` is the value of the true successor of row t, also where its episode ended."""

    rewards: Array
    values: Array
    next_values: Array
    terminated: Array
    truncated: Array
    gamma: float
    gae_lambda: float

    @property
    def done(self) -> Array:
        return np.maximum(self.terminated, self.truncated)

    def part(self, rows: slice, envs: slice) -> Rollout:
        return Rollout._make([*(column[rows, envs].copy() for column in self[:5]), *self[5:]])


def rollouts(*, truncation: bool) -> list[Rollout]:
    """Endings in the middle and in the last row, none in the first. Without `truncation` every ending terminates.

    The value of row t+1 is that of the true successor of row t, also across an ending, so that functions which know
    values only by row can be asked too; what a terminated row would bootstrap from is then plain to see.
    """
    found = []
    for seed, steps, envs, gamma, gae_lambda in ((1, 9, 4, 0.9, 0.8), (2, 6, 2, 0.97, 0.5)):
        rng = np.random.default_rng(seed)
        values = rng.normal(1.0, 1.5, (steps + 1, envs))
        terminated, truncated = np.zeros((steps, envs)), np.zeros((steps, envs))
        terminated[2, 0] = terminated[4, 1] = terminated[-1, 1] = 1
        truncated[3, 0] = truncated[1, 1] = 1
        if envs > 2:
            terminated[5, 2] = truncated[6, 2] = 1
        if not truncation:
            terminated, truncated = np.maximum(terminated, truncated), np.zeros_like(truncated)
        rewards = rng.normal(size=(steps, envs))
        found.append(Rollout(rewards, values[:-1], values[1:], terminated, truncated, gamma, gae_lambda))
    return found
