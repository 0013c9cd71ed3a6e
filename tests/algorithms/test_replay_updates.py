"""What the updates of all algorithms with a replay have in common: target networks, weights, rates, normalisation."""

from __future__ import annotations

import math
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schema import OffPolicyConfig
from gymnasium_solver.data.layout import gather, make_layout
from gymnasium_solver.data.replay import Replay
from gymnasium_solver.data.storage import HostStorage
from gymnasium_solver.envs.engine import Step
from gymnasium_solver.ops.normalizer import normalizer_for
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.parts import Clock
from gymnasium_solver.train.source import HostSource, empty_columns
from tests.algorithms.single_updates import (
    BATCH,
    DISCRETE,
    LEARNED,
    OBS,
    QUICKLY,
    TAU,
    changed,
    critic_of,
    every_kind,
    leaves,
    make_case,
    require_equal,
    spec_of,
)


@every_kind
def test_the_target_moves_by_the_polyak_factor(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    case = make_case(algorithm, kind, **extra)
    after, _, _ = case.update()
    online = after.params["critic"] if algorithm == "sac" else after.params
    expected = jax.tree.map(lambda old, new: (1 - TAU) * old + TAU * new, case.state.target, online)
    require_equal(after.target, expected, rtol=1e-5, atol=1e-6)
    assert changed(critic_of(after), critic_of(case.state))


@every_kind
def test_importance_weights_scale_the_gradient(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    """A step of gradient descent is a sum over transitions, each as large as its weight."""
    case = make_case(algorithm, kind, **extra)

    def moved(weight: np.ndarray) -> np.ndarray:
        after, _, _ = case.update(batch=case.batch | {"weight": weight.astype(np.float32)[None]})
        pairs = zip(leaves(critic_of(case.state)), leaves(critic_of(after)), strict=True)
        return np.concatenate([(new - old).ravel() for old, new in pairs])

    weight = case.batch["weight"][0].astype(np.float64)
    parts = [moved(row) for row in np.eye(BATCH)]
    assert all(np.abs(part).max() > 1e-6 for part in parts)
    np.testing.assert_allclose(moved(weight), weight @ np.array(parts), rtol=1e-3, atol=2e-6)
    assert not moved(np.zeros(BATCH)).any()


@pytest.mark.parametrize(
    ("algorithm", "kind", "extra"),
    [
        ("dqn", "discrete", {"double": True, "target_update_interval": None}),
        ("dqn", "discrete", {"double": False, "target_update_interval": 100}),
        ("td3", "box", {}),
        ("sac", "box", LEARNED),
    ],
    ids=["dqn", "dqn that copies", "td3", "sac"],
)
def test_several_gradient_steps_in_one_update_are_as_many_updates(
    algorithm: str, kind: str, extra: dict[str, Any]
) -> None:
    at_once, one = make_case(algorithm, kind, **extra, update_to_data=3), make_case(algorithm, kind, **extra)
    state, errors = at_once.state, []
    for i in range(3):
        rows = {name: array[i : i + 1] for name, array in at_once.batch.items()}
        noise = at_once.noise[i : i + 1] if kind == "box" else ()
        state, _, error = one.update(state=state, batch=rows, noise=noise)
        errors.append(error)
    after, _, error = at_once.update()
    require_equal(after, state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(error, np.concatenate(errors), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "kind", "extra"), [("dqn", "discrete", {}), ("td3", "box", {}), ("sac", "box", {"ent_coef": 0.2})]
)
def test_rates_and_clipping(algorithm: str, kind: str, extra: dict[str, Any]) -> None:
    case = make_case(algorithm, kind, value_lr=0.5, max_grad_norm=0.01, **extra)
    after, metrics, _ = case.update()
    pairs = zip(leaves(critic_of(case.state)), leaves(critic_of(after)), strict=True)
    length = math.sqrt(sum(float(np.sum(np.square(new - old, dtype=np.float64))) for old, new in pairs))
    assert length == pytest.approx(0.5 * 0.01, rel=1e-2), "the critic's rate times what the gradient was clipped to"
    assert metrics["train/metrics/grad_clip_fraction"] == 1.0
    after, metrics, _ = case.update(hp=case.hp | {"value_lr": np.float32(0)})
    assert not changed(critic_of(after), critic_of(case.state))
    if algorithm != "dqn":
        assert changed(after.params["actor"], case.state.params["actor"])
    if algorithm == "sac":
        assert "temperature" not in after.params
        assert metrics["train/metrics/alpha"] == pytest.approx(0.2), "fixed, or as scheduled"


@pytest.mark.parametrize("n_step", [1, 3])
def test_each_reward_is_bounded_before_several_are_summed(n_step: int) -> None:
    """Divided by 2 and held within ±1: the second is an outlier, the fourth the last of its episode."""
    spec = spec_of(DISCRETE)
    fields = {"n_step": n_step, "gamma": 0.5, "normalize_reward": True, "clip_reward": 1.0}
    config = build_config({"env_id": "Fake-v0", "algo_id": "dqn", "n_envs": 1, **fields}, "test")
    layout = make_layout(spec, rows=20, n_envs=1, frame_stack=1, n_step=n_step, gamma=0.5)
    rollout = empty_columns(spec, {}, 1, 8)
    rollout["reward"][:, 0] = [1, -100, 2, 0.5, 9, 1, 1, 1]
    rollout["terminated"][3] = rollout["valid"][:] = True
    replay = Replay(layout, HostStorage(layout))
    replay.add(rollout, 0, 8, None)
    slots = np.array([[0, 1, 3]])
    batch = gather(replay.storage.arrays, slots, np.zeros_like(slots), layout, np)
    normalizer = normalizer_for(config, spec)
    state = SimpleNamespace(**normalizer.initial())
    state.return_statistics["var"] = np.float32(4)
    rows = normalizer.minibatches(state, batch)
    expected = {1: [0.5, -1, 0.25], 3: [0.5 - 0.5 + 0.25, -1 + 0.5 + 0.25 * 0.25, 0.25]}[n_step]
    np.testing.assert_allclose(rows["reward"][0], expected, rtol=1e-5)
    assert "rewards" not in rows


def test_observations_and_rewards_are_normalised_when_they_are_used() -> None:
    same = {"double": True, "target_update_interval": None}
    case = make_case("dqn", "discrete", **same, normalize_obs=True, normalize_reward=True, clip_reward=0.4)
    plain = make_case("dqn", "discrete", **same)
    mean, var = np.linspace(-1, 1, OBS), np.linspace(0.5, 2, OBS)
    count = np.float32(9)
    state = case.state._replace(
        obs_statistics={"mean": mean.astype(np.float32), "var": var.astype(np.float32), "count": count},
        return_statistics={"mean": np.float32(7), "var": np.float32(4), "count": count},
    )
    by_hand = plain.batch | {
        "obs": ((plain.batch["obs"] - mean) / np.sqrt(var)).astype(np.float32),
        "next_obs": ((plain.batch["next_obs"] - mean) / np.sqrt(var)).astype(np.float32),
        "reward": np.clip(plain.batch["reward"] / 2, -0.4, 0.4),
    }
    ours, expected = case.update(state=state), plain.update(batch=by_hand)
    np.testing.assert_allclose(ours[2], expected[2], rtol=1e-4, atol=1e-5)
    require_equal(ours[0].params, expected[0].params, rtol=1e-4, atol=1e-6)


class Clockwork:
    """Two environments whose episodes end at every fourth and every sixth step."""

    n_envs = 2

    def __init__(self) -> None:
        self.spec = spec_of(DISCRETE)

    def reset(self, seed: int) -> tuple[np.ndarray, None]:
        self._taken = np.zeros(2, int)
        self._done = np.zeros(2, bool)
        return self._obs(), None

    def step(self, action: np.ndarray) -> Step:
        self._taken = np.where(self._done, 0, self._taken + 1)
        self._done = self._taken == [4, 6]
        return Step(self._obs(), np.ones(2, np.float32), self._done.copy(), np.zeros(2, bool), None)

    def _obs(self) -> np.ndarray:
        return np.repeat(self._taken[:, None], OBS, axis=1).astype(np.float32)

    def close(self) -> None: ...


def test_the_target_is_copied_whenever_so_many_env_steps_have_passed() -> None:
    interval = 7
    config = build_config(
        {
            "env_id": "Fake-v0",
            "algo_id": "dqn",
            "n_envs": 2,
            "train_freq": 2,
            "n_steps": 60,
            "update_to_data": 0.25,
            "batch_size": 4,
            "hidden_dims": [4],
            "learning_starts": 20,
            "target_update_interval": interval,
        },
        "test",
    )
    assert isinstance(config, OffPolicyConfig)
    engine = Clockwork()
    learner = Learner(config, engine.spec)
    # No copy of anything, to begin with.
    learner.state = learner.state._replace(target=jax.tree.map(lambda x: x + 1, learner.state.target))
    source = HostSource(engine, learner.algorithm, learner.act, config.n_steps, 0)
    compiled = jax.jit(learner.algorithm.update, compiler_options=QUICKLY)
    copies: list[tuple[int, bool]] = []

    def update(state: Any, batch: Any, hp: Any, noise: Any) -> Any:
        after = compiled(state, batch, hp, noise)
        copies.append((learner.feed.replay.count, not changed(after[0].target, state.params)))
        return after

    future: Future[Any] = Future()
    future.set_result(update)
    hp = {"policy_lr": 0.1, "epsilon": 0.5, "priority_beta": 0.4}
    learnt = learner.learn(source, future, np.random.default_rng(0), hp, Clock())
    steps = np.concatenate([[0], np.cumsum(source.columns["valid"].sum(axis=1))])  # after so many rows
    assert steps[-1] < 2 * 60, "rows that reset are no steps"
    assert steps[copies[0][0]] >= config.learning_starts > steps[copies[0][0] - 4]
    assert [row for row, _ in copies] == list(range(copies[0][0], 61, 2))
    for row, copied in copies:
        assert copied == (steps[row] // interval > steps[row - 2] // interval), f"after {steps[row]} env steps"
    assert any(copied for _, copied in copies)
    assert learnt.updates == len(copies)
