"""Rewards for the unfamiliar: counts by hand, learned novelty that wears off, and where the bonus is added."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms.bonuses import Bonus, make_bonus
from gymnasium_solver.config.load import build_config
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.metrics.catalogue import is_catalogued
from gymnasium_solver.train.bonus import BonusGiver
from gymnasium_solver.train.checkpoint import from_arrays, to_arrays
from gymnasium_solver.train.parts import Chunk

Rows = dict[str, np.ndarray]

ACTIONS = {
    "discrete": ActionSpec("discrete", (3,), 1),
    "multi_discrete": ActionSpec("multi_discrete", (2, 3), 2),
    "box": ActionSpec("box", (), 2, -np.ones(2, np.float32), np.ones(2, np.float32)),
}
HP = {"bonus_coef": np.float32(0.5), "bonus_lr": np.float32(3e-3)}


def make_spec(
    kind: str = "discrete", *, size: int = 5, image: bool = False, obs_sizes: tuple[int, ...] = ()
) -> EnvSpec:
    shape, dtype = ((24, 24, 1), np.uint8) if image else ((sum(obs_sizes) or size,), np.float32)
    return EnvSpec("Fake-v0", shape, np.dtype(dtype), image, ACTIONS[kind], 100, None, False, "fake", "test", obs_sizes)


def make_config(bonus: str, **fields: Any) -> Any:
    return build_config({"env_id": "Fake-v0", "algo_id": "ppo", "bonus": bonus, "n_envs": 2, **fields}, "test")


class Case(NamedTuple):
    bonus: Bonus
    update: Callable[..., Any]  # compiled
    state: dict[str, Any]


def make_case(kind: str, spec: EnvSpec, **fields: Any) -> Case:
    bonus = make_bonus(make_config(kind, **fields), spec)
    return Case(bonus, jax.jit(bonus.update), bonus.init(np.random.default_rng(0)))


def rows_of(spec: EnvSpec, obs: np.ndarray, valid: np.ndarray | None = None, action: np.ndarray | None = None) -> Rows:
    """Rows that lead through obs [T+1, N, …]; all of them steps, and all with the first action, unless given."""
    shape = (obs.shape[0] - 1, obs.shape[1])
    components = () if spec.action.kind == "discrete" else (spec.action.dim,)
    blank = np.zeros((*shape, *components), np.float32 if spec.action.kind == "box" else np.int32)
    return {
        "obs": obs.astype(spec.obs_dtype),
        "action": blank if action is None else action.astype(blank.dtype),
        "terminated": np.zeros(shape, bool),
        "truncated": np.zeros(shape, bool),
        "valid": np.ones(shape, bool) if valid is None else valid,
    }


def one_hot(*numbers: int, sizes: int = 4) -> np.ndarray:
    """Observations [T+1, 1, sizes] of one environment."""
    return np.eye(sizes, dtype=np.float32)[list(numbers)][:, None]


def random_obs(spec: EnvSpec, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if spec.is_image:  # of coarse squares, black or white: noise would look the same everywhere
        squares = rng.integers(0, 2, (*shape, 4, 4, 1)) * 255
        return squares.repeat(6, axis=2).repeat(6, axis=3).astype(np.uint8)
    return rng.standard_normal((*shape, *spec.obs_shape)).astype(np.float32)


def random_actions(spec: EnvSpec, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    if spec.action.kind == "box":
        return rng.uniform(-1, 1, (*shape, spec.action.dim))
    columns = np.stack([rng.integers(0, size, shape) for size in spec.action.sizes], axis=-1)
    return columns[..., 0] if spec.action.kind == "discrete" else columns


def bytes_of(tree: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in to_arrays(tree).items()}


# --- counts ---


def test_the_nth_visit_is_worth_one_over_the_root_of_n() -> None:
    spec = make_spec(obs_sizes=(4,))
    _, update, state = make_case("count", spec)
    for n in range(1, 6):
        state, bonus, metrics = update(state, rows_of(spec, one_hot(0, 2)), HP)
        np.testing.assert_allclose(bonus, [[1 / math.sqrt(n)]], rtol=1e-6)
        assert metrics["train/metrics/bonus_mean"] == pytest.approx(1 / math.sqrt(n))
    _, bonus, _ = update(state, rows_of(spec, one_hot(2, 3)), HP)
    np.testing.assert_allclose(bonus, [[1.0]], err_msg="what a step leads to counts, not where it began")


def test_visits_of_one_rollout_count_together() -> None:
    spec = make_spec(obs_sizes=(4,))
    _, update, state = make_case("count", spec)
    visits = rows_of(spec, one_hot(0, 1, 1, 2, 1, 1))
    state, bonus, metrics = update(state, visits, HP)
    np.testing.assert_allclose(bonus[:, 0], [0.5, 0.5, 1.0, 0.5, 0.5], rtol=1e-6)
    assert metrics["train/metrics/bonus_max"] == 1.0
    assert metrics["train/metrics/bonus_visited_share"] == pytest.approx(2 / 2**14)
    _, bonus, _ = update(state, visits, HP)
    np.testing.assert_allclose(bonus[:, 0], [1 / math.sqrt(n) for n in (8, 8, 2, 8, 8)], rtol=1e-6)


def test_every_pair_of_discrete_components_is_counted_apart() -> None:
    spec = make_spec(obs_sizes=(3, 4))
    _, update, state = make_case("count", spec)
    pairs = [np.concatenate([np.eye(3)[i], np.eye(4)[j]]) for i in range(3) for j in range(4)]
    _, bonus, _ = update(state, rows_of(spec, np.stack([pairs[0], *pairs])[:, None]), HP)
    np.testing.assert_allclose(bonus, np.ones((12, 1)))


@pytest.mark.parametrize("size", [3, 20], ids=["grid", "projected"])
def test_continuous_observations_are_counted_once_their_statistics_have_settled(size: int) -> None:
    spec = make_spec(size=size)
    _, update, state = make_case("count", spec, bonus_bits=20)
    rng = np.random.default_rng(1)
    scale, shift = 10.0 ** np.arange(-1, 2).repeat(size)[:size], 5.0
    for _ in range(20):
        seen = shift + scale * rng.standard_normal((501, 2, size))
        state, _, _ = update(state, rows_of(spec, seen), HP)
    state = jax.tree.map(np.array, state)
    state["counts"][:] = 0.0
    # In the middle of a cell (an eighth of a deviation wide), and in another one two cells away.
    mean, deviation = state["statistics"]["mean"], np.sqrt(state["statistics"]["var"])
    np.testing.assert_allclose(deviation, scale, rtol=0.05)
    here, there = (mean + deviation * (k + 0.5) / 8 for k in (3, 5))
    for n in range(1, 5):
        visit = np.stack([np.zeros((2, size)), np.stack([here, there])])
        state, bonus, _ = update(state, rows_of(spec, visit), HP)
        np.testing.assert_allclose(bonus, np.full((1, 2), 1 / math.sqrt(n)), rtol=1e-6)
    near = np.stack([np.zeros((2, size)), np.stack([here + 0.02 * deviation / 8, there + deviation])])
    _, bonus, _ = update(state, rows_of(spec, near), HP)
    np.testing.assert_allclose(bonus, [[1 / math.sqrt(5), 1.0]], rtol=1e-6)


# --- learned novelty ---

LEARNED = [
    ("rnd", "discrete", False),
    ("rnd", "box", True),
    ("icm", "discrete", False),
    ("icm", "multi_discrete", False),
    ("icm", "box", False),
    ("icm", "discrete", True),
]


@pytest.mark.parametrize(("kind", "actions", "image"), LEARNED)
def test_novelty_wears_off_and_the_new_stands_out(kind: str, actions: str, image: bool) -> None:
    spec = make_spec(actions, image=image)
    _, update, state = make_case(kind, spec)
    rng = np.random.default_rng(2)
    shape = (8, 2)
    familiar = rows_of(spec, random_obs(spec, rng, (9, 2)), action=random_actions(spec, rng, shape))
    means = []
    for _ in range(100 if image else 200):
        state, bonus, metrics = update(state, familiar, HP)
        assert np.isfinite(bonus).all()
        means.append(float(metrics["train/metrics/bonus_mean"]))
    assert means[0] == pytest.approx(1.0, rel=0.3), "the first is divided by its own size"
    assert means[-1] < 0.3 * means[0]
    # The later half of a rollout is new: the row that leads out of the familiar one, and all that follow.
    mixed = {name: array.copy() for name, array in familiar.items()}
    mixed["obs"][5:] = random_obs(spec, rng, (4, 2))
    _, bonus, metrics = update(state, mixed, HP)
    bonus = np.asarray(bonus)
    assert bonus[4:].min() > bonus[:4].max(), "every new row stands out"
    assert bonus[4:].mean() > 2 * bonus[:4].mean()
    for name, value in metrics.to_dict().items():
        assert is_catalogued(name), name
        assert np.isfinite(value), name


def test_curiosity_looks_at_the_action_too() -> None:
    """The familiar step with another action than ever before leads to where nobody foretold; RND does not see that."""
    spec = make_spec("discrete")
    rng = np.random.default_rng(2)
    familiar = rows_of(spec, random_obs(spec, rng, (9, 2)), action=np.zeros((8, 2)))
    surprising = familiar | {"action": np.full((8, 2), 2, np.int32)}
    growth = {}
    for kind in ("icm", "rnd"):
        _, update, state = make_case(kind, spec)
        for _ in range(200):
            state, usual, _ = update(state, familiar, HP)
        _, bonus, _ = update(state, surprising, HP)
        growth[kind] = float(np.mean(bonus) / np.mean(usual))
    assert growth["icm"] > 1.5
    assert growth["rnd"] == pytest.approx(1.0, abs=0.2)


def test_the_learning_rate_is_the_one_in_force() -> None:
    spec = make_spec()
    _, update, state = make_case("rnd", spec)
    visits = rows_of(spec, random_obs(spec, np.random.default_rng(0), (9, 2)))
    still, _, _ = update(state, visits, HP | {"bonus_lr": np.float32(0)})
    assert bytes_of(still["params"]) == bytes_of(state["params"])
    moved, _, _ = update(state, visits, HP)
    assert bytes_of(moved["params"]) != bytes_of(state["params"])
    assert bytes_of(moved["fixed"]) == bytes_of(state["fixed"]), "what is foretold stays as it is"


# --- all of them ---


@pytest.mark.parametrize("kind", ["count", "rnd", "icm"])
def test_resets_are_worth_nothing_and_teach_nothing(kind: str) -> None:
    spec = make_spec()
    _, update, state = make_case(kind, spec)
    obs = random_obs(spec, np.random.default_rng(0), (5, 2))
    valid = np.array([[1, 1], [0, 1], [1, 1], [1, 0]], bool)
    visits = rows_of(spec, obs, valid)
    after, bonus, metrics = update(state, visits, HP)
    np.testing.assert_array_equal(np.asarray(bonus)[~valid], 0.0)
    assert (np.asarray(bonus)[valid] > 0).all()
    assert metrics["train/metrics/bonus_mean"] == pytest.approx(np.asarray(bonus)[valid].mean(), rel=1e-5)
    # The last row of the second environment is a reset: where that led to is no step's doing.
    elsewhere = {name: array.copy() for name, array in visits.items()}
    elsewhere["obs"][4, 1] += 50.0
    again, same, _ = update(state, elsewhere, HP)
    np.testing.assert_allclose(same, bonus, rtol=1e-6)
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["count", "rnd", "icm"])
def test_the_state_survives_a_checkpoint(kind: str) -> None:
    spec = make_spec("box")
    bonus, update, state = make_case(kind, spec)
    rng = np.random.default_rng(0)
    visits = rows_of(spec, random_obs(spec, rng, (9, 2)), action=random_actions(spec, rng, (8, 2)))
    state, _, _ = update(state, visits, HP)
    loaded = from_arrays(bonus.init(np.random.default_rng(9)), to_arrays(state), "test")
    assert bytes_of(loaded) == bytes_of(state)
    ours, theirs = update(state, visits, HP), update(loaded, visits, HP)
    np.testing.assert_array_equal(ours[1], theirs[1])
    assert bytes_of(ours[0]) == bytes_of(theirs[0])


# --- where it is added ---

COEF = {"bonus_coef": 0.5, "bonus_lr": 1e-3}


def two_environments() -> Rows:
    """Four rows of two environments; the first one's episodes end in rows 1 and 3, and row 2 is its reset."""
    rows = rows_of(make_spec(obs_sizes=(4,)), np.concatenate([one_hot(0, 1, 2, 0, 3), one_hot(0, 2, 2, 2, 2)], axis=1))
    rows["valid"][2, 0] = False
    rows["terminated"][[1, 3], 0] = rows["truncated"][3, 1] = True
    return rows | {"reward": np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)}


def test_the_bonus_is_added_to_its_own_rows_and_to_a_copy() -> None:
    giver = BonusGiver(make_config("count"), make_spec(obs_sizes=(4,)))
    assert giver.scheduled == ("bonus_coef", "bonus_lr")
    batch = two_environments()
    rewarded, metrics = giver.add_to(Chunk(batch, 1, 3, None), COEF)
    # Row 1 leads to 2 and 2, row 2 (a reset in the first environment) to 2 in the second: three visits to one cell.
    worth = 0.5 / math.sqrt(3)
    np.testing.assert_allclose(
        rewarded.columns["reward"], [[1, 2], [3 + worth, 4 + worth], [5, 6 + worth], [7, 8]], rtol=1e-6
    )
    np.testing.assert_array_equal(batch["reward"], two_environments()["reward"])
    assert all(rewarded.columns[name] is batch[name] for name in batch if name != "reward")
    assert metrics["train/metrics/bonus_mean"] == pytest.approx(1 / math.sqrt(3))
    assert metrics["train/roll/ep_bonus_mean"] == pytest.approx(1 / math.sqrt(3)), "one episode ended, after one row"
    for name in metrics:
        assert is_catalogued(name), name


def test_episodes_add_up_their_bonus_without_its_weight() -> None:
    giver = BonusGiver(make_config("count"), make_spec(obs_sizes=(4,)))
    batch = two_environments()
    _, metrics = giver.add_to(Chunk(batch, 0, 1, None), COEF)
    assert "train/roll/ep_bonus_mean" not in metrics, "none has ended"
    _, metrics = giver.add_to(Chunk(batch, 1, 2, None), COEF)
    # Row 0 leads to 1 and 2, each new; row 1 twice to 2, then visited three times.
    first = 1 + 1 / math.sqrt(3)
    assert metrics["train/roll/ep_bonus_mean"] == pytest.approx(first)
    _, metrics = giver.add_to(Chunk(batch, 2, 4, None), COEF)
    # Rows 2 and 3 lead the second environment to 2 again, visited five times by then.
    second = first + 2 / math.sqrt(5)
    # The first environment's next episode has but one step, to 3, which is new.
    assert metrics["train/roll/ep_bonus_mean"] == pytest.approx((first + second + 1) / 3)


def test_a_resumed_giver_goes_on_where_it_was() -> None:
    config, spec = make_config("rnd"), make_spec(obs_sizes=(4,))
    batch = two_environments()
    whole, stopped, resumed = (BonusGiver(config, spec) for _ in range(3))
    for giver in (whole, stopped):
        giver.add_to(Chunk(batch, 0, 2, None), COEF)
    saved = stopped.snapshot()
    assert all(name.startswith("bonus/") for name in saved)
    resumed.restore(saved | {"params/weight": np.zeros(3)})
    ours, theirs = whole.add_to(Chunk(batch, 2, 4, None), COEF), resumed.add_to(Chunk(batch, 2, 4, None), COEF)
    np.testing.assert_array_equal(ours[0].columns["reward"][2:4], theirs[0].columns["reward"][2:4])
    assert ours[1] == theirs[1]


def test_forgotten_episodes_are_not_summed_and_counts_stay() -> None:
    giver = BonusGiver(make_config("count"), make_spec(obs_sizes=(4,)))
    batch = two_environments()
    giver.add_to(Chunk(batch, 0, 1, None), COEF)
    giver.forget_episodes()
    _, metrics = giver.add_to(Chunk(batch, 1, 2, None), COEF)
    assert metrics["train/roll/ep_bonus_mean"] == pytest.approx(1 / math.sqrt(3)), "the sum began anew, the count not"


def test_without_a_bonus_everything_passes_through() -> None:
    giver = BonusGiver(make_config("none"), make_spec(obs_sizes=(4,)))
    batch = two_environments()
    assert giver.scheduled == ()
    rewarded, metrics = giver.add_to(Chunk(batch, 0, 4, None), {})
    assert rewarded.columns is batch
    assert metrics == {}
    assert giver.snapshot() == {}
    giver.restore({"bonus/counts": np.zeros(3)})


@pytest.mark.parametrize(
    ("spec", "projects"),
    [(make_spec(obs_sizes=(300,)), False), (make_spec(size=12), False), (make_spec(size=13), True)],
    ids=["discrete", "few", "many"],
)
def test_only_what_is_projected_keeps_a_projection(spec: EnvSpec, projects: bool) -> None:
    state = make_case("count", spec).state
    assert ("projection" in state) == projects
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(state)) < 2**14 + 4 * 300, "the counts, and little beside"


def test_a_checkpoint_that_still_has_an_identity_for_a_projection_goes_on() -> None:
    spec = make_spec(obs_sizes=(4,))
    config = make_config("count", n_envs=1)
    rows = rows_of(spec, one_hot(0, 1, 2))
    rows |= {"reward": np.zeros((2, 1), np.float32)}
    before, after = BonusGiver(config, spec), BonusGiver(config, spec)
    before.add_to(Chunk(rows, 0, 2, None), {name: float(value) for name, value in HP.items()})
    after.restore(before.snapshot() | {"bonus/projection": np.eye(4, dtype=np.float32)})
    hp = {name: float(value) for name, value in HP.items()}
    rewards = [giver.add_to(Chunk(rows, 0, 2, None), hp)[0].columns["reward"] for giver in (before, after)]
    np.testing.assert_array_equal(*rewards)
    np.testing.assert_allclose(rewards[1][:, 0], [0.5 / math.sqrt(2)] * 2, rtol=1e-6)
