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
from gymnasium_solver.verify.compliance.functions import differences
from gymnasium_solver.verify.compliance.gae_formula import advantages
from gymnasium_solver.verify.compliance.loss_formula import standardized, surrogate
from gymnasium_solver.verify.compliance.report import Check
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
WHOLE = {"n_epochs": 1, "batch_size": 1.0, "hidden_dims": (16, 16), "ent_coef": 0.03}


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


def rollout_for(kind: str) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    rows = (STEPS, ENVS)
    action: Array = {
        "discrete": lambda: rng.integers(0, 3, rows).astype(np.int32),
        "multi_discrete": lambda: np.stack([rng.integers(0, n, rows) for n in (2, 3)], -1).astype(np.int32),
        "box": lambda: rng.normal(size=(*rows, 2)).astype(np.float32),
    }[kind]()
    terminated, truncated, valid = np.zeros(rows, bool), np.zeros(rows, bool), np.ones(rows, bool)
    terminated[2, 0] = terminated[5, 2] = truncated[3, 1] = truncated[7, 3] = True
    valid[1:] = ~(terminated | truncated)[:-1]
    return {
        "obs": rng.normal(size=(STEPS + 1, ENVS, FEATURES)).astype(np.float32),
        "action": action,
        "reward": rng.normal(size=rows).astype(np.float32),
        "terminated": terminated,
        "truncated": truncated,
        "valid": valid,
    }


class Updated(NamedTuple):
    metrics: dict[str, float]
    error_of_advantages: float
    error: float  # of the gradient, as a share of its largest component


@functools.cache
def updated(kind: str) -> Updated:
    """One update whose only minibatch is the whole rollout."""
    config = config_for(**WHOLE)
    algorithm, rollout = make_algorithm(config, spaces_for(kind)), rollout_for(kind)
    state = algorithm.init(np.random.default_rng(0))
    # The actor's last layer begins so small that its derivatives would not be seen.
    state.params["actor_head"]["weight"] = 30 * state.params["actor_head"]["weight"]
    hp = {name: np.float32(value_at(getattr(config, name), 0, 1)) for name in algorithm.scheduled}
    arguments = state, rollout, hp, algorithm.update_noise(np.random.default_rng(1))
    _, scalars, estimates = jax.jit(algorithm.update)(*arguments)
    metrics, parts = scalars.to_dict(), jax.jit(algorithm.gradients)(*arguments)
    got = np.asarray(parts["policy"] + parts["value"], float)[0]
    wanted, loss = _in_numpy(kind, config, state.params, rollout)
    at = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.params)]).astype(float)
    chosen = np.random.default_rng(5).choice(at.size, PARAMETERS, replace=False)

    def moved(changes: Array) -> float:
        vector = at.copy()
        vector[chosen] += changes
        return loss(vector)

    error = np.abs(differences(moved, np.zeros(PARAMETERS), step=1e-6) - got[chosen]).max() / np.abs(got).max()
    descended = abs(metrics["train/metrics/grad_norm/all"] / np.linalg.norm(got) - 1)  # the update took this gradient
    advantage_error = float(np.abs(wanted - np.asarray(estimates.advantage)).max())
    return Updated(metrics, advantage_error, max(float(error), float(descended)))


def _in_numpy(
    kind: str, config: PPOConfig, initial: Any, rollout: dict[str, Array]
) -> tuple[Array, Callable[[Array], float]]:
    """Advantages [T, N], and the loss of the whole rollout as a function of the parameters as one vector."""
    leaves, structure = jax.tree.flatten(jax.tree.map(lambda x: np.asarray(x, float), initial))
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    before = jax.tree.unflatten(structure, leaves)
    values = _value(before, rollout["obs"].astype(float))
    flags = (rollout[name].astype(float) for name in ("terminated", "truncated"))
    sample = Rollout(rollout["reward"].astype(float), values[:-1], values[1:], *flags, config.gamma, config.gae_lambda)
    found, keep = advantages({}, sample), rollout["valid"]
    obs, action = rollout["obs"][:-1][keep].astype(float), rollout["action"][keep]
    returns = (found + sample.values)[keep]
    old_log_prob, _ = _policy(kind, before, obs, action)
    batch = loss_batch()._replace(
        old_log_prob=old_log_prob, advantages=standardized(found[keep]), clip_range=config.clip_range
    )

    def loss(vector: Array) -> float:
        parts = [part.reshape(leaf.shape) for part, leaf in zip(np.split(vector, ends), leaves, strict=True)]
        params = jax.tree.unflatten(structure, parts)
        log_prob, entropy = _policy(kind, params, obs, action)
        value_loss = np.square(_value(params, obs) - returns).mean()
        weighted = config.vf_coef * value_loss - config.ent_coef * entropy.mean()  # type: ignore[operator]
        return surrogate({}, batch, log_prob) + float(weighted)

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
        yield _within(
            f"gradient of a whole update, {kind} actions",
            updated(kind).error,
            TOLERANCE,
            "networks, endings, resets, normalised advantages and all three losses at once, by central differences",
            "the update does not descend the loss it should",
        )
    metrics, error, _ = updated("discrete")
    yield _within(
        "ratio in the first minibatch is 1",
        metrics["train/metrics/ratio_deviation_first"],
        1e-4,
        "what acted is what is trained",
        "old log-probabilities, or the normaliser, are not those that acted",
    )
    why = "terminated, truncated and reset rows in one rollout"
    yield _within("advantages of a whole update", error, 1e-4, why, "the update handles an ending differently")


def _within(name: str, error: float, bound: float, why: str, likely: str) -> Check:
    status, likely = ("pass", "") if error < bound else ("fail", likely)
    return Check(name, status, f"error up to {bound:.0e}", f"error {error:.1e}", why, likely)  # type: ignore[arg-type]
