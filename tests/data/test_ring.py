"""The replay of a compiled loop stores and samples what the host's does: against the same history."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gymnasium_solver.data import ring
from gymnasium_solver.data.layout import Layout, gather, make_layout
from gymnasium_solver.data.ring import Ring
from tests.data.test_replay import GAMMA, History, check, expected, make_replay, make_spec


class Pair:
    """A ring and a host replay that are given the same steps."""

    def __init__(self, rows: int, n_envs: int, n_step: int, seed: int = 0) -> None:
        self.history = History(seed, n_envs)
        self.replay = make_replay(make_spec(), rows=rows, n_envs=n_envs, n_step=n_step)
        self.layout: Layout = self.replay.layout
        self.ring: Ring = ring.empty(self.layout)
        self._write = jax.jit(lambda state, columns: ring.write(state, columns, columns["valid"], self.layout))

    def advance(self, n: int) -> None:
        for _ in range(n):
            self.history.step()
        batch = self.history.batch(n)
        self.replay.add(batch, 0, n, None)
        columns = {name: rows for name, rows in batch.items() if name != "action_mask"}
        self.ring = self._write(self.ring, columns)

    def sampled(self, draws: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Transitions that count, one after the other, and the weights of all draws."""
        slots, envs, weight = (np.asarray(x) for x in ring.sample(self.ring, jnp.asarray(draws), self.layout))
        batch = gather(self.ring.arrays, slots, envs, self.layout, jnp)
        return {name: np.asarray(x)[weight > 0] for name, x in batch.items()}, weight


def draws(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_step", [1, 3])
def test_draws_are_all_transitions_of_the_history_and_nothing_else(n_step: int, n_envs: int) -> None:
    pair = Pair(23, n_envs, n_step)
    for size in (5, 8, 3, 8, 8, 1, 7, 8, 2, 8, 8, 6):  # almost three times round the ring
        pair.advance(size)
        if len(pair.history.rows) < n_step:
            continue
        batch, _ = pair.sampled(draws(4000))
        assert check(pair.history, pair.replay, batch) == expected(pair.history, pair.replay)


def test_draws_are_uniform_over_steps() -> None:
    pair = Pair(50, 2, 1)
    for _ in range(12):
        pair.advance(6)
    batch, weight = pair.sampled(draws(200_000))
    times = batch["obs"][:, 0] * 2 + batch["obs"][:, 1]
    _, counts = np.unique(times, return_counts=True)
    share = counts / counts.sum()
    assert len(share) == len(expected(pair.history, pair.replay))
    spread = 4 * np.sqrt(1 / len(share) / len(times))  # four standard errors
    np.testing.assert_allclose(share, 1 / len(share), atol=spread)
    # A fifth of these rows are resets: a sample finds no step among its tries about once in 600.
    assert 1e-4 < np.mean(weight == 0) < 1e-2


def test_a_ring_without_any_step_gives_samples_that_count_nothing() -> None:
    pair = Pair(20, 2, 1)
    pair.advance(3)
    pair.ring = pair.ring._replace(valid=jnp.zeros_like(pair.ring.valid))
    _, weight = pair.sampled(draws(64))
    assert not weight.any()


def test_a_window_that_is_shorter_than_n_steps_cannot_be_sampled() -> None:
    pair = Pair(20, 2, 3)
    pair.advance(2)
    assert not ring.can_sample(pair.ring, pair.layout)
    pair.advance(1)
    assert ring.can_sample(pair.ring, pair.layout)


@pytest.mark.parametrize("before", [4, 40])
def test_a_cut_is_a_truncation_before_the_observation_that_waits(before: int) -> None:
    pair = Pair(15, 3, 2, seed=3)
    for _ in range(before // 4):
        pair.advance(4)
    pair.history.cut()
    pair.ring = ring.cut(pair.ring, pair.layout)
    pair.replay.cut()
    pair.advance(5)
    batch, _ = pair.sampled(draws(4000))
    assert check(pair.history, pair.replay, batch) == expected(pair.history, pair.replay)


@pytest.mark.parametrize("before", [5, 30])
def test_a_saved_ring_has_the_same_past_and_future(before: int) -> None:
    pair = Pair(16, 2, 1)
    for _ in range(before // 5):
        pair.advance(5)
    saved = ring.to_arrays(pair.ring, pair.layout)
    assert len(saved["obs"]) == min(before + 1, 16)
    later = ring.restored(saved, pair.layout)
    slots = [ring.sample(state, jnp.asarray(draws(100)), pair.layout) for state in (pair.ring, later)]
    for one, other in zip(*slots, strict=True):
        np.testing.assert_array_equal(one, other)
    assert float(later.reward_bound) == float(pair.ring.reward_bound)


def test_rewards_in_sums_of_several_steps_are_discounted() -> None:
    layout = make_layout(make_spec(), rows=9, n_envs=1, frame_stack=1, n_step=3, gamma=GAMMA)
    steps = np.arange(4, dtype=np.float32)[:, None]
    columns = {
        "obs": jnp.zeros((5, 1, 3)),
        "action": jnp.zeros((4, 1), jnp.int32),
        "reward": jnp.asarray(steps + 1),
        "terminated": jnp.asarray(steps == 3),
        "truncated": jnp.asarray(steps < 0),
    }
    write = jax.jit(lambda state: ring.write(state, columns, jnp.ones((4, 1), bool), layout))
    state = write(ring.empty(layout))
    batch = gather(state.arrays, jnp.array([0, 1]), jnp.array([0, 0]), layout, jnp)
    np.testing.assert_allclose(batch["reward"], [1 + 2 * GAMMA + 3 * GAMMA**2, 2 + 3 * GAMMA + 4 * GAMMA**2], rtol=1e-6)
    np.testing.assert_allclose(batch["discount"], [GAMMA**3, 0.0], rtol=1e-6)
