"""Gradients of many minibatches at one checkpoint, all of the same parameters: what a noise scale is measured by."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from gymnasium_solver.config.cards import card_of, names
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe, make_engine
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.checkpoint import REPLAY
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.parts import Columns, Numbers, as_inputs
from gymnasium_solver.train.progress import Progress
from gymnasium_solver.train.randomness import generator, seed_for
from gymnasium_solver.train.replay_feed import ReplayFeed, Sampled
from gymnasium_solver.train.source import HostSource

ROWS = 65_536  # of experience to look at by default
FEWEST, MOST = 16, 512  # blocks
MOST_NUMBERS = 50_000_000  # of all gradients kept
BLOCK_STEPS = 256  # of each environment, at most: rollouts that follow one another share episodes, blocks hardly do
GROUP = 8  # minibatches from a replay that make a block
LEAST_ROWS = 16  # of a minibatch
PIECES = 4  # minibatches a rollout is cut into at least, where the algorithm cuts it
WARM_UP = 1000  # steps of each environment, at most, before rollouts count: episodes that began together drift apart


class Gradients(NamedTuple):
    """Of K nearly independent blocks of experience, M minibatches each; by part of the loss, policy or value."""

    rows: int  # of a minibatch
    means: dict[str, np.ndarray]  # [K, P], over the minibatches of a block
    squares: dict[str, np.ndarray]  # [K, M], the squared norm of each minibatch's gradient


# A batch, and the noise of its minibatches.
Data = Iterator[tuple[Any, Any]]


def minibatch_gradients(run: Run, checkpoint: str, experience: int = ROWS) -> Gradients:
    """At a checkpoint, from about so many rows: fresh rollouts of its policy, or its replay if it learns from one."""
    run.admit_code()
    config = build_config(run.config, f"{run.run_id}/config.json")
    if "hidden_dims" not in card_of(config.algo_id).traits:
        networks = [name for name in names() if "hidden_dims" in card_of(name).traits]
        raise ConfigError(
            f"{run.run_id} was trained with {config.algo_id}, which has no network and so no minibatch gradient and no "
            f"noise scale; use a run of {', '.join(networks[:-1])} or {networks[-1]}"
        )
    spec = describe(config)
    arrays, meta = run.read_checkpoint(checkpoint)
    learner = Learner(config, spec)
    learner.restore(arrays, f"{run.run_id}/{checkpoint}")
    hp = learner.hyperparameters(getattr(Progress.from_meta(meta["progress"]), config.clock))
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(learner.state.params))
    most = max(FEWEST, min(MOST, MOST_NUMBERS // size))
    if isinstance(learner.feed, ReplayFeed):
        if not any(name.startswith(REPLAY) for name in arrays):
            raise ConfigError(
                f"checkpoint {checkpoint} of {run.run_id} holds no replay, and {config.algo_id} learns from one; use "
                "--checkpoint last"
            )
        rows = learner.feed.config.batch_size
        blocks = min(most, max(FEWEST, experience // (rows * GROUP)))
        return measured(learner, _samples(learner, learner.feed, blocks, hp), hp, rows, block=1)
    block = math.ceil(min(spec.max_episode_steps or BLOCK_STEPS, BLOCK_STEPS) / config.n_steps)
    blocks = min(most, max(FEWEST, experience // (config.rollout * block)))
    rows = _piece(config)
    return measured(learner, _rollouts(learner, blocks * block, rows, hp), hp, rows, block)


def _piece(config: Config) -> int:
    """Rows of a minibatch: no more than the run's own, a few minibatches per rollout, and enough rows to normalise
    advantages in; the rollout where the algorithm does not cut it."""
    minibatch = getattr(config, "minibatch", None)
    if minibatch is None:
        return config.rollout
    most = max(LEAST_ROWS, min(minibatch, config.rollout // PIECES))
    return max((d for d in range(2, most + 1) if config.rollout % d == 0), default=config.rollout)


def _rollouts(learner: Learner, count: int, rows: int, hp: Numbers) -> Data:
    """As training would collect them, with the parameters held still; the noise is a permutation of their rows."""
    config, algorithm = learner.config, learner.algorithm
    rng = generator(config.seed, "noise-scale", 0)
    engine = make_engine(config, config.n_envs, on_host=True)
    warm_up = math.ceil(min(engine.spec.max_episode_steps or WARM_UP, WARM_UP) / config.n_steps)
    try:
        seed = seed_for(config.seed, "noise-scale", 0)
        source = HostSource(engine, algorithm, learner.act, config.n_steps, seed)
        for index in range(warm_up + count):
            noise = algorithm.acting_noise(rng, (config.n_steps, config.n_envs), hp)
            chunk = source.advance(learner.actor, noise, 0, config.n_steps)
            rewarded, _ = learner.bonus.add_to(chunk, hp)
            if index >= warm_up:
                yield rewarded.columns, rng.permutation(config.rollout).astype(np.int32).reshape(-1, rows)
    finally:
        engine.close()


def _samples(learner: Learner, feed: ReplayFeed, count: int, hp: Numbers) -> Data:
    rng = generator(learner.config.seed, "noise-scale", 0)
    for _ in range(count):
        sampled = Sampled(*feed.replay.sample(rng, (GROUP, feed.config.batch_size), hp["priority_beta"]))
        noise = [learner.algorithm.update_noise(rng) for _ in range(GROUP)]  # of the first minibatch of each
        yield feed.minibatches(sampled), jax.tree.map(lambda *drawn: np.stack([one[0] for one in drawn]), *noise)


def measured(learner: Learner, data: Data, hp: Numbers, rows: int, block: int) -> Gradients:
    """`block`: batches in a row that count as one block."""
    feed, algorithm = learner.feed, learner.algorithm
    inputs: Any = as_inputs(hp)

    @jax.jit
    def gradients(state: Any, batch: Columns, noise: Any) -> dict[str, Any]:
        return algorithm.gradients(state, feed.rows(batch), inputs, noise)

    means: dict[str, list[np.ndarray]] = {}
    squares: dict[str, list[list[float]]] = {}
    for index, (batch, noise) in enumerate(data):
        for part, made in jax.device_get(gradients(learner.state, batch, noise)).items():
            if index % block == 0:
                means.setdefault(part, []).append(np.zeros_like(made[0]))
                squares.setdefault(part, []).append([])
            means[part][-1] += made.mean(axis=0) / block
            squares[part][-1] += np.square(made).sum(axis=1, dtype=np.float64).tolist()
    learnt = [part for part, found in squares.items() if np.any(found)]
    return Gradients(
        rows,
        {part: np.stack(means[part]) for part in learnt},
        {part: np.array(squares[part]) for part in learnt},
    )
