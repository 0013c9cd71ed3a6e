"""Short trainings from a replay: when learning begins, how much of it there is, what is reset, saved and taken up."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import load_config
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.metrics.catalogue import is_catalogued
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.train.checkpoint import to_arrays
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.parts import Clock
from gymnasium_solver.train.randomness import generator
from gymnasium_solver.train.renewal import Renewal
from gymnasium_solver.train.replay_feed import ReplayFeed
from gymnasium_solver.train.session import train

pytestmark = pytest.mark.integration

train = partial(train, report=False)  # nobody reads one here

# Ten epochs of 32 rows, each with four updates of two gradient steps.
SMALL: dict[str, Any] = {
    "engine": "gymnasium",
    "n_envs": 2,
    "n_steps": 16,
    "max_env_steps": 300,
    "train_freq": 4,
    "update_to_data": 0.25,
    "batch_size": 8,
    "learning_starts": 100,
    "buffer_size": 1000,
    "hidden_dims": [8],
    "eval_freq_epochs": 100,
    "eval_episodes": 1,
    "checkpoint_freq_epochs": 4,
    "stop_when_solved": False,
    "reward_threshold": 1e9,
}
NETWORKS = ("params/", "target/", "optimizer/", "steps")


class Seen(NamedTuple):
    """An epoch as the learner left it."""

    feed: ReplayFeed
    columns: dict[str, np.ndarray]
    updates: int
    steps_before: int


@pytest.fixture
def epochs(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """Filled by the trainings of the test."""
    seen: list[Seen] = []
    original = Learner.learn

    def watched(self: Learner, source: Any, update: Any, rng: Any, hp: Any, clock: Clock) -> Any:
        learnt = original(self, source, update, rng, hp, clock)
        columns = {name: array.copy() for name, array in source.columns.items()}
        assert isinstance(self.feed, ReplayFeed)
        seen.append(Seen(self.feed, columns, learnt.updates, clock.env_steps))
        return learnt

    monkeypatch.setattr(Learner, "learn", watched)
    return seen


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(load_config("CartPole-v1:dqn", SMALL), runs_dir=tmp_path_factory.mktemp("dqn"), command=[])


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(load_config("Pendulum-v1:sac", SMALL), runs_dir=tmp_path_factory.mktemp("sac"), command=[])


def stored(run: Run, name: str) -> set[str]:
    return {tensor for tensor in run.read_checkpoint(name)[0] if tensor.startswith("replay/")}


def initial_arrays(config: Any, purpose: str, number: int) -> dict[str, np.ndarray]:
    algorithm = make_algorithm(config, describe(config))
    return to_arrays(algorithm.init(generator(config.seed, purpose, number)))


def networks_of(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items() if name.startswith(NETWORKS)}


def test_nothing_is_learnt_before_learning_starts(pendulum: Run, tmp_path: Path) -> None:
    metrics = pendulum.metrics
    np.testing.assert_array_equal(metrics["train/cnt/env_steps"][:4], [32, 64, 96, 128])
    ratio = metrics["train/metrics/update_ratio"]
    np.testing.assert_array_equal(ratio[:3], 0.0)
    assert np.isnan(metrics["train/metrics/q_mean"][:3]).all(), "nothing to report"
    # The fourth epoch passes a hundred steps in its first group of four: all four groups are learnt from, two gradient
    # steps each.
    assert ratio[3] == pytest.approx(4 * 2 / 32)
    config = load_config("Pendulum-v1:sac", SMALL | {"max_env_steps": 101})
    short = train(config, runs_dir=tmp_path, command=[], on_event=_stop_after(3))
    assert networks_of(short.read_checkpoint("last")[0]) == networks_of(initial_arrays(config, "init", 0))


def _stop_after(epoch: int) -> Any:
    def on_event(event: Any) -> None:
        if event.kind == "epoch" and event.data["metrics"]["train/cnt/epochs"] == epoch:
            os.kill(os.getpid(), signal.SIGTERM)

    return on_event


@pytest.mark.parametrize("ref", ["CartPole-v1:dqn", "Pendulum-v1:sac"])
def test_the_achieved_ratio_is_the_configured_one(ref: str, cartpole: Run, pendulum: Run) -> None:
    metrics = (cartpole if "dqn" in ref else pendulum).metrics
    steps = np.diff(metrics["train/cnt/env_steps"], prepend=0)
    ratio = metrics["train/metrics/update_ratio"][4:]
    # Rows that reset an environment are no env steps, but the updates keep their rhythm.
    np.testing.assert_allclose(ratio, 8 / steps[4:], rtol=1e-6)
    if "sac" in ref:  # nothing resets: episodes last 200 steps
        np.testing.assert_allclose(ratio, 0.25, rtol=1e-6)


def test_actions_are_random_until_learning_starts(epochs: list[Seen], tmp_path: Path) -> None:
    """With no exploration and a learning rate that moves nothing, the rest are the first network's favourites."""
    config = load_config("CartPole-v1:dqn", SMALL | {"epsilon": 0.0, "policy_lr": 1e-30, "learning_starts": 110})
    train(config, runs_dir=tmp_path, command=[])
    algorithm = make_algorithm(config, describe(config))
    actor = algorithm.actor(algorithm.init(generator(config.seed, "init", 0)))
    is_favourite = []
    for seen in epochs:
        obs = seen.columns["obs"][:-1]
        favourite = np.asarray(algorithm.greedy(actor, (), obs.reshape(-1, 4), None)[0]).reshape(obs.shape[:2])
        is_favourite.append(favourite == seen.columns["action"])
    random = [-(-(110 - seen.steps_before) // 2) for seen in epochs]  # rows of the epoch that are
    assert random[2] >= 16 > random[3] > 0, "the fourth epoch is random in part"
    early = np.concatenate([*is_favourite[:3], is_favourite[3][: random[3]]])
    assert 0.3 < early.mean() < 0.7
    assert np.concatenate([is_favourite[3][random[3] :], *is_favourite[4:]]).all()


def test_continuous_actions_are_uniform_until_learning_starts(epochs: list[Seen], tmp_path: Path) -> None:
    config = load_config("Pendulum-v1:sac", SMALL | {"log_std_init": -5.0, "policy_lr": 1e-30})
    train(config, runs_dir=tmp_path, command=[])
    early = np.concatenate([seen.columns["action"] for seen in epochs[:3]])
    late = np.concatenate([seen.columns["action"] for seen in epochs[4:]])
    assert np.quantile(np.abs(early), 0.9) > 0.8
    assert np.std(early) == pytest.approx(1 / np.sqrt(3), rel=0.15)  # of uniform numbers in [-1, 1]
    algorithm = make_algorithm(config, describe(config))
    actor = algorithm.actor(algorithm.init(generator(config.seed, "init", 0)))
    obs = np.concatenate([seen.columns["obs"][:-1] for seen in epochs[4:]])
    mode = np.asarray(algorithm.greedy(actor, (), obs.reshape(-1, 3), None)[0]).reshape(late.shape)
    # The network's own share in the deviation is at most a few times the initial one of exp(-5).
    assert np.abs(late - mode).max() < 0.1


@pytest.mark.parametrize("ref", ["CartPole-v1:dqn", "Pendulum-v1:sac"])
def test_what_value_methods_report(ref: str, cartpole: Run, pendulum: Run) -> None:
    run = cartpole if "dqn" in ref else pendulum
    metrics, names = run.metrics, ["q_mean", "q_max", "q_bound", "td_error", "target_distance", "dead_units"]
    names = [f"train/metrics/{name}" for name in (*names, "update_ratio", "grad_norm/all", "param_norm")]
    names += ["train/data/replay_age", "train/data/replay_size", "train/loss/value"]
    names += [] if "dqn" in ref else [f"train/metrics/{name}" for name in ("alpha", "entropy", "action_saturation")]
    for name in names:
        assert is_catalogued(name), name
        assert np.isfinite(metrics[name][4:]).all(), name
    later = {name: metrics[name][4:] for name in names}
    assert (later["train/metrics/q_max"] >= np.abs(later["train/metrics/q_mean"])).all()
    assert (later["train/metrics/target_distance"] > 0).any()
    assert ((later["train/metrics/dead_units"] >= 0) & (later["train/metrics/dead_units"] <= 1)).all()
    rows = 32 * np.arange(5, 11)
    np.testing.assert_array_equal(later["train/data/replay_size"], rows)
    # Drawn from all rows alike, so half as old as the replay on average.
    np.testing.assert_allclose(later["train/data/replay_age"], rows / 2, rtol=0.35)
    if "dqn" in ref:
        np.testing.assert_allclose(later["train/metrics/q_bound"], 1 / (1 - run.config["gamma"]), rtol=1e-5)


def test_only_the_last_checkpoint_holds_the_replay(cartpole: Run) -> None:
    names = cartpole.checkpoints()
    assert {"best", "last", "epoch=4", "epoch=8"} <= set(names)
    for name in names:
        assert bool(stored(cartpole, name)) == (name == "last"), name
    arrays = cartpole.read_checkpoint("last")[0]
    assert {"replay/obs", "replay/action", "replay/reward", "replay/terminated", "replay/truncated"} <= set(arrays)
    written = int(cartpole.metrics.last("train/cnt/epochs")) * 16
    assert arrays["replay/obs"].shape == (written + 1, 2, 4), "and the observation that waits"
    assert arrays["replay/numbers"].tolist() == [written, 1.0]
    assert "params/critic_head/weight" in cartpole.read_checkpoint("best")[0]


def test_going_on_from_a_checkpoint_without_a_replay(epochs: list[Seen], tmp_path: Path) -> None:
    config = load_config("CartPole-v1:dqn", SMALL)
    run = train(config, runs_dir=tmp_path, command=[])
    assert not [line for line in run.log_lines() if "holds no replay" in line]
    del epochs[:]
    resumed = train(resume=f"{run.run_id}/epoch=4", overrides={"max_env_steps": 301}, runs_dir=tmp_path)
    assert resumed.status["status"] == "completed"
    assert [line for line in resumed.log_lines() if "the checkpoint holds no replay: it fills anew" in line]
    np.testing.assert_array_equal(resumed.metrics["train/cnt/epochs"], np.arange(1, len(epochs) + 5))
    # Fifty rows of two environments make up learning_starts: three epochs fill, the fourth learns.
    assert [seen.updates for seen in epochs[:5]] == [0, 0, 0, 8, 8]
    assert epochs[0].feed.replay.count == 16 * len(epochs), "nothing of the earlier replay"
    assert stored(resumed, "last")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> dict[int, dict[str, np.ndarray]]:
    """The state that epochs began to learn with, by env steps."""
    states: dict[int, dict[str, np.ndarray]] = {}
    original = Renewal.applied

    def watched(self: Renewal, state: Any, env_steps: int) -> Any:
        state = original(self, state, env_steps)
        states[env_steps] = to_arrays(state)
        return state

    monkeypatch.setattr(Renewal, "applied", watched)
    return states


@pytest.mark.parametrize("part", ["all", "heads"])
def test_a_reset_gives_fresh_networks_and_keeps_the_replay(
    part: str, begun: dict[int, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    # Pendulum's episodes last 200 steps: every row of these epochs is an env step, and the last ends at 320.
    fields = SMALL | {"max_env_steps": 320, "reset_interval": 160, "reset_part": part}
    config = load_config("Pendulum-v1:td3", fields)
    run = train(config, runs_dir=tmp_path, command=[])
    ours, fresh = networks_of(begun[160]), networks_of(initial_arrays(config, "reset", 1))
    assert ours.keys() == fresh.keys()
    for name in ours:
        is_kept = part == "heads" and name.startswith(("params/", "target/")) and "_head" not in name
        assert (ours[name] != fresh[name]) == is_kept, name
    assert networks_of(initial_arrays(config, "reset", 2)) != fresh, "every fresh start is another"
    arrays = run.read_checkpoint("last")[0]
    assert arrays["steps"] == 5 * 8, "none comes when training is over: the end is what was learnt since the last"
    assert arrays["replay/numbers"][0] == 160
    assert arrays["replay/valid"][:160].all()


def test_a_reset_comes_only_when_it_is_due(tmp_path: Path) -> None:
    config = load_config("Pendulum-v1:td3", SMALL | {"max_env_steps": 320, "reset_interval": 310})
    arrays = train(config, runs_dir=tmp_path, command=[]).read_checkpoint("last")[0]
    assert arrays["steps"] == 4 * 2 + 6 * 8, "gradient steps since the beginning"


def test_an_interval_of_resets_is_at_least_an_epoch(tmp_path: Path) -> None:
    config = load_config("Pendulum-v1:td3", SMALL | {"reset_interval": 31})
    with pytest.raises(ConfigError, match="reset_interval: 31 is less than an epoch, which is 32 env steps; use at"):
        train(config, runs_dir=tmp_path, command=[])
    assert not list(tmp_path.iterdir())


def test_an_epoch_that_ends_on_a_reset_is_reported_from_the_accelerator(tmp_path: Path) -> None:
    """Its last round learns nothing, but writes to the replay once more."""
    fields = {"replay_device": "accelerator", "n_envs": 1, "train_freq": 1, "update_to_data": 1, "n_steps": 32}
    config = load_config("gymnasium_solver.envs.probes:ConstantReward:dqn", SMALL | fields)
    run = train(config, runs_dir=tmp_path, command=[])
    assert run.status["status"] == "completed"
    assert np.isfinite(run.metrics["train/metrics/dead_units"][-1])


def test_rewards_are_scaled_by_what_is_learnt_from(epochs: list[Seen], tmp_path: Path) -> None:
    fields = {"normalize_reward": True, "bonus": "count", "bonus_coef": 1.0}
    run = train(load_config("FrozenLake-v1:dqn", SMALL | fields), runs_dir=tmp_path, command=[])
    assert not any(seen.columns["reward"].any() for seen in epochs), "only the bonus is there to be scaled"
    assert run.read_checkpoint("last")[0]["return_statistics/var"] > 0.01


def test_prioritised_replay_samples_by_the_error_it_met(epochs: list[Seen], tmp_path: Path) -> None:
    shares = {}
    for prioritized in (False, True):
        fields = {"prioritized_replay": True, "priority_alpha": 1.0} if prioritized else {}
        run = train(load_config("Pendulum-v1:td3", SMALL | fields), runs_dir=tmp_path, command=[])
        assert ("replay/priorities" in run.read_checkpoint("last")[0]) == prioritized
        replay = epochs[-1].feed.replay
        slots, envs, weight = replay.sample(np.random.default_rng(0), (100, 320), beta=1.0)
        shares[prioritized] = np.bincount((2 * slots + envs).ravel(), minlength=320) / slots.size
        if prioritized:
            priorities = replay.priorities
            assert priorities is not None
            chance = priorities.chance(np.arange(320))
            assert np.quantile(chance, 0.9) > 3 * np.quantile(chance, 0.1), "errors differ"
            np.testing.assert_allclose(shares[True], chance, atol=2e-3)
            # Weights undo it: in proportion to one over the chance, the largest of a minibatch is one.
            expected = 1 / chance[2 * slots + envs]
            np.testing.assert_allclose(weight, expected / expected.max(axis=1, keepdims=True), rtol=1e-4)
        else:
            assert (weight == 1).all()
    np.testing.assert_allclose(shares[False], 1 / 320, atol=2e-3)
    assert np.abs(shares[True] - shares[False]).sum() > 0.2
