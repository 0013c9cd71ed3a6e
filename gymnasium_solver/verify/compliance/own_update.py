"""One whole update of our PPO against the same in NumPy: networks, endings, resets, normalisation, all three losses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.cards.ppo import PPOConfig
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.train.source import empty_columns
from gymnasium_solver.verify.compliance.formulas import advantages, standardized, surrogate
from gymnasium_solver.verify.compliance.functions import differences
from gymnasium_solver.verify.compliance.report import Check, compare
from gymnasium_solver.verify.compliance.samples import Rollout, loss_batch

Array = np.ndarray

STEPS, ENVS, FEATURES = 8, 4, 5
ACTIONS = {
    "discrete": ActionSpec("discrete", (3,), 1),
    "multi_discrete": ActionSpec("multi_discrete", (2, 3), 2),
    "box": ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32)),
}
PARAMETERS = 60  # of the network whose derivatives are compared
TOLERANCE = 2e-3


def config_for(**fields: Any) -> PPOConfig:
    fields = {"env_id": "Imaginary-v0", "algo_id": "ppo", "n_envs": ENVS, "n_steps": STEPS, "batch_size": 16} | fields
    config = build_config(fields, "validate")
    assert isinstance(config, PPOConfig)
    return config


def spaces_for(kind: str, shape: tuple[int, ...] = (FEATURES,)) -> EnvSpec:
    image = len(shape) == 3
    dtype = np.dtype(np.uint8 if image else np.float32)
    return EnvSpec("Imaginary-v0", shape, dtype, image, ACTIONS[kind], 100, None, False, "none", "validation")


def initial_params(kind: str = "discrete", **fields: Any) -> Any:
    return make_algorithm(config_for(**fields), spaces_for(kind)).init(np.random.default_rng(0)).params


def _rollout(kind: str) -> dict[str, Array]:
    rng, spec, columns = np.random.default_rng(3), ACTIONS[kind], empty_columns(spaces_for(kind), {}, ENVS, STEPS)
    for name in ("obs", "reward"):
        columns[name][:] = rng.normal(size=columns[name].shape)
    shape = (STEPS, ENVS, spec.dim)
    action = rng.normal(size=shape) if kind == "box" else rng.integers(0, spec.sizes, shape)
    columns["action"][:] = action.reshape(columns["action"].shape)
    terminated, truncated, valid = columns["terminated"], columns["truncated"], columns["valid"]
    terminated[2, 0] = terminated[5, 2] = truncated[3, 1] = truncated[7, 3] = True
    valid[0], valid[1:] = True, ~(terminated | truncated)[:-1]
    return columns


class Updated(NamedTuple):
    metrics: dict[str, float]
    advantage_error: float
    gradient_error: float  # as a share of the largest component


@functools.cache
def updated(kind: str) -> Updated:
    """One update whose only minibatch is the whole rollout."""
    config, rollout = config_for(n_epochs=1, batch_size=1.0, hidden_dims=(16, 16), ent_coef=0.03), _rollout(kind)
    algorithm = make_algorithm(config, spaces_for(kind))
    state = algorithm.init(np.random.default_rng(0))
    # The actor's last layer begins so small that its derivatives would not be seen.
    state.params["actor_head"]["weight"] = 30 * state.params["actor_head"]["weight"]
    hp = {name: value_at(getattr(config, name), 0, 1) for name in algorithm.scheduled}
    arguments = state, rollout, hp, algorithm.update_noise(np.random.default_rng(1))
    _, scalars, estimates = jax.jit(algorithm.update)(*arguments)
    metrics, parts = scalars.to_dict(), jax.jit(algorithm.gradients)(*arguments)
    got = np.asarray(parts["policy"] + parts["value"], float)[0]

    expected, loss = _in_numpy(kind, config, state.params, rollout, hp)
    chosen = np.eye(got.size)[np.random.default_rng(5).choice(got.size, PARAMETERS, replace=False)]
    slopes = differences(lambda changes: loss(changes @ chosen), np.zeros(PARAMETERS), step=1e-6)
    error = np.abs(slopes - chosen @ got).max() / np.abs(got).max()
    descended = abs(metrics["train/metrics/grad_norm/all"] / np.linalg.norm(got) - 1)  # the update took this gradient
    return Updated(metrics, float(np.abs(expected - estimates.advantage).max()), float(max(error, descended)))


def _in_numpy(
    kind: str, config: PPOConfig, initial: Any, rollout: dict[str, Array], hp: Any
) -> tuple[Array, Callable[[Array], float]]:
    """Advantages [T, N], and the loss of the whole rollout by how much the parameters, as one vector, have changed."""
    leaves, structure = jax.tree.flatten(jax.tree.map(lambda x: np.asarray(x, float), initial))
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    before, obs = jax.tree.unflatten(structure, leaves), rollout["obs"].astype(float)
    values, keep = _value(before, obs), rollout["valid"]
    columns = (rollout["reward"], values[:-1], values[1:], rollout["terminated"], rollout["truncated"])
    rows = (column.astype(float) for column in columns)
    found = advantages({}, Rollout._make([*rows, config.gamma, config.gae_lambda]))
    obs, action, returns = obs[:-1][keep], rollout["action"][keep], (found + values[:-1])[keep]
    batch = loss_batch()._replace(
        old_log_prob=_policy(kind, before, obs, action)[0],
        advantages=standardized(found[keep]),
        clip_range=hp["clip_range"],
    )

    def loss(change: Array) -> float:
        moved = [leaf + part.reshape(leaf.shape) for part, leaf in zip(np.split(change, ends), leaves, strict=True)]
        params = jax.tree.unflatten(structure, moved)
        log_prob, entropy = _policy(kind, params, obs, action)
        value_loss = float(np.square(_value(params, obs) - returns).mean())
        return surrogate({}, batch, log_prob) + hp["vf_coef"] * value_loss - hp["ent_coef"] * entropy.mean()

    return found, loss


def _hidden(layers: Any, x: Array) -> Array:
    for layer in layers["dense"]:
        x = np.tanh(x @ layer["weight"] + layer["bias"])
    return x


def _value(params: Any, obs: Array) -> Array:
    head = params["critic_head"]
    return (_hidden(params["trunk"]["value"], obs) @ head["weight"] + head["bias"])[..., 0]


def _policy(kind: str, params: Any, obs: Array, action: Array) -> tuple[Array, Array]:
    """Log-probability and entropy of each row."""
    head = params["actor_head"]
    out = _hidden(params["trunk"]["policy"], obs) @ head["weight"] + head["bias"]
    if kind == "box":
        log_std = head["log_std"]
        log_prob = -0.5 * ((action - out) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
        return log_prob.sum(-1), np.full(len(obs), np.sum(log_std + 0.5 * np.log(2 * np.pi * np.e)))
    log_prob, entropy = np.zeros(len(obs)), np.zeros(len(obs))
    logits = np.split(out, np.cumsum(ACTIONS[kind].sizes)[:-1], axis=1)
    for chosen, x in zip(action.reshape(len(action), -1).T, logits, strict=True):
        log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
        log_prob += log_p[np.arange(len(x)), chosen]
        entropy -= (np.exp(log_p) * log_p).sum(1)
    return log_prob, entropy


def check_update() -> Iterator[Check]:
    for kind in ACTIONS:
        name, error = f"error of a whole update's gradient, {kind} actions", updated(kind).gradient_error
        why = "networks, endings, resets, normalised advantages and all three losses at once"
        yield compare(name, error, 0, TOLERANCE, why, "the update does not descend the loss it should")
    metrics, error, _ = updated("discrete")
    ratio, likely = metrics["train/metrics/ratio_deviation_first"], "old log-probabilities are from another policy"
    yield compare("ratio in the first minibatch minus 1", ratio, 0, 1e-4, "the acting policy is trained", likely)
    why, likely = "terminated, truncated and reset rows in one rollout", "the update treats endings differently"
    yield compare("error of a whole update's advantages", error, 0, 1e-4, why, likely)
