"""What every algorithm guarantees: finite, catalogued metrics; pure updates; one compilation; exact save and load."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.cards import all_cards, card_of, names
from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import OffPolicyConfig
from gymnasium_solver.data.layout import gather, make_layout
from gymnasium_solver.data.replay import Replay
from gymnasium_solver.data.storage import HostStorage
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.metrics.catalogue import is_catalogued
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.source import empty_columns

pytestmark = pytest.mark.integration

ACTIONS = {
    "discrete": ActionSpec("discrete", (3,), 1, None, None),
    "multi_discrete": ActionSpec("multi_discrete", (2, 3), 2, None, None),
    "box": ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32)),
}
TABULAR = [card.algo_id for card in all_cards() if card.needs_discrete_observations]
VARIATIONS: dict[str, list[dict[str, Any]]] = {
    "on_policy": [
        {},
        {"normalize_obs": True, "normalize_reward": True},
        {"shared_network": True, "precision": "bfloat16", "optimizer": "adamw"},
    ],
    "replay": [
        {},
        {"normalize_obs": True, "normalize_reward": True, "update_to_data": 0.25},
        {"layer_norm": True, "precision": "bfloat16", "optimizer": "adamw", "max_grad_norm": 0.1},
    ],
    "tabular": [{}, {"exploration": "ucb"}],
}
CASES = [
    (card.algo_id, kind, variation)
    for card in all_cards()
    for kind in card.actions
    for variation in VARIATIONS.get(card.family, [{}])
]
every_algorithm = pytest.mark.parametrize("algorithm", names())
every_pairing = pytest.mark.parametrize(
    ("algorithm", "kind"), [(card.algo_id, kind) for card in all_cards() for kind in card.actions]
)
OBS_SIZES = (2, 3)  # of the discrete observations that tables need; one-hot they are five numbers, like the others


def make_spec(kind: str, *, image: bool = False, mask: bool = False, discrete: bool = False) -> EnvSpec:
    shape, dtype = ((24, 24, 1), np.uint8) if image else ((5,), np.float32)
    sizes = OBS_SIZES if discrete else ()
    return EnvSpec("Fake-v0", shape, np.dtype(dtype), image, ACTIONS[kind], 100, None, mask, "fake", "test", sizes)


class Case(NamedTuple):
    parts: Algorithm
    rollout: dict[str, np.ndarray]
    batch: dict[str, Any]  # what `update` is given: the rollout, or minibatches of it from a replay
    hp: dict[str, Any]
    update_noise: Any

    def update(self, state: Any, batch: dict[str, Any] | None = None) -> tuple[Any, Any, Any]:
        return jax.jit(self.parts.update)(state, self.batch if batch is None else batch, self.hp, self.update_noise)

    def noise(self, rng: np.random.Generator) -> np.ndarray:
        return self.parts.acting_noise(rng, (4,), {name: float(value) for name, value in self.hp.items()})


def make_case(algorithm: str, kind: str, *, image: bool = False, mask: bool = False, **fields: Any) -> Case:
    spec = make_spec(kind, image=image, mask=mask, discrete=algorithm in TABULAR)
    fields = {"env_id": "Fake-v0", "algo_id": algorithm, "n_envs": 4, "n_steps": 8, **fields_for(algorithm), **fields}
    config = build_config(fields, "test")
    parts = make_algorithm(config, spec)
    rng = np.random.default_rng(0)
    rollout = make_rollout(spec, rng)
    scheduled = {name: value_at(getattr(config, name), 0, 1) for name in parts.scheduled}
    hp = {name: np.float32(value) for name, value in scheduled.items() if value is not None}
    batch: dict[str, Any] = rollout
    if isinstance(config, OffPolicyConfig):
        hp["sync_target"] = np.float32(0)
        batch = make_minibatches(config, spec, rollout, rng)
    return Case(parts, rollout, batch, hp, parts.update_noise(rng))


def make_rollout(spec: EnvSpec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    rollout = empty_columns(spec, {}, 4, 8)
    obs = rollout["obs"]
    obs[:] = rng.integers(0, 255, obs.shape) if spec.is_image else rng.normal(size=obs.shape)
    if spec.obs_sizes:
        columns = [np.eye(size)[rng.integers(0, size, obs.shape[:2])] for size in spec.obs_sizes]
        obs[:] = np.concatenate(columns, axis=-1)
    action = rollout["action"]
    for i, size in enumerate(spec.action.sizes):
        action[..., *([i] if action.ndim == 3 else [])] = rng.integers(0, size, action.shape[:2])
    if spec.action.kind == "box":
        action[:] = np.tanh(rng.normal(size=action.shape))
    rollout["reward"][:] = rng.normal(size=(8, 4))
    rollout["terminated"][:] = rng.random((8, 4)) < 0.2
    rollout["truncated"][:] = (rng.random((8, 4)) < 0.2) & ~rollout["terminated"]
    rollout["valid"][:] = True
    rollout["valid"][1:] = ~(rollout["terminated"] | rollout["truncated"])[:-1]
    return rollout


def make_minibatches(
    config: OffPolicyConfig, spec: EnvSpec, rollout: dict[str, np.ndarray], rng: np.random.Generator
) -> dict[str, Any]:
    layout = make_layout(spec, rows=20, n_envs=4, frame_stack=1, n_step=1, gamma=config.gamma)
    replay = Replay(layout, HostStorage(layout))
    replay.add(rollout, 0, 8, rollout["action_mask"][0] if spec.has_action_mask else None)
    slots, envs, weight = replay.sample(rng, (config.updates, config.batch_size))
    return gather(replay.storage.arrays, slots, envs, layout, np) | {"weight": weight}


def fields_for(algorithm: str) -> dict[str, Any]:
    card = card_of(algorithm)
    if card.splits_rollouts:
        return {"batch_size": 8, "n_epochs": 2}
    if card.feed == "replay":
        return {"batch_size": 8, "train_freq": 2, "hidden_dims": [16, 16], "policy_lr": 1e-2}
    return {}


def bytes_of(tree: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in to_arrays(tree).items()}


@pytest.mark.parametrize(("algorithm", "kind", "variation"), CASES, ids=str)
def test_update_is_pure_finite_catalogued_and_compiles_once(algorithm: str, kind: str, variation: dict) -> None:
    case = make_case(algorithm, kind, **variation)
    state = case.parts.init(np.random.default_rng(0))
    # Takes these shapes and types, no other.
    update = jax.jit(case.parts.update).lower(state, case.batch, case.hp, case.update_noise).compile()
    once, metrics, extra = update(state, case.batch, case.hp, case.update_noise)
    again, _, _ = update(state, case.batch, case.hp, case.update_noise)
    assert bytes_of(once) == bytes_of(again), "the same inputs give the same bytes"
    twice, _, _ = update(once, case.batch, case.hp, case.update_noise)
    assert bytes_of(once.params) != bytes_of(twice.params)
    numbers = metrics.to_dict()
    if case.parts.report is not None:
        numbers |= case.parts.report(state.params, once, case.batch).to_dict()
    for name, value in numbers.items():
        assert np.isfinite(value), name
        assert is_catalogued(name), name
    assert algorithm in TABULAR or metrics["train/metrics/grad_norm/all"] > 0
    shape = (8, 4) if case.batch is case.rollout else case.batch["reward"].shape
    assert all(x.shape == shape and np.isfinite(x).all() for x in jax.tree.leaves(extra))


@every_pairing
def test_acting(algorithm: str, kind: str) -> None:
    case = make_case(algorithm, kind)
    actor = case.parts.actor(case.parts.init(np.random.default_rng(0)))
    obs = case.rollout["obs"][0]
    carry = case.parts.begin(4)
    action, after, extras = case.parts.act(actor, carry, obs, case.noise(np.random.default_rng(1)), None)
    action = np.asarray(action)
    assert action.shape == case.rollout["action"][0].shape
    greedy, _ = case.parts.greedy(actor, carry, obs, None)
    assert greedy.shape == action.shape
    assert jax.tree.map(np.shape, after) == jax.tree.map(np.shape, carry), "memory keeps its shape"
    assert {name: (np.shape(x)[1:], x.dtype) for name, x in extras.items()} == dict(case.parts.columns)
    for i, size in enumerate(ACTIONS[kind].sizes):
        column = action if action.ndim == 1 else action[:, i]
        assert ((column >= 0) & (column < size)).all()


@pytest.mark.parametrize("algorithm", [card.algo_id for card in all_cards() if "discrete" in card.actions])
def test_images_and_masks(algorithm: str) -> None:
    case = make_case(algorithm, "discrete", image=algorithm not in TABULAR, mask=True)
    batch = dict(case.batch)
    for name in ("action_mask", "next_action_mask"):
        if name in batch:
            batch[name] = batch[name].copy()
            batch[name][..., 2] = False
    batch["action"] = np.where(batch["action"] == 2, 0, batch["action"]).astype(batch["action"].dtype)
    state = case.parts.init(np.random.default_rng(0))
    _, metrics, _ = case.update(state, batch)
    assert all(np.isfinite(v) for v in metrics.to_dict().values())
    allowed = np.tile([True, True, False], (4, 1))
    for seed in range(20):
        noise = case.noise(np.random.default_rng(seed))
        obs, carry = case.rollout["obs"][0], case.parts.begin(4)
        action, _, _ = case.parts.act(case.parts.actor(state), carry, obs, noise, allowed)
        assert (np.asarray(action) != 2).all()


@every_pairing
def test_save_and_load_are_equal(algorithm: str, kind: str) -> None:
    normalized = {} if algorithm in TABULAR else {"normalize_obs": True, "normalize_reward": True}
    case = make_case(algorithm, kind, **normalized)
    state, _, _ = case.update(case.parts.init(np.random.default_rng(0)))
    loaded = from_arrays(case.parts.init(np.random.default_rng(9)), to_arrays(state), "test")
    assert bytes_of(loaded) == bytes_of(state)


@pytest.mark.parametrize("algorithm", [card.algo_id for card in all_cards() if card.feed == "rollout"])
def test_rows_that_are_resets_teach_nothing(algorithm: str) -> None:
    case = make_case(algorithm, "discrete")
    batch = {name: array.copy() for name, array in case.rollout.items()}
    assert (~batch["valid"]).any()
    state = case.parts.init(np.random.default_rng(0))
    before, _, _ = case.update(state, batch)
    batch["reward"][~batch["valid"]] = 1e6
    batch["action"][~batch["valid"]] = 0
    after, _, _ = case.update(state, batch)
    for one, other in zip(jax.tree.leaves(before.params), jax.tree.leaves(after.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_ppo_reports_a_first_ratio_of_one_and_stops_at_the_target_kl() -> None:
    case = make_case("ppo", "discrete", n_epochs=4, policy_lr=0.1, target_kl=0.01)
    state = case.parts.init(np.random.default_rng(0))
    stopped, metrics, _ = case.update(state)
    assert metrics["train/metrics/ratio_deviation_first"] < 1e-5
    assert 0 < metrics["train/metrics/epochs_done"] < 1
    unstopped, metrics, _ = make_case("ppo", "discrete", n_epochs=4, policy_lr=0.1).update(state)
    assert metrics["train/metrics/epochs_done"] == 1
    assert bytes_of(stopped.params) != bytes_of(unstopped.params)


def test_gsde_acts_as_its_log_probabilities_say() -> None:
    case = make_case("ppo", "box", use_sde=True, sde_sample_freq=4)
    state = case.parts.init(np.random.default_rng(0))
    _, metrics, _ = case.update(state)
    assert metrics["train/metrics/ratio_deviation_first"] < 1e-5


def test_value_lr_moves_only_the_critic() -> None:
    case = make_case("a2c", "discrete", value_lr=0.0)
    state = case.parts.init(np.random.default_rng(0))
    after, _, _ = case.update(state)
    frozen = {"params/critic_head", "params/trunk/value"}
    old, new = bytes_of(state), bytes_of(after)
    for name in (n for n in old if n.startswith("params/") and n.endswith("weight")):
        held = any(name.startswith(part) for part in frozen)
        assert (old[name] == new[name]) is held, name
