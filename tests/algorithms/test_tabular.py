"""Tables, worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.load import build_config, load_config
from gymnasium_solver.envs.spec import ActionSpec
from gymnasium_solver.train.session import train
from tests.algorithms.single_updates import (
    spec_of,
)

ONE_HOT = np.eye(3, dtype=np.float32)
# Observation, action, reward, how it ended, whether it was a step: γ = ½, step size ½.
ROLLOUT = [
    (0, 0, 1.0, "", True),
    (1, 0, 2.0, "truncated", True),
    (2, 1, 99.0, "", False),  # resets; 2 was the final observation
    (0, 1, 4.0, "terminated", True),
    (2, 0, 99.0, "", False),
    (1, 1, 0.0, "", True),  # leads to 0, where the rollout ends
]
TABLE = np.array([[1, 2], [3, 5], [7, 6]], np.float32)


def tabular(algorithm: str, **fields: Any) -> tuple[Algorithm, Any, dict[str, np.ndarray], dict[str, Any]]:
    config = build_config(
        {"env_id": "Fake-v0", "algo_id": algorithm, "gamma": 0.5, "n_steps": len(ROLLOUT), **fields}, "test"
    )
    made = make_algorithm(config, spec_of(ActionSpec("discrete", (2,), 1), obs_sizes=(3,)))
    state = made.init(np.random.default_rng(0))._replace(params={"table": TABLE.copy()})
    obs, action, reward, end, valid = zip(*ROLLOUT, strict=True)
    batch = {
        "obs": ONE_HOT[[*obs, 0]][:, None],
        "action": np.array(action, np.int32)[:, None],
        "reward": np.array(reward, np.float32)[:, None],
        "terminated": np.array([e == "terminated" for e in end])[:, None],
        "truncated": np.array([e == "truncated" for e in end])[:, None],
        "valid": np.array(valid)[:, None],
    }
    hp = {"policy_lr": np.float32(0.5), "epsilon": np.float32(0.2), "ucb_coef": np.float32(1.0)}
    return made, state, batch, hp


def test_q_learning_by_hand() -> None:
    made, state, batch, hp = tabular("q_learning")
    after, metrics, estimates = jax.jit(made.update)(state, batch, hp, made.update_noise(np.random.default_rng(0)))
    targets = [1 + 0.5 * 5, 2 + 0.5 * 7, None, 4.0, None, 0 + 0.5 * 3]  # the last knows that (0, 1) became 3
    table = [[1 + 0.5 * 2.5, 2 + 0.5 * 2], [3 + 0.5 * 2.5, 5 - 0.5 * 3.5], [7, 6]]
    np.testing.assert_allclose(after.params["table"], table, rtol=1e-6)
    steps = [t for t, target in enumerate(targets) if target is not None]
    np.testing.assert_allclose(estimates.target[steps, 0], [targets[t] for t in steps], rtol=1e-6)
    np.testing.assert_allclose(estimates.value[steps, 0], [1, 3, 2, 5])
    np.testing.assert_allclose(estimates.advantage[steps, 0], [2.5, 2.5, 2.0, -3.5], rtol=1e-6)
    assert metrics["train/metrics/td_error"] == pytest.approx((2.5 + 2.5 + 2 + 3.5) / 4)
    assert metrics["train/loss/value"] == pytest.approx((2.5**2 + 2.5**2 + 2**2 + 3.5**2) / 4)
    assert after.visits.tolist() == [[1, 1], [1, 1], [0, 0]]
    assert metrics["train/metrics/visited_share"] == pytest.approx(4 / 6)


def test_sarsa_by_hand() -> None:
    made, state, batch, hp = tabular("sarsa")
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.update_noise(np.random.default_rng(0)))
    first = 1 + 0.5 * (1 + 0.5 * 3 - 1)  # action 0 is taken next, worth 3
    cut = 3 + 0.5 * (2 + 0.5 * (0.2 * 6.5 + 0.8 * 7) - 3)  # no next action: what a fifth at random comes to
    ended = 2 + 0.5 * (4 - 2)
    last = 5 + 0.5 * (0.5 * (0.2 * (first + ended) / 2 + 0.8 * ended) - 5)
    np.testing.assert_allclose(after.params["table"], [[first, ended], [cut, last], [7, 6]], rtol=1e-6)


def test_sarsa_with_ucb_expects_the_best() -> None:
    made, state, batch, hp = tabular("sarsa", exploration="ucb")
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.update_noise(np.random.default_rng(0)))
    assert after.params["table"][1, 0] == pytest.approx(3 + 0.5 * (2 + 0.5 * 7 - 3))


@pytest.mark.parametrize(("algorithm", "worth"), [("q_learning", 3.0), ("sarsa", 0.2 * 3.0 + 0.8 * 3.0)])
def test_forbidden_actions_are_worth_nothing_to_a_table(algorithm: str, worth: float) -> None:
    """Action 1 is forbidden in observation 1, though the table holds 5 for it."""
    made, state, batch, hp = tabular(algorithm)
    batch = {name: rows[: 3 if name == "obs" else 2] for name, rows in batch.items()}
    batch["valid"] = np.array([[True], [False]])  # no next action is known
    batch["action_mask"] = np.array([[[True, True]], [[True, False]]])
    batch["final_action_mask"] = np.array([[True, True]])
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.update_noise(np.random.default_rng(0)))
    assert after.params["table"][0, 0] == pytest.approx(1 + 0.5 * (1 + 0.5 * worth - 1))


@pytest.mark.parametrize(("algorithm", "worth"), [("q_learning", 3.0), ("sarsa", 0.2 * 3.0 + 0.8 * 3.0)])
def test_nor_are_they_where_the_rollout_ends(algorithm: str, worth: float) -> None:
    made, state, batch, hp = tabular(algorithm)
    batch = {name: rows[: 2 if name == "obs" else 1] for name, rows in batch.items()}
    batch["action_mask"], batch["final_action_mask"] = np.array([[[True, True]]]), np.array([[True, False]])
    after, _, _ = jax.jit(made.update)(state, batch, hp, made.update_noise(np.random.default_rng(0)))
    assert after.params["table"][0, 0] == pytest.approx(1 + 0.5 * (1 + 0.5 * worth - 1))


def test_environments_side_by_side_teach_one_after_the_other() -> None:
    made, state, batch, hp = tabular("q_learning")
    double = {name: np.repeat(rows[: 2 if name == "obs" else 1], 2, axis=1) for name, rows in batch.items()}
    after, _, _ = jax.jit(made.update)(state, double, hp, made.update_noise(np.random.default_rng(0)))
    once = 1 + 0.5 * (3.5 - 1)
    assert after.params["table"][0, 0] == pytest.approx(once + 0.5 * (3.5 - once))
    assert after.visits[0, 0] == 2


def test_a_table_of_two_components_and_how_it_acts() -> None:
    config = build_config(
        {"env_id": "Fake-v0", "algo_id": "q_learning", "initial_value": 5, "exploration": "ucb"}, "test"
    )
    made = make_algorithm(config, spec_of(ActionSpec("discrete", (2,), 1), obs_sizes=(2, 3)))
    state = made.init(np.random.default_rng(0))
    assert (state.params["table"] == np.full((6, 2), 5.0)).all()
    state.params["table"][:, 0] = np.arange(6) + 10
    obs = np.array([[1, 0, 0, 0, 1], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]], np.float32)  # (0, 2), (1, 1), (1, 2)
    assert made.value(state, obs).tolist() == [12, 14, 15]
    actor = made.actor(state)
    assert made.greedy(actor, (), obs, None)[0].tolist() == [0, 0, 0]
    mask = np.array([[True, True], [False, True], [True, True]])
    assert made.greedy(actor, (), obs, mask)[0].tolist() == [0, 1, 0]
    noise = made.acting_noise(np.random.default_rng(0), (3,), {"ucb_coef": 1.0, "epsilon": 1.0})
    state.visits[:] = 1.0
    state.visits[2, 1] = 0.0
    assert made.act(made.actor(state), (), obs, noise, None)[0].tolist() == [1, 0, 0], (
        "what was never tried comes first"
    )


def test_ucb_finds_the_end_of_a_corridor_with_a_table_that_stands_still() -> None:
    """Four environments walk 64 steps each before anything is learnt: the same way, they would find nothing."""
    n_states, rollout = 24, (64, 4)
    config = build_config(
        {"env_id": "Fake-v0", "algo_id": "q_learning", "exploration": "ucb", "n_envs": 4, "n_steps": 64}, "test"
    )
    made = make_algorithm(config, spec_of(ActionSpec("discrete", (2,), 1), obs_sizes=(n_states,)))
    act, update = jax.jit(made.act), jax.jit(made.update)
    rng, state, hot = np.random.default_rng(0), made.init(np.random.default_rng(0)), np.eye(n_states, dtype=np.float32)
    hp = {"policy_lr": np.float32(0.5), "ucb_coef": np.float32(1.0)}
    assert sorted(hp) == sorted(made.scheduled), "epsilon is not in force"
    where, furthest = np.zeros(4, int), 0
    for _ in range(3):  # without chance it would take 24
        noise = made.acting_noise(rng, rollout, {"ucb_coef": 1.0})
        way, actions = [where], []
        for t in range(64):
            actions.append(np.asarray(act(made.actor(state), (), hot[where], noise[t], None)[0]))
            where = np.clip(where + 2 * actions[-1] - 1, 0, n_states - 1)
            way.append(where)
        furthest = max(furthest, int(np.array(way).max()))
        assert len(np.unique(np.array(actions).T, axis=0)) > 1, "all of them do the same"
        blank = np.zeros(rollout, bool)
        batch = {"obs": hot[np.array(way)], "action": np.array(actions), "reward": np.full(rollout, -1, np.float32)}
        batch |= {"terminated": blank, "truncated": blank, "valid": ~blank}
        state, _, _ = update(state, batch, hp, made.update_noise(rng))
    assert furthest == n_states - 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ucb_solves_cliff_walking_as_it_is_shipped(seed: int, tmp_path: Path) -> None:
    config = load_config("CliffWalking-v1:q_learning", {"exploration": "ucb", "max_env_steps": 30_000, "seed": seed})
    assert train(config, runs_dir=tmp_path, command=[], report=False).summary()["solved"]
