"""Prioritised sampling: how often, never, and with which weight."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gymnasium_solver.data.layout import make_layout
from gymnasium_solver.data.priorities import Priorities
from gymnasium_solver.data.replay import Replay
from gymnasium_solver.data.storage import HostStorage
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec

# Around the tree's fan-out of 64 and its square, and far from either.
SIZES = [1, 2, 63, 64, 65, 1000, 4095, 4096, 4097, 64**3 + 1]


def filled(priorities: np.ndarray, alpha: float = 1.0, eps: float = 1e-6) -> Priorities:
    made = Priorities(len(priorities), alpha, eps)
    made.set(np.arange(len(priorities)), priorities)
    return made


def stored(priorities: Priorities, size: int) -> np.ndarray:
    return priorities.to_arrays(size)["priorities"]


@pytest.mark.parametrize("size", SIZES)
def test_every_index_comes_as_often_as_its_slices(size: int) -> None:
    """One point from each of `count` equal slices: an index is met once in each slice that is all its own, and at most
    once in each that it shares."""
    rng = np.random.default_rng(size)
    weight = rng.exponential(size=size) * (rng.random(size) < 0.7)
    weight[-1] = 1.0
    count = 5000
    index, chance = filled(weight).sample(np.random.default_rng(0), count)
    assert ((index >= 0) & (index < size)).all()
    share = weight / weight.sum()
    np.testing.assert_allclose(chance, share[index], rtol=1e-12)
    ends = np.cumsum(share) * count
    begins = ends - share * count
    drawn = np.bincount(index, minlength=size)
    assert (drawn >= np.floor(ends - 1e-6) - np.ceil(begins + 1e-6)).all()
    assert (drawn <= np.ceil(ends + 1e-6) - np.floor(begins - 1e-6)).all()


def test_frequencies_are_proportional_to_priorities() -> None:
    weight = np.random.default_rng(0).exponential(size=200)
    priorities, rng = filled(weight), np.random.default_rng(1)
    # Single draws, which no slices make even.
    index = np.concatenate([priorities.sample(rng, 1)[0] for _ in range(20_000)])
    expected = len(index) * weight / weight.sum()
    seen = expected > 5
    chi_square = np.sum((np.bincount(index, minlength=200) - expected)[seen] ** 2 / expected[seen])
    assert chi_square < seen.sum() + 5 * math.sqrt(2 * seen.sum())


def test_what_is_drawn_comes_in_random_order() -> None:
    index, _ = filled(np.ones(1000)).sample(np.random.default_rng(0), 1000)
    assert set(index.tolist()) == set(range(1000)), "one from each slice"
    assert abs(np.corrcoef(index, np.arange(1000))[0, 1]) < 0.15


@pytest.mark.parametrize("size", SIZES[2:])
def test_a_priority_of_zero_is_never_drawn(size: int) -> None:
    rng = np.random.default_rng(size)
    weight = np.zeros(size)
    held = rng.choice(size, size // 10 + 1, replace=False)
    weight[held] = 10.0 ** rng.uniform(-8, 8, len(held))  # large ones beside small ones: rounding has its chance
    priorities = filled(weight)
    for _ in range(20):
        index, chance = priorities.sample(rng, 500)
        assert (weight[index] > 0).all()
        assert (chance > 0).all()
    priorities.set(held[1:], 0.0)
    index, chance = priorities.sample(rng, 500)
    assert (index == held[0]).all()
    assert (chance == 1.0).all()


class Edge:
    """Draws the same number every time, where a generator could give it once in a lifetime."""

    def __init__(self, number: float) -> None:
        self._number = number

    def permutation(self, count: int) -> np.ndarray:
        return np.arange(count)

    def random(self, count: int) -> np.ndarray:
        return np.full(count, self._number)


@pytest.mark.parametrize("size", [3, 64, 100, 5000])
@pytest.mark.parametrize("priority", [0.1, 0.3, 1.0, 7e-5])
def test_rounding_at_the_ends_of_the_total_draws_no_zero(size: int, priority: float) -> None:
    for held in (size // 3 + 1, size // 2 + 1):
        weight = np.zeros(size)
        weight[1 : held + 1] = priority
        weight[held] = 3 * priority
        priorities = filled(weight)
        lowest, _ = priorities.sample(Edge(0.0), 1)  # type: ignore[arg-type]
        assert lowest[0] == 1, "the first that holds anything"
        highest, _ = priorities.sample(Edge(np.nextafter(1.0, 0.0)), 1)  # type: ignore[arg-type]
        assert weight[highest[0]] > 0


@pytest.mark.parametrize("size", [65, 1000, 4097])
def test_sums_do_not_drift(size: int) -> None:
    rng = np.random.default_rng(0)
    priorities = Priorities(size, 0.6, 1e-6)
    for _ in range(2000):
        index = rng.integers(0, size, 64)
        priorities.update(index, 10.0 ** rng.uniform(-9, 9, 64))
    priorities.set(np.arange(size), np.full(size, 0.1))
    assert priorities.total == filled(np.full(size, 0.1)).total, "as if the large ones had never been there"
    assert priorities.total == pytest.approx(0.1 * size, rel=1e-14)
    for _ in range(500):
        priorities.update(rng.integers(0, size, 64), rng.exponential(size=64))
    assert priorities.total == filled(stored(priorities, size)).total
    assert priorities.total == pytest.approx(math.fsum(stored(priorities, size)), rel=1e-13)


def test_priorities_by_hand() -> None:
    priorities = Priorities(4, 0.5, 0.25)
    assert priorities.newest == 1.0
    priorities.update(np.array([0, 1, 3]), np.array([0.0, 3.75, -15.75], np.float32))
    np.testing.assert_allclose(stored(priorities, 4), [0.5, 2.0, 0.0, 4.0])  # √(|error| + ¼)
    assert priorities.newest == 4.0
    priorities.update(np.array([3]), np.array([0.0]))
    assert priorities.newest == 4.0, "the largest so far"
    assert priorities.total == 3.0
    np.testing.assert_allclose(priorities.chance(np.array([0, 1, 2, 3])), [1 / 6, 4 / 6, 0, 1 / 6])


def test_alpha_zero_is_uniform() -> None:
    priorities = Priorities(100, 0.0, 1e-6)
    priorities.update(np.arange(100), np.linspace(0, 50, 100))
    np.testing.assert_array_equal(stored(priorities, 100), np.ones(100))


def test_the_last_of_two_updates_of_one_index_holds() -> None:
    priorities = Priorities(70, 1.0, 1e-6)
    priorities.update(np.array([69, 3, 69]), np.array([5.0, 1.0, 2.0]))
    assert priorities.total == pytest.approx(3.0, abs=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_saved_and_loaded_they_draw_the_same(size: int) -> None:
    rng = np.random.default_rng(size)
    first = Priorities(size, 0.6, 1e-6)
    for _ in range(10):
        first.update(rng.integers(0, size, 50), rng.exponential(size=50))
    second = Priorities(size, 0.6, 1e-6)
    second.load(first.to_arrays(size))
    assert (second.newest, second.total) == (first.newest, first.total)
    for one, other in zip(*(p.sample(np.random.default_rng(5), 1000) for p in (first, second)), strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_is_saved_does_not_change_afterwards() -> None:
    priorities = filled(np.ones(10))
    saved = priorities.to_arrays(10)
    priorities.set(np.arange(10), 5.0)
    assert saved["priorities"].tolist() == [1.0] * 10


def replay_of(n_step: int, n_rows: int, rows: int = 32, n_envs: int = 1) -> Replay:
    """`n_rows` steps of one endless episode."""
    spec = EnvSpec(
        "Any-v0", (1,), np.dtype(np.float32), False, ActionSpec("discrete", (2,), 1), None, None, False, "", ""
    )
    layout = make_layout(spec, rows=rows, n_envs=n_envs, frame_stack=1, n_step=n_step, gamma=0.9)
    replay = Replay(layout, HostStorage(layout), Priorities(rows * n_envs, 1.0, 1e-9))
    shape = (n_rows, n_envs)
    batch = {
        "obs": np.zeros((n_rows + 1, n_envs, 1), np.float32),
        "action": np.zeros(shape, np.int32),
        "reward": np.zeros(shape, np.float32),
        "terminated": np.zeros(shape, bool),
        "truncated": np.zeros(shape, bool),
        "valid": np.ones(shape, bool),
    }
    replay.add(batch, 0, n_rows, None)
    return replay


def column(*values: float) -> np.ndarray:
    return np.array([values])


@pytest.mark.parametrize(("beta", "rare", "frequent"), [(0.0, 1.0, 1.0), (0.5, 1.0, 0.5), (1.0, 1.0, 0.25)])
def test_importance_weights_by_hand(beta: float, rare: float, frequent: float) -> None:
    """Chances 1/5 and 4/5 of two: (2/5)^-beta and (8/5)^-beta, over the larger."""
    replay = replay_of(n_step=1, n_rows=2)
    replay.prioritize(column(0, 1).astype(int), column(0, 0).astype(int), column(1.0, 4.0))
    slots, envs, weight = replay.sample(np.random.default_rng(0), (3, 50), beta)
    assert weight.dtype == np.float32
    assert (envs == 0).all()
    assert (np.bincount(slots.ravel()) == [30, 120]).all()
    np.testing.assert_allclose(weight, np.where(slots == 0, rare, frequent), rtol=1e-6)


def test_weights_are_counted_from_the_largest_of_their_minibatch() -> None:
    replay = replay_of(n_step=1, n_rows=20, n_envs=2)
    rng = np.random.default_rng(0)
    slots, envs = (x.reshape(1, 40) for x in np.divmod(np.arange(40), 2))
    errors = rng.exponential(size=(1, 40)) + 0.1
    replay.prioritize(slots, envs, errors)
    slots, envs, weight = replay.sample(rng, (6, 5), 0.7)
    chance = errors.ravel()[slots * 2 + envs] / errors.sum()
    raw = (40 * chance) ** -0.7
    np.testing.assert_allclose(weight, raw / raw.max(axis=1, keepdims=True), rtol=1e-5)
    assert len(set(raw.max(axis=1).tolist())) > 1


def test_new_steps_get_the_largest_priority_so_far() -> None:
    replay = replay_of(n_step=1, n_rows=2)
    replay.prioritize(column(0, 1).astype(int), column(0, 0).astype(int), column(9.0, 0.0))
    rows = {name: array[:1] for name, array in replay.storage.arrays.items()}
    replay.add(rows | {"obs": np.zeros((2, 1, 1), np.float32), "valid": np.ones((1, 1), bool)}, 0, 1, None)
    assert replay.priorities is not None
    np.testing.assert_allclose(stored(replay.priorities, 4), [9.0, 0.0, 9.0, 0.0], atol=1e-8)


def test_steps_too_new_for_their_return_are_replaced_by_others() -> None:
    replay = replay_of(n_step=3, n_rows=6)
    # Times 4 and 5 wait for rewards to come, and have nearly all of the priority.
    replay.prioritize(np.arange(6)[None], np.zeros((1, 6), int), column(1, 1, 1, 1, 1e6, 1e6))
    slots, _, weight = replay.sample(np.random.default_rng(0), (1, 400), 1.0)
    assert set(slots.ravel().tolist()) == {0, 1, 2, 3}
    assert (weight == 1.0).all(), "their own chances are equal"
