"""An evaluation is exactly the episodes asked for, a fixed number from each environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.envs.engine import Step
from gymnasium_solver.envs.spec import ActionSpec, EnvSpec
from gymnasium_solver.errors import EnvironmentFault
from gymnasium_solver.train.judge import (
    Evaluation,
    EvaluationStopped,
    Policy,
    evaluate_checkpoint,
    evaluate_policy,
    run_episodes,
)
from gymnasium_solver.train.session import train
from gymnasium_solver.train.source import require_finite

RESET_REWARD = 99.0  # engines pay 0; whoever counted reset steps would be found out by this

SPEC = EnvSpec(
    env_id="Fixed-v0",
    obs_shape=(2,),
    obs_dtype=np.dtype(np.float32),
    is_image=False,
    action=ActionSpec("discrete", (2,), 1),
    max_episode_steps=None,
    reward_threshold=None,
    has_action_mask=False,
    engine="gymnasium/sync",
    reason="written by hand",
)


class FixedLengths:
    """Environment i has episodes of `lengths[i]` steps and pays its seed's parity plus 1 at each of them.

    It observes (environment, step), and notes every ending as (environment, return).
    """

    spec = SPEC

    def __init__(self, *lengths: int) -> None:
        self.lengths, self.n_envs = np.array(lengths), len(lengths)
        self.endings: list[tuple[int, float]] = []

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        self._pay = 1 + seed % 2
        self._at, self._done = np.zeros(self.n_envs, int), np.zeros(self.n_envs, bool)
        return self._obs(), None

    def step(self, action: np.ndarray) -> Step:
        resetting = self._done
        self._at = np.where(resetting, 0, self._at + 1)
        self._done = self._at == self.lengths
        reward = np.where(resetting, RESET_REWARD, self._pay).astype(np.float32)
        self.endings += [(int(i), float(self.lengths[i] * self._pay)) for i in np.flatnonzero(self._done)]
        by_truncation = np.arange(self.n_envs) % 2 == 1
        return Step(self._obs(), reward, self._done & ~by_truncation, self._done & by_truncation, None)

    def close(self) -> None: ...

    def _obs(self) -> np.ndarray:
        return np.stack([np.arange(self.n_envs), self._at], axis=1).astype(np.float32)


def still(obs: np.ndarray, mask: np.ndarray | None, started: np.ndarray) -> np.ndarray:
    return np.zeros(len(obs), np.int32)


def returns(engine: Any, episodes: int, seed: int = 0) -> list[float]:
    return sorted(run_episodes(engine, still, episodes, seed).returns.tolist())


@pytest.mark.parametrize(
    ("episodes", "expected"),
    [
        (1, [1]),
        (2, [1, 3]),
        (3, [1, 3, 10]),
        (4, [1, 1, 3, 10]),
        (8, [1, 1, 1, 3, 3, 3, 10, 10]),
        (9, [1, 1, 1, 3, 3, 3, 10, 10, 10]),
    ],
)
def test_every_environment_gives_its_fixed_number_of_episodes(episodes: int, expected: list[float]) -> None:
    assert returns(FixedLengths(1, 3, 10), episodes) == expected


def test_short_episodes_are_not_favoured() -> None:
    engine = FixedLengths(1, 10)
    evaluation = run_episodes(engine, still, 4, seed=0)
    assert evaluation.mean == 5.5
    first_to_finish = [episode_return for _, episode_return in engine.endings[:4]]
    assert np.mean(first_to_finish) == 1


def test_reset_steps_count_neither_reward_nor_length() -> None:
    evaluation = run_episodes(FixedLengths(2, 3), still, 8, seed=0)
    assert sorted(evaluation.returns) == [2, 2, 2, 2, 3, 3, 3, 3]
    np.testing.assert_array_equal(evaluation.lengths, evaluation.returns)


def test_stops_once_the_last_episode_is_over() -> None:
    engine = FixedLengths(2, 5)
    run_episodes(engine, still, 4, seed=0)
    assert engine.endings.count((1, 5.0)) == 2


def test_the_same_seed_gives_the_same_episodes_on_a_used_engine() -> None:
    engine = FixedLengths(1, 4)
    first = run_episodes(engine, still, 3, seed=0)
    other = run_episodes(engine, still, 3, seed=1)
    again = run_episodes(engine, still, 3, seed=0)
    np.testing.assert_array_equal(again.returns, first.returns)
    np.testing.assert_array_equal(again.lengths, first.lengths)
    assert not np.array_equal(other.returns, first.returns)


def test_the_policy_sees_every_observation_as_it_comes() -> None:
    seen = []

    def act(obs: np.ndarray, mask: np.ndarray | None, started: np.ndarray) -> np.ndarray:
        seen.append(obs[:, 1].tolist())
        return still(obs, mask, started)

    run_episodes(FixedLengths(1, 3), act, 2, seed=0)
    assert seen == [[0, 0], [1, 1], [0, 2]]


def test_the_policy_is_told_which_observations_begin_an_episode() -> None:
    seen = []

    def act(obs: np.ndarray, mask: np.ndarray | None, started: np.ndarray) -> np.ndarray:
        seen.append(started.tolist())
        return still(obs, mask, started)

    # Environment 0 ends with every step: what it observes then is the end, and what a reset returns the beginning.
    run_episodes(FixedLengths(1, 4), act, 2, seed=0)
    assert seen == [[True, True], [False, False], [True, False], [False, False]]


@pytest.mark.parametrize("field", ["obs", "reward"])
def test_what_is_no_number_stops_the_evaluation(field: str) -> None:
    class Broken(FixedLengths):
        def step(self, action: np.ndarray) -> Step:
            step = super().step(action)
            getattr(step, field)[1] = np.nan
            return step

    with pytest.raises(EnvironmentFault, match=rf"Fixed-v0 returned a non-finite {field} .*environment 1"):
        run_episodes(Broken(2, 2), still, 2, seed=0)


def test_the_component_that_is_no_number_is_named() -> None:
    values = np.zeros((2, 3, 8), np.float32)
    values[1, 2, 5] = -np.inf
    with pytest.raises(EnvironmentFault, match=r"obs \(-inf in component 5 of 8\) in environment 2, step 1 of"):
        require_finite("obs", values, "Fixed-v0")


def test_an_episode_that_does_not_end_is_reported() -> None:
    engine = FixedLengths(2, 8)
    engine.spec = replace(SPEC, max_episode_steps=7)
    with pytest.raises(EnvironmentFault, match=r"an episode of Fixed-v0 did not end within 7 steps; set max_episode"):
        run_episodes(engine, still, 2, seed=0)


def test_an_episode_may_end_at_the_limit() -> None:
    engine = FixedLengths(2, 7)
    engine.spec = replace(SPEC, max_episode_steps=7)
    assert returns(engine, 4) == [2, 2, 7, 7]


def test_an_evaluation_stops_when_asked_to() -> None:
    answers = iter([False, False, True])
    engine = FixedLengths(1, 10)
    with pytest.raises(EvaluationStopped):
        run_episodes(engine, still, 2, seed=0, should_stop=lambda: next(answers))
    assert engine.endings == [(0, 1.0)]


def test_summary_by_hand() -> None:
    evaluation = Evaluation(np.array([1.0, 2.0, 6.0]), np.array([10, 20, 60]))
    assert evaluation.metrics("val/roll") == {
        "val/roll/ep_rew_mean": 3.0,
        "val/roll/ep_rew_std": pytest.approx(np.sqrt(14 / 3)),
        "val/roll/ep_rew_min": 1.0,
        "val/roll/ep_rew_max": 6.0,
        "val/roll/ep_len_mean": 30.0,
        "val/roll/episodes": 3,
    }


# On the real environment


def coin_policy() -> Policy:
    """CartPole by the sign of the noise; greedy, always to the left."""
    config = load_config("CartPole-v1:ppo")
    algorithm: Any = SimpleNamespace(begin=lambda n: (), acting_noise=lambda rng, shape, hp: rng.normal(size=shape))
    return Policy(
        config,
        describe(config),
        actor={},
        act=lambda actor, carry, obs, noise, mask: ((noise > 0).astype(np.int32), carry, {}),
        greedy=lambda actor, carry, obs, mask: (np.zeros(len(obs), np.int32), carry),
        algorithm=algorithm,
    )


def evaluate(seed: int, *, deterministic: bool) -> list[float]:
    return evaluate_policy(coin_policy(), episodes=5, deterministic=deterministic, seed=seed).returns.tolist()


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_evaluation_follows_from_its_seed(deterministic: bool) -> None:
    first = evaluate(1, deterministic=deterministic)
    assert len(first) == 5
    assert evaluate(1, deterministic=deterministic) == first


def test_sampled_episodes_differ_by_seed_and_from_greedy_ones() -> None:
    sampled = evaluate(1, deterministic=False)
    assert sampled != evaluate(2, deterministic=False)
    assert max(evaluate(1, deterministic=True)) <= 11 < max(sampled)  # a pole always pushed left falls at once


def test_more_episodes_than_run_side_by_side() -> None:
    evaluation = evaluate_policy(coin_policy(), episodes=70, deterministic=True, seed=3)
    assert len(evaluation.returns) == len(evaluation.lengths) == 70


@pytest.mark.integration
def test_a_reward_wrapper_leaves_returns_and_threshold_as_they_are(tmp_path: Path) -> None:
    fields = {"n_envs": 2, "n_steps": 32, "batch_size": 32, "n_epochs": 1, "max_env_steps": 256, "eval_episodes": 2}
    config = load_config("CartPole-v1:ppo", {**fields, "env_wrappers": [{"reward_scale": 1e-4}]})
    run = train(config, runs_dir=tmp_path, command=[])
    assert run.metrics.last("train/roll/ep_rew_mean") == pytest.approx(run.metrics.last("train/roll/ep_len_mean"))
    assert run.metrics.last("val/roll/ep_rew_mean") == run.metrics.last("val/roll/ep_len_mean")
    assert run.metrics.last("train/data/reward_mean") == pytest.approx(1e-4)
    played = evaluate_checkpoint(run, "last", episodes=2, deterministic=True)
    assert played.returns.tolist() == played.lengths.tolist()
