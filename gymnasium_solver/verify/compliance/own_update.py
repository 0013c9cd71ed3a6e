"""One whole update of our PPO against the same in NumPy: networks, endings, normalisation, all three losses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import PPOConfig
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.verify.compliance import reference
from gymnasium_solver.verify.compliance.results import Check, judged

Array = np.ndarray

STEPS, ENVS, FEATURES = 8, 4, 5
ACTIONS = {
    "discrete": ActionSpec("discrete", (3,), 1),
    "multi_discrete": ActionSpec("multi_discrete", (2, 3), 2),
    "box": ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32)),
}
PARAMETERS = 60  # of the network whose derivatives are compared
# One step of plain descent with rate 1 and no limit: what it subtracts from the parameters is the gradient.
DESCENT = {
    "n_epochs": 1,
    "batch_size": 1.0,
    "optimizer": "sgd",
    "max_grad_norm": None,
    "policy_lr": 1.0,
    "hidden_dims": (16, 16),
    "ent_coef": 0.03,
}


class Made(NamedTuple):
    """Our PPO, made for a small imaginary environment, with a state and a rollout."""

    config: PPOConfig
    algorithm: Algorithm
    state: dict[str, Any]
    rollout: dict[str, Array]

    def updated(self) -> tuple[dict[str, Any], dict[str, float], Any]:
        hp = {name: value_at(getattr(self.config, name), 0, 1) for name in self.algorithm.scheduled}
        inputs = {name: np.float32(value) for name, value in hp.items() if value is not None}
        chance = self.algorithm.draw_shuffle(np.random.default_rng(1))
        state, metrics, worth = jax.jit(self.algorithm.update)(self.state, self.rollout, inputs, chance)
        return state, metrics.to_dict(), worth


def spec_for(kind: str, image: bool = False) -> EnvSpec:
    shape, dtype = ((84, 84, 4), np.uint8) if image else ((FEATURES,), np.float32)
    return EnvSpec("Imaginary-v0", shape, np.dtype(dtype), image, ACTIONS[kind], 100, None, False, "none", "validation")


def fresh(kind: str, **fields: Any) -> Algorithm:
    return make_algorithm(_config(**fields), spec_for(kind))


def _config(**fields: Any) -> PPOConfig:
    fields = {"env_id": "Imaginary-v0", "algo_id": "ppo", "n_envs": ENVS, "n_steps": STEPS, "batch_size": 16} | fields
    config = build_config(fields, "validate")
    assert isinstance(config, PPOConfig)
    return config


def make(kind: str = "discrete", **fields: Any) -> Made:
    config, algorithm = _config(**fields), fresh(kind, **fields)
    state = algorithm.init(np.random.default_rng(0))
    # The actor's last layer begins so small that its derivatives would not be seen.
    state["params"]["actor_head"]["weight"] = 30 * state["params"]["actor_head"]["weight"]
    return Made(config, algorithm, state, _rollout(kind))


def _rollout(kind: str) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    rows = (STEPS, ENVS)
    action: Array = {
        "discrete": lambda: rng.integers(0, 3, rows).astype(np.int32),
        "multi_discrete": lambda: np.stack([rng.integers(0, n, rows) for n in (2, 3)], -1).astype(np.int32),
        "box": lambda: rng.normal(size=(*rows, 2)).astype(np.float32),
    }[kind]()
    terminated, truncated = np.zeros(rows, bool), np.zeros(rows, bool)
    terminated[2, 0] = terminated[5, 2] = truncated[3, 1] = truncated[7, 3] = True
    valid = np.ones(rows, bool)
    valid[1:] = ~(terminated | truncated)[:-1]
    return {
        "obs": rng.normal(size=(STEPS + 1, ENVS, FEATURES)).astype(np.float32),
        "action": action,
        "reward": rng.normal(size=rows).astype(np.float32),
        "terminated": terminated,
        "truncated": truncated,
        "valid": valid,
    }


class Descended(NamedTuple):
    """What one step of plain descent did."""

    made: Made
    metrics: dict[str, float]
    advantages: Array
    error: float  # of the gradient, as a share of its largest component


@functools.cache
def descended(kind: str) -> Descended:
    made = make(kind, **DESCENT)
    after, metrics, worth = made.updated()
    return Descended(made, metrics, np.asarray(worth.advantage), _gradient_error(made, after))


def check_update() -> Iterator[Check]:
    for kind in ACTIONS:
        made, metrics, advantages, error = descended(kind)
        yield judged(
            f"gradient of a whole update, {kind} actions",
            error < 2e-3,
            "as central differences in NumPy",
            f"error {error:.1e} of the largest, {PARAMETERS} parameters",
            "networks, endings, resets, normalised advantages and all three losses at once",
            "the update does not descend the loss it should",
        )
        if kind == "discrete":
            deviation = metrics["train/metrics/ratio_deviation_first"]
            yield judged(
                "ratio in the first minibatch is 1",
                deviation < 1e-4,
                "within 1e-4",
                f"off by {deviation:.1e}",
                "what acted is what is trained",
                "old log-probabilities, or the normaliser, are not those that acted",
            )
            error = float(np.abs(advantages - _advantages(made)).max())
            yield judged(
                "advantages of a whole update",
                error < 1e-4,
                "error up to 1e-04",
                f"error {error:.1e}",
                "terminated, truncated and reset rows in one rollout",
                "an ending is handled otherwise inside the update",
            )


def _gradient_error(made: Made, after: dict[str, Any]) -> float:
    """Largest difference between what the update subtracted and the derivative, over some parameters."""
    before = jax.tree.map(lambda x: np.asarray(x, float), made.state["params"])
    moved = [
        np.asarray(old - new, float).ravel()
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after["params"]), strict=True)
    ]
    loss = _loss_in_numpy(made, before)
    rng, step, worst = np.random.default_rng(5), 1e-6, 0.0
    sizes = [part.size for part in moved]
    for index in rng.choice(sum(sizes), PARAMETERS, replace=False):
        leaf = int(np.searchsorted(np.cumsum(sizes), index, side="right"))
        offset = int(index) - sum(sizes[:leaf])
        derivative = (loss(leaf, offset, step) - loss(leaf, offset, -step)) / (2 * step)
        worst = max(worst, abs(derivative - moved[leaf][offset]))
    return worst / max(float(np.abs(part).max()) for part in moved)


def _loss_in_numpy(made: Made, before: Any) -> Callable[[int, int, float], float]:
    leaves, structure = jax.tree.flatten(before)

    def number(field: str) -> float:
        return float(getattr(made.config, field))

    rollout = made.rollout
    keep = rollout["valid"].ravel()
    flat = {name: rollout[name].reshape(STEPS * ENVS, *rollout[name].shape[2:])[keep] for name in ("action",)}
    obs = rollout["obs"][:-1].reshape(STEPS * ENVS, -1)[keep].astype(float)
    kind = {1: "multi_discrete", 0: "discrete"}[flat["action"].ndim - 1] if flat["action"].dtype.kind == "i" else "box"
    old_log_prob, _ = _policy(kind, before, obs, flat["action"])
    advantages = _advantages(made).ravel()[keep]
    returns = advantages + _value(before, obs)
    advantages = reference.standardised(advantages)

    def loss(leaf: int, offset: int, change: float) -> float:
        moved = [part.copy() for part in leaves]
        moved[leaf].ravel()[offset] += change
        params = jax.tree.unflatten(structure, moved)
        log_prob, entropy = _policy(kind, params, obs, flat["action"])
        policy = reference.surrogate_loss(log_prob, old_log_prob, advantages, number("clip_range"))
        value = reference.value_loss(_value(params, obs), returns)
        return policy + number("vf_coef") * value - number("ent_coef") * float(entropy.mean())

    return loss


def _advantages(made: Made) -> Array:
    params = jax.tree.map(lambda x: np.asarray(x, float), made.state["params"])
    rollout, config = made.rollout, made.config
    values = _value(params, rollout["obs"].astype(float).reshape(-1, FEATURES)).reshape(STEPS + 1, ENVS)
    terminated = rollout["terminated"].astype(float)
    done = np.maximum(terminated, rollout["truncated"])
    return reference.gae(
        rollout["reward"].astype(float), values[:-1], values[1:], terminated, done, config.gamma, config.gae_lambda
    )


def _hidden(layers: Any, x: Array) -> Array:
    for layer in layers["dense"]:
        x = np.tanh(x @ layer["weight"] + layer["bias"])
    return x


def _value(params: Any, obs: Array) -> Array:
    head = params["critic_head"]
    return (_hidden(params["trunk"]["value"], obs) @ head["weight"] + head["bias"])[:, 0]


def _policy(kind: str, params: Any, obs: Array, action: Array) -> tuple[Array, Array]:
    """Log-probability and entropy of each row."""
    head = params["actor_head"]
    out = _hidden(params["trunk"]["policy"], obs) @ head["weight"] + head["bias"]
    if kind == "box":
        z = (action - out) / np.exp(head["log_std"])
        log_prob = -0.5 * z**2 - head["log_std"] - 0.5 * np.log(2 * np.pi)
        entropy = np.sum(head["log_std"] + 0.5 * np.log(2 * np.pi * np.e))
        return log_prob.sum(-1), np.full(len(obs), entropy)
    sizes = ACTIONS[kind].sizes
    chosen = action.reshape(len(action), -1)
    log_prob, entropy = np.zeros(len(obs)), np.zeros(len(obs))
    for column, logits in enumerate(np.split(out, np.cumsum(sizes)[:-1], axis=1)):
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        log_prob += np.log(p[np.arange(len(p)), chosen[:, column]])
        entropy -= (p * np.log(p)).sum(1)
    return log_prob, entropy
