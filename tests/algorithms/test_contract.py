"""What every algorithm guarantees: finite, catalogued metrics; pure updates; one compilation; exact save and load."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import ALGORITHMS, make_algorithm
from gymnasium_solver.config.load import build_config
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.metrics.catalogue import is_catalogued
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.collect import Collector

ACTIONS = {
    "discrete": ActionSpec("discrete", (3,), 1, None, None),
    "multi_discrete": ActionSpec("multi_discrete", (2, 3), 2, None, None),
    "box": ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32)),
}
VARIATIONS: list[dict[str, Any]] = [
    {},
    {"normalize_obs": True, "normalize_reward": True},
    {"shared_network": True, "precision": "bfloat16", "optimizer": "adamw"},
]
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_action_space = pytest.mark.parametrize("kind", ACTIONS)


def make_spec(kind: str, *, image: bool = False, mask: bool = False) -> EnvSpec:
    shape, dtype = ((24, 24, 1), np.uint8) if image else ((5,), np.float32)
    return EnvSpec("Fake-v0", shape, np.dtype(dtype), image, ACTIONS[kind], 100, None, mask, "fake", "test")


def make_case(algorithm: str, spec: EnvSpec, **fields: Any) -> tuple[Any, dict, dict, np.ndarray]:
    config = build_config({"env_id": "Fake-v0", "algo_id": algorithm, "n_envs": 4, "n_steps": 8, **fields}, "test")
    parts = make_algorithm(config, spec)
    rng = np.random.default_rng(0)
    batch = Collector.empty_batch(spec, 4, 8)
    batch["obs"][:] = rng.integers(0, 255, batch["obs"].shape) if spec.is_image else rng.normal(size=batch["obs"].shape)
    action = batch["action"]
    for i, size in enumerate(spec.action.sizes):
        action[..., *([i] if action.ndim == 3 else [])] = rng.integers(0, size, action.shape[:2])
    if spec.action.kind == "box":
        action[:] = rng.normal(size=action.shape)
    batch["reward"][:] = rng.normal(size=(8, 4))
    batch["terminated"][:] = rng.random((8, 4)) < 0.2
    batch["truncated"][:] = (rng.random((8, 4)) < 0.2) & ~batch["terminated"]
    batch["valid"][:] = rng.random((8, 4)) < 0.9
    hp = {name: np.float32(getattr(config, name)) for name in parts.scheduled}
    return parts, batch, hp, parts.draw_shuffle(rng)


def fields_for(algorithm: str) -> dict[str, Any]:
    return {"batch_size": 8, "n_epochs": 2} if algorithm == "ppo" else {}


def bytes_of(tree: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in to_arrays(tree).items()}


@every_algorithm
@every_action_space
@pytest.mark.parametrize("variation", VARIATIONS, ids=str)
def test_update_is_pure_finite_catalogued_and_compiles_once(algorithm: str, kind: str, variation: dict) -> None:
    parts, batch, hp, shuffle = make_case(algorithm, make_spec(kind), **(fields_for(algorithm) | variation))
    state = parts.init(np.random.default_rng(0))
    update = jax.jit(parts.update).lower(state, batch, hp, shuffle).compile()  # takes these shapes and types, no other
    once, metrics, worth = update(state, batch, hp, shuffle)
    again, _, _ = update(state, batch, hp, shuffle)
    assert bytes_of(once) == bytes_of(again), "the same inputs give the same bytes"
    twice, _, _ = update(once, batch, hp, shuffle)
    assert bytes_of(once["params"]) != bytes_of(twice["params"])
    for name, value in metrics.to_dict().items():
        assert np.isfinite(value), name
        assert is_catalogued(name), name
    assert metrics["train/metrics/grad_norm/all"] > 0
    assert all(column.shape == (8, 4) and np.isfinite(column).all() for column in worth)


@every_algorithm
@every_action_space
def test_acting(algorithm: str, kind: str) -> None:
    parts, batch, _, _ = make_case(algorithm, make_spec(kind), **fields_for(algorithm))
    actor = parts.actor(parts.init(np.random.default_rng(0)))
    noise = parts.draw_noise(np.random.default_rng(1), (4,))
    action = np.asarray(parts.act(actor, batch["obs"][0], noise, None))
    assert action.shape == batch["action"][0].shape
    assert np.asarray(parts.act_greedy(actor, batch["obs"][0], None)).shape == action.shape
    for i, size in enumerate(ACTIONS[kind].sizes):
        column = action if action.ndim == 1 else action[:, i]
        assert ((column >= 0) & (column < size)).all()


@every_algorithm
def test_images_and_masks(algorithm: str) -> None:
    parts, batch, hp, shuffle = make_case(
        algorithm, make_spec("discrete", image=True, mask=True), **fields_for(algorithm)
    )
    batch["action_mask"][..., 2] = False
    batch["action"][batch["action"] == 2] = 0
    state = parts.init(np.random.default_rng(0))
    _, metrics, _ = jax.jit(parts.update)(state, batch, hp, shuffle)
    assert all(np.isfinite(v) for v in metrics.to_dict().values())
    noise = parts.draw_noise(np.random.default_rng(1), (4,))
    assert (np.asarray(parts.act(parts.actor(state), batch["obs"][0], noise, batch["action_mask"][0])) != 2).all()


@every_algorithm
def test_save_and_load_are_equal(algorithm: str) -> None:
    parts, batch, hp, shuffle = make_case(
        algorithm, make_spec("box"), normalize_obs=True, normalize_reward=True, **fields_for(algorithm)
    )
    state, _, _ = jax.jit(parts.update)(parts.init(np.random.default_rng(0)), batch, hp, shuffle)
    loaded = from_arrays(parts.init(np.random.default_rng(9)), to_arrays(state), "test")
    assert bytes_of(loaded) == bytes_of(state)


@every_algorithm
def test_rows_that_are_resets_teach_nothing(algorithm: str) -> None:
    parts, batch, hp, shuffle = make_case(algorithm, make_spec("discrete"), **fields_for(algorithm))
    done = batch["terminated"] | batch["truncated"]
    batch["valid"][:] = True
    batch["valid"][1:] = ~done[:-1]
    assert (~batch["valid"]).any()
    state = parts.init(np.random.default_rng(0))
    before, _, _ = jax.jit(parts.update)(state, batch, hp, shuffle)
    batch["reward"][~batch["valid"]] = 1e6
    batch["action"][~batch["valid"]] = 0
    after, _, _ = jax.jit(parts.update)(state, batch, hp, shuffle)
    for one, other in zip(jax.tree.leaves(before["params"]), jax.tree.leaves(after["params"]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_ppo_reports_a_first_ratio_of_one_and_stops_at_the_target_kl() -> None:
    spec = make_spec("discrete")
    parts, batch, hp, shuffle = make_case("ppo", spec, batch_size=8, n_epochs=4, policy_lr=0.1, target_kl=0.01)
    state = parts.init(np.random.default_rng(0))
    stopped, metrics, _ = jax.jit(parts.update)(state, batch, hp, shuffle)
    assert metrics["train/metrics/ratio_deviation_first"] < 1e-5
    assert 0 < metrics["train/metrics/epochs_done"] < 1
    free, batch, hp, shuffle = make_case("ppo", spec, batch_size=8, n_epochs=4, policy_lr=0.1)
    unstopped, metrics, _ = jax.jit(free.update)(state, batch, hp, shuffle)
    assert metrics["train/metrics/epochs_done"] == 1
    assert bytes_of(stopped["params"]) != bytes_of(unstopped["params"])


def test_value_lr_moves_only_the_critic() -> None:
    parts, batch, hp, shuffle = make_case("a2c", make_spec("discrete"), value_lr=0.0)
    state = parts.init(np.random.default_rng(0))
    after, _, _ = jax.jit(parts.update)(state, batch, hp, shuffle)
    frozen = {"params/critic_head", "params/trunk/value"}
    old, new = bytes_of(state), bytes_of(after)
    for name in (n for n in old if n.startswith("params/") and n.endswith("weight")):
        held = any(name.startswith(part) for part in frozen)
        assert (old[name] == new[name]) is held, name
