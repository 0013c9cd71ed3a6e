"""Gradients of many minibatches at one checkpoint, all of the same parameters: what a noise scale is measured by.

Algorithms give updates, not gradients. With plain descent for its optimiser, no clipping, and one minibatch, an update
moves the parameters by the gradient times the learning rate: that of the loss that trains, not of a copy of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import Config, OffPolicyConfig, OnPolicyConfig, PPOConfig
from gymnasium_solver.data.layout import gather
from gymnasium_solver.envs import describe, make_engine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.checkpoint import from_arrays
from gymnasium_solver.train.collect import Collector
from gymnasium_solver.train.learner import Numbers, State, as_inputs
from gymnasium_solver.train.progress import Progress
from gymnasium_solver.train.randomness import generator, seed_for
from gymnasium_solver.train.replay_learner import REPLAY, ReplayLearner

RATE = 2.0**20  # so large that what is left of the old parameters does not blur the difference
ROWS = 65_536  # of experience looked at, unless told otherwise
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


# A state and the data of one rollout → gradients by part, [minibatches, P] each.
Measure = Callable[[State, Any], dict[str, Any]]
Data = Iterator[tuple[dict[str, np.ndarray], np.random.Generator]]


def minibatch_gradients(run: Run, checkpoint: str, experience: int = ROWS) -> Gradients:
    """At a checkpoint, from about so many rows: fresh rollouts of its policy, or its replay if it learns from one."""
    config = build_config(run.config, f"{run.run_id}/config.json")
    if not isinstance(config, OnPolicyConfig | OffPolicyConfig):
        raise ConfigError(
            f"{run.run_id} was trained with {config.algo_id}, which learns a table step by step: it has no minibatch "
            "gradient and no noise scale; use a run of ppo, a2c, reinforce, dqn, sac, td3 or ddpg"
        )
    spec = describe(config)
    arrays, meta = run.read_checkpoint(checkpoint)
    algorithm = make_algorithm(config, spec)
    state = from_arrays(algorithm.init(np.random.default_rng(0)), arrays, f"{run.run_id}/{checkpoint}")
    hp = _in_force(config, algorithm, Progress.from_meta(meta["progress"]).env_steps)
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(state["params"]))
    most = max(FEWEST, min(MOST, MOST_NUMBERS // size))
    if isinstance(config, OffPolicyConfig):
        if not any(name.startswith(REPLAY) for name in arrays):
            raise ConfigError(
                f"checkpoint {checkpoint} of {run.run_id} holds no replay, and {config.algo_id} learns from one; use "
                "--checkpoint last"
            )
        learner = ReplayLearner(config, spec, algorithm, state)
        learner.load(arrays)
        blocks = min(most, max(FEWEST, experience // (config.batch_size * GROUP)))
        measure = _replay_measure(config, spec, hp)
        return _measured(state, _samples(learner, blocks, hp), measure, config.batch_size, block=1)
    block = math.ceil(min(spec.max_episode_steps or BLOCK_STEPS, BLOCK_STEPS) / config.n_steps)
    blocks = min(most, max(FEWEST, experience // (config.rollout * block)))
    rows = _piece(config)
    data = _rollouts(config, algorithm, state, arrays, blocks * block, hp)
    return _measured(state, data, _rollout_measure(config, spec, rows, hp), rows, block)


def _in_force(config: Config, algorithm: Algorithm, steps: int) -> Numbers:
    names = (*algorithm.scheduled, *(("priority_beta",) if isinstance(config, OffPolicyConfig) else ()))
    if config.bonus != "none":
        names += ("bonus_coef", "bonus_lr")
    found = ((name, value_at(getattr(config, name), steps, config.max_env_steps)) for name in names)
    return {name: value for name, value in found if value is not None}


def _piece(config: OnPolicyConfig) -> int:
    """Rows of a minibatch: no more than the run's own, a few minibatches a rollout, and enough rows to normalise
    advantages in; the rollout where the algorithm does not cut it."""
    if not isinstance(config, PPOConfig):
        return config.rollout
    most = max(LEAST_ROWS, min(config.minibatch, config.rollout // PIECES))
    return max((d for d in range(2, most + 1) if config.rollout % d == 0), default=config.rollout)


def _rollouts(
    config: OnPolicyConfig, algorithm: Algorithm, state: State, arrays: dict[str, np.ndarray], count: int, hp: Numbers
) -> Data:
    """As training would collect them, with the parameters held still."""
    rng = generator(config.seed, "noise-scale", 0)
    engine = make_engine(config, config.n_envs)
    bonus = BonusGiver(config, engine.spec)
    bonus.load(arrays)
    warm_up = math.ceil(min(engine.spec.max_episode_steps or WARM_UP, WARM_UP) / config.n_steps)
    try:
        seed = seed_for(config.seed, "noise-scale", 0)
        collector = Collector(engine, config.n_steps, jax.jit(algorithm.act), seed)
        actor = algorithm.actor(state)
        for index in range(warm_up + count):
            noise = algorithm.draw_noise(rng, (config.n_steps, config.n_envs), hp)
            batch, _ = collector.collect(actor, noise)
            rewarded, _ = bonus.add_to(batch, 0, config.n_steps, hp)
            if index >= warm_up:
                yield rewarded, rng
    finally:
        engine.close()


def _samples(learner: ReplayLearner, count: int, hp: Numbers) -> Data:
    rng = generator(learner.config.seed, "noise-scale", 0)
    for _ in range(count):
        slots, envs, weight = learner.replay.sample(rng, (GROUP, learner.config.batch_size), hp["priority_beta"])
        library: Any = jnp if learner.on_accelerator else np
        rows = gather(learner.replay.storage.arrays, slots, envs, learner.layout, library)
        yield rows | {"weight": weight}, rng


def _rollout_measure(config: OnPolicyConfig, spec: EnvSpec, rows: int, hp: Numbers) -> Measure:
    """The policy's part is the whole without the value loss; what that takes away is the value's."""
    descent: dict[str, Any] = {"optimizer": "sgd", "max_grad_norm": None, "weight_decay": 0.0, "value_lr": None}
    minibatches = {"n_epochs": 1, "batch_size": rows, "target_kl": None} if isinstance(config, PPOConfig) else {}
    algorithm = make_algorithm(config.model_copy(update=descent | minibatches), spec)
    whole = as_inputs({**hp, "policy_lr": RATE})
    whole.pop("value_lr", None)
    own_optimizer = algorithm.init(np.random.default_rng(0))["optimizer"]

    @jax.jit
    def gradients(state: State, batch: dict[str, Any], shuffles: Any) -> dict[str, Any]:
        state = state | {"optimizer": own_optimizer}
        of = lambda inputs: jax.vmap(lambda s: _moved(state, algorithm.update(state, batch, inputs, s)[0]))(shuffles)  # noqa: E731
        total, policy = of(whole), of(whole | {"vf_coef": np.float32(0.0)})
        return {"policy": policy, "value": total - policy}

    def measure(state: State, data: Any) -> dict[str, Any]:
        batch, rng = data
        if isinstance(config, PPOConfig):
            shuffles = rng.permutation(config.rollout).astype(np.int32).reshape(-1, 1, rows)
        else:
            shuffles = algorithm.draw_shuffle(rng)[None]
        return gradients(state, batch, shuffles)

    return measure


def _replay_measure(config: OffPolicyConfig, spec: EnvSpec, hp: Numbers) -> Measure:
    """One part at a time: a critic that had moved would give the policy another gradient."""
    one_step = {"update_to_data": 1.0 / (config.n_envs * config.train_freq)}
    descent: dict[str, Any] = {"optimizer": "sgd", "max_grad_norm": None, "weight_decay": 0.0}
    algorithm = make_algorithm(config.model_copy(update=descent | one_step), spec)
    still = {**hp, "policy_lr": 0.0, "value_lr": 0.0, "sync_target": 0.0} | (
        {"ent_coef_lr": 0.0} if config.algo_id == "sac" else {}
    )
    moving = {"value": "value_lr"} | ({"policy": "policy_lr"} if config.algo_id != "dqn" else {})
    fresh = algorithm.init(np.random.default_rng(0))

    @jax.jit
    def gradients(state: State, batch: dict[str, Any], chance: Any) -> dict[str, Any]:
        state = state | {name: fresh[name] for name in ("optimizer", "steps") if name in fresh}

        def of(field: str) -> Any:
            inputs: Any = as_inputs(still | {field: RATE})
            one = lambda row, c: _moved(state, algorithm.update(state, row, inputs, c)[0])  # noqa: E731
            return jax.vmap(one)(jax.tree.map(lambda x: x[:, None], batch), chance)

        return {part: of(field) for part, field in moving.items()}

    def measure(state: State, data: Any) -> dict[str, Any]:
        batch, rng = data
        chance = [algorithm.draw_shuffle(rng) for _ in range(GROUP)]
        return gradients(state, batch, jax.tree.map(lambda *drawn: np.stack(drawn), *chance))

    return measure


def _moved(before: State, after: State) -> Any:
    flat = lambda state: jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(state["params"])])  # noqa: E731
    return (flat(before) - flat(after)) / RATE


def _measured(state: State, data: Data, measure: Measure, rows: int, block: int) -> Gradients:
    """`block`: rollouts in a row that count as one block."""
    means: dict[str, list[np.ndarray]] = {}
    squares: dict[str, list[list[float]]] = {}
    for index, one in enumerate(data):
        for part, gradients in jax.device_get(measure(state, one)).items():
            if index % block == 0:
                means.setdefault(part, []).append(np.zeros_like(gradients[0]))
                squares.setdefault(part, []).append([])
            means[part][-1] += gradients.mean(axis=0) / block
            squares[part][-1] += np.square(gradients).sum(axis=1, dtype=np.float64).tolist()
    learnt = [part for part, found in squares.items() if np.any(found)]
    return Gradients(
        rows,
        {part: np.stack(means[part]) for part in learnt},
        {part: np.array(squares[part]) for part in learnt},
    )
