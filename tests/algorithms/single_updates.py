"""One update of an algorithm on made-up transitions, and the NumPy that it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec

BATCH, OBS, DIM, N_ACTIONS = 12, 4, 2, 3
RATE, TAU = 0.05, 0.1
DISCRETE = ActionSpec("discrete", (N_ACTIONS,), 1)
BOX = ActionSpec("box", (), DIM, -np.ones(DIM, np.float32), np.ones(DIM, np.float32))
ACTIONS = {"discrete": DISCRETE, "box": BOX}
LEARNED = {"ent_coef_init": 0.5, "ent_coef_lr": 0.1}  # SAC's temperature, with a rate of its own


def spec_of(action: ActionSpec, *, mask: bool = False, obs_sizes: tuple[int, ...] = ()) -> EnvSpec:
    size = sum(obs_sizes) or OBS
    return EnvSpec(
        "Fake-v0", (size,), np.dtype(np.float32), False, action, 100, None, mask, "fake", "test", obs_sizes=obs_sizes
    )


class Case(NamedTuple):
    config: Any
    algorithm: Algorithm
    compiled: Callable[..., Any]
    state: Any
    batch: dict[str, np.ndarray]
    hp: dict[str, np.float32]
    noise: Any

    def update(self, **changed: Any) -> tuple[Any, dict[str, float], np.ndarray]:
        """After one update: state, metrics, absolute errors [G, B]."""
        arguments = {"state": self.state, "batch": self.batch, "hp": self.hp, "noise": self.noise} | changed
        state, metrics, error = self.compiled(*arguments.values())
        return jax.tree.map(np.asarray, state), metrics.to_dict(), np.asarray(error)


# A function that runs a few times is not worth optimising.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@cache
def make_compiled(algorithm: str, kind: str, mask: bool, fields: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    base = {
        "env_id": "Fake-v0",
        "algo_id": algorithm,
        "hidden_dims": [6, 5],
        "activation": "tanh",
        "optimizer": "sgd",
        "max_grad_norm": None,
        "policy_lr": RATE,
        "batch_size": BATCH,
        "gamma": 0.9,
        "tau": TAU,
    }
    config = build_config(base | dict(fields), "test")
    made = make_algorithm(config, spec_of(ACTIONS[kind], mask=mask))
    return config, made, jax.jit(made.update, compiler_options=QUICKLY)


def make_case(algorithm: str, kind: str, *, mask: bool = False, **fields: Any) -> Case:
    """Plain gradient descent on smooth networks, whose online and target parameters have nothing in common."""
    config, made, compiled = make_compiled(algorithm, kind, mask, tuple(fields.items()))
    rng = np.random.default_rng(0)
    state = made.init(rng)
    for name in ("params", "target"):
        other = jax.tree.map(
            lambda x: np.asarray(x + 0.4 * rng.standard_normal(x.shape), np.float32), getattr(state, name)
        )
        state = state._replace(**{name: other})
    rows = (config.updates, BATCH)
    batch = {
        "obs": rng.standard_normal((*rows, OBS), dtype=np.float32),
        "next_obs": rng.standard_normal((*rows, OBS), dtype=np.float32),
        "reward": rng.standard_normal(rows, dtype=np.float32),
        "discount": rng.choice([0.0, 0.9, 0.81], rows).astype(np.float32),  # ends, one step, two steps
        "weight": rng.uniform(0.2, 1.0, rows).astype(np.float32),
        "action": (
            rng.uniform(-1, 1, (*rows, DIM)).astype(np.float32)
            if kind == "box"
            else rng.integers(0, N_ACTIONS, rows).astype(np.uint8)
        ),
    }
    if mask:
        for name in ("action_mask", "next_action_mask"):
            batch[name] = rng.random((*rows, N_ACTIONS)) < 0.5
            batch[name][..., 1] = True
    hp = {name: np.float32(value_at(getattr(config, name), 0, 1)) for name in made.scheduled}
    noise = made.update_noise(rng)
    return Case(config, made, compiled, state, batch, hp | {"sync_target": np.float32(0)}, noise)


def first(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first minibatch, in double precision."""
    return {name: rows[0].astype(np.float64) if rows.dtype == np.float32 else rows[0] for name, rows in batch.items()}


def features(trunk: Any, x: np.ndarray) -> np.ndarray:
    for layer in trunk["dense"]:
        x = np.tanh(x @ layer["weight"].astype(np.float64) + layer["bias"])
    return x


def apply(params: Any, head: str, x: np.ndarray) -> np.ndarray:
    return features(params["trunk"], x) @ params[head]["weight"].astype(np.float64) + params[head]["bias"]


def critics(params: Any, obs: np.ndarray, action: np.ndarray | None = None) -> np.ndarray:
    """[n_critics, B], or [n_critics, B, A] of discrete actions."""
    x = obs if action is None else np.hstack([obs, action])
    members = zip(params["trunk"], params["critic_head"], strict=True)
    q = np.stack([apply({"trunk": trunk, "critic_head": head}, "critic_head", x) for trunk, head in members])
    return q if action is None else q[..., 0]


def chosen(q: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.take_along_axis(q, np.broadcast_to(action, q.shape[:-1])[..., None].astype(int), -1)[..., 0]


def slope(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences."""
    steps = 1e-5 * np.eye(at.size)
    made = [(function(at + step.reshape(at.shape)) - function(at - step.reshape(at.shape))) / 2e-5 for step in steps]
    return np.array(made).reshape(at.shape)


def require_report(metrics: dict[str, float], error: np.ndarray, target: np.ndarray, errors: np.ndarray) -> None:
    """`errors` are signed, [n_critics, B]."""
    np.testing.assert_allclose(error[0], np.abs(errors).mean(axis=0), rtol=1e-4, atol=1e-5)
    assert metrics["train/metrics/td_error"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert metrics["train/data/return_mean"] == pytest.approx(target.mean(), rel=1e-4, abs=1e-5)
    assert metrics["train/data/return_std"] == pytest.approx(target.std(), rel=1e-4)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def require_equal(one: Any, other: Any, **tolerance: float) -> None:
    for a, b in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 0, "atol": 0} | tolerance))


def changed(one: Any, other: Any) -> bool:
    return any((a != b).any() for a, b in zip(leaves(one), leaves(other), strict=True))


EVERY_KIND: list[tuple[str, str, dict[str, Any]]] = [
    ("dqn", "discrete", {"double": True, "target_update_interval": None}),
    ("sac", "discrete", {"mask": True, **LEARNED}),
    ("sac", "box", LEARNED),
    ("td3", "box", {}),
    ("ddpg", "box", {}),
]
every_kind = pytest.mark.parametrize(("algorithm", "kind", "extra"), EVERY_KIND, ids=lambda x: x if x else "")


def critic_of(state: Any) -> Any:
    return state.params.get("critic", state.params)
