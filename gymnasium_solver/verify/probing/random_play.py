"""An environment played at random: the same seed twice, other actions, another seed, and a long play to count in."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import VectorEngine, make_engine
from gymnasium_solver.envs.actions import random_action

SECONDS = 2.0
N_ENVS = 4
PAIRED_STEPS = 200  # of the plays that are compared with one another
LONG_STEPS = 5000  # of the play that rewards and endings are counted in
MOST_COLUMNS = 512  # of an observation; an image is thinned out to this
MOST_DYNAMIC_COLUMNS = 64  # beyond that, jumps from step to step are no sign of noise
STILL = 1e-4  # what a component varies by that does not vary


class Play(NamedTuple):
    obs: np.ndarray  # float32 [T+1, N, columns]
    mark: np.ndarray  # float64 [T+1, N]: a checksum of the whole observation
    reward: np.ndarray  # [T, N], 0 where the step only reset
    terminated: np.ndarray
    truncated: np.ndarray
    valid: np.ndarray  # bool [T, N]: not a reset

    def equals(self, other: Play) -> bool:
        steps = min(len(self.reward), len(other.reward))
        pairs = ((self.mark[: steps + 1], other.mark[: steps + 1]), (self.reward[:steps], other.reward[:steps]),
                 (self.terminated[:steps], other.terminated[:steps]))  # fmt: skip
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


@dataclass(frozen=True)
class Facts:
    """None where the play does not tell."""

    steps: int
    columns: int
    still: tuple[int, ...] | None  # components that never varied; None for images and tables, where that is no fault
    blind: bool
    finite: bool
    repeatable: bool  # same seed, same actions: the same again
    listens: bool | None  # same seed, other actions: something else
    alike: bool | None  # every environment of the vector shows the same, though seeds matter
    noise_share: float | None
    obs_size: float
    obs_std: float
    reward_low: float
    reward_high: float
    rewarded_share: float
    returns: np.ndarray
    lengths: np.ndarray
    truncated_share: float | None  # of the endings


def look(config: Config) -> Facts:
    # Worker processes would take longer to start than all of the play.
    sync = config.vectorization == "async"
    engine = make_engine(config.model_copy(update={"vectorization": "sync"}) if sync else config, N_ENVS, on_host=True)
    try:
        seed, share = config.seed, SECONDS / 8
        first = play(engine, seed, 1, PAIRED_STEPS, share, together=True)
        again = play(engine, seed, 1, PAIRED_STEPS, share, together=True)
        otherwise = play(engine, seed, 2, PAIRED_STEPS, share, together=True)
        elsewhere = play(engine, seed + 1, 1, PAIRED_STEPS, share, together=True)
        long = play(engine, seed, 3, LONG_STEPS, SECONDS / 2, together=False)
    finally:
        engine.close()
    repeatable = first.equals(again)
    seeds_matter = not np.array_equal(first.mark[: len(elsewhere.mark)], elsewhere.mark[: len(first.mark)])
    same_rows = bool((first.mark == first.mark[:, :1]).all())
    spec = engine.spec
    return _facts(
        long,
        repeatable=repeatable,
        listens=not first.equals(otherwise) if repeatable else None,
        alike=same_rows if repeatable and seeds_matter else None,
        is_table=bool(spec.obs_sizes) or spec.is_image,
    )


def play(engine: VectorEngine, seed: int, actions: int, steps: int, seconds: float, *, together: bool) -> Play:
    """Random actions, the same ones in all environments if `together`; until `seconds` are over, 20 steps at least."""
    n = engine.n_envs
    rngs = [np.random.default_rng((actions, 0 if together else i)) for i in range(n)]
    obs, mask = engine.reset(seed)
    seen = [_observed(obs)]
    rows: list[tuple[np.ndarray, ...]] = []
    resetting = np.zeros(n, bool)
    deadline = time.perf_counter() + seconds
    while len(rows) < steps and (len(rows) < 20 or time.perf_counter() < deadline):
        action = [random_action(engine.spec.action, None if mask is None else mask[i], rng)
                  for i, rng in enumerate(rngs)]  # fmt: skip
        step = engine.step(np.stack(action))
        mask = step.action_mask
        seen.append(_observed(step.obs))
        rows.append((step.reward.copy(), step.terminated.copy(), step.truncated.copy(), ~resetting))
        resetting = step.terminated | step.truncated
    reward, terminated, truncated, valid = (np.stack(part) for part in zip(*rows, strict=True))
    columns, marks = zip(*seen, strict=True)
    return Play(np.stack(columns), np.stack(marks), reward, terminated, truncated, valid)


def _observed(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    flat = obs.reshape(len(obs), -1).astype(np.float32)
    columns = np.unique(np.linspace(0, flat.shape[1] - 1, MOST_COLUMNS).astype(int))
    return flat[:, columns], flat.astype(np.float64) @ np.sin(np.arange(1, flat.shape[1] + 1))


def _facts(play: Play, *, repeatable: bool, listens: bool | None, alike: bool | None, is_table: bool) -> Facts:
    obs, valid = play.obs, play.valid
    finite = bool(np.isfinite(obs).all() and np.isfinite(play.reward).all())
    spread = np.ptp(obs.reshape(-1, obs.shape[-1]), axis=0)
    blind = bool(np.ptp(play.mark) <= STILL and (spread <= STILL).all())
    still = None if is_table else tuple(int(i) for i in np.flatnonzero(spread <= STILL))
    reward = play.reward[valid]
    returns, lengths = _episodes(play)
    ended = int((play.terminated | play.truncated).sum())
    return Facts(
        steps=int(valid.sum()),
        columns=obs.shape[-1],
        still=still,
        blind=blind,
        finite=finite,
        repeatable=repeatable,
        listens=listens,
        alike=alike,
        noise_share=None if is_table or obs.shape[-1] > MOST_DYNAMIC_COLUMNS else _noise_share(play),
        obs_size=0.0 if is_table else float(np.abs(obs).max()),
        obs_std=float(obs.std()),
        reward_low=float(reward.min()),
        reward_high=float(reward.max()),
        rewarded_share=float((reward != 0).mean()),
        returns=returns,
        lengths=lengths,
        truncated_share=float(play.truncated.sum() / ended) if ended else None,
    )


def _episodes(play: Play) -> tuple[np.ndarray, np.ndarray]:
    """Returns and lengths of the finished episodes."""
    returns, lengths = [], []
    ends = play.terminated | play.truncated
    for i in range(ends.shape[1]):
        begin = 0
        for end in np.flatnonzero(ends[:, i]).tolist():
            returns.append(float(play.reward[begin : end + 1, i].sum()))
            lengths.append(int(play.valid[begin : end + 1, i].sum()))
            begin = end + 1
    return np.array(returns), np.array(lengths)


def _noise_share(play: Play) -> float | None:
    """How much of what is seen is noise: it adds the same variance to differences over one step and over two, motion
    adds four times as much to two."""
    obs, valid = play.obs, play.valid
    consecutive = valid[:-1] & valid[1:]
    if not consecutive.any():
        return None
    level = obs[:-1][valid].var(axis=0)
    moving = level > STILL**2
    if not moving.any():
        return None
    one = (obs[1:-1] - obs[:-2])[consecutive].var(axis=0)
    two = (obs[2:] - obs[:-2])[consecutive].var(axis=0)
    return float(np.median(np.clip((4 * one - two)[moving] / 6 / level[moving], 0.0, 1.0)))
