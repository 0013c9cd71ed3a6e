"""The noise scale of gradients whose noise is known, of real updates, and the batch size that follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import load_config, to_dict
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import ConfigError, NotFoundError
from gymnasium_solver.train.gradients import minibatch_gradients
from gymnasium_solver.train.source import empty_columns
from gymnasium_solver.verify.noise_scale import _direction, estimate, measure, suggestion
from tests.conftest import Fitted

pytestmark = pytest.mark.integration

Fit = Callable[..., Fitted]
DIM, ROWS = 50, 32
SMALL = {"n_envs": 4, "n_steps": 32, "batch_size": 32, "n_epochs": 1, "max_env_steps": 256, "max_episode_steps": 32,
         "eval_episodes": 1}  # fmt: skip


def drawn(
    seed: int, *, blocks: int = 24, minibatches: int = 8, signal: float = 1.0, noise: float = 200.0, shared: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of minibatches around a true one of squared norm `signal`; tr(Σ) of a row is `noise`, and `shared` the
    variance of what all minibatches of a block have in common."""
    rng = np.random.default_rng(seed)
    true = np.sqrt(signal / DIM) * np.ones(DIM)
    own = rng.normal(scale=np.sqrt(noise / ROWS / DIM), size=(blocks, minibatches, DIM))
    common = rng.normal(scale=np.sqrt(shared / DIM), size=(blocks, 1, DIM))
    gradients = true + own + common
    return gradients.mean(axis=1), np.square(gradients).sum(axis=2)


def test_the_known_noise_scale_is_found() -> None:
    found = estimate("policy", *drawn(0, blocks=400), ROWS)
    assert found.signal == pytest.approx(1.0, rel=0.05)
    assert found.noise == pytest.approx(200.0, rel=0.05)
    assert found.noise_scale == pytest.approx(200.0, rel=0.08)
    assert found.minibatches == 3200 and found.rows == ROWS


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    found = [estimate("policy", *drawn(seed, blocks=16), ROWS) for seed in range(60)]
    covered = [one.low is not None and one.high is not None and one.low <= 200 <= one.high for one in found]
    assert np.mean(covered) >= 0.8


def test_what_a_block_has_in_common_is_not_taken_for_signal() -> None:
    """The variance of 2 that is shared would triple a |G|² from the blocks' own squares."""
    means, squares = drawn(1, blocks=400, shared=2.0)
    found = estimate("policy", means, squares, ROWS)
    assert found.signal == pytest.approx(1.0, abs=0.25)
    assert np.square(means).sum(axis=1).mean() > 2.9


def test_a_gradient_that_is_lost_in_noise_has_no_noise_scale() -> None:
    found = estimate("policy", *drawn(2, signal=0.0), ROWS)
    assert found.noise_scale is None and found.high is None
    assert found.low is None or found.low > 200


def test_gradients_are_those_of_the_training_update() -> None:
    """A minibatch of all rows has the norm that the update itself reports; the mean over disjoint minibatches is its
    gradient."""
    fields = {**SMALL, "batch_size": 128, "normalize_advantages": False, "max_grad_norm": None}
    config = load_config("CartPole-v1:ppo", fields)
    spec, hp = describe(config), {"policy_lr": 1e-3, "clip_range": 0.2, "vf_coef": 0.5, "ent_coef": 0.01}
    algorithm = make_algorithm(config, spec)
    state = algorithm.init(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    batch = empty_columns(spec, {}, config.n_envs, config.n_steps)
    batch["obs"][:] = rng.normal(size=batch["obs"].shape)
    batch["action"][:] = rng.integers(2, size=batch["action"].shape)
    batch["reward"][:] = rng.normal(size=batch["reward"].shape)
    batch["valid"][:] = True
    inputs = {name: np.float32(value) for name, value in hp.items()}
    order = rng.permutation(128).astype(np.int32)
    whole, quarters = (
        jax.device_get(jax.jit(algorithm.gradients)(state, batch, inputs, order.reshape(-1, rows)))
        for rows in (128, 32)
    )
    _, metrics, _ = jax.jit(algorithm.update)(state, batch, inputs, np.arange(128, dtype=np.int32)[None])
    reported = metrics.to_dict()
    assert np.linalg.norm(whole["policy"] + whole["value"]) == pytest.approx(
        reported["train/metrics/grad_norm/all"], rel=1e-4
    )
    assert quarters["policy"].shape[0] == 4
    for part in ("policy", "value"):
        np.testing.assert_allclose(quarters[part].mean(axis=0), whole[part][0], atol=1e-5)


def test_a_run_is_measured_and_the_result_kept_beside_it(fit: Fit) -> None:
    run = fit("CartPole-v1:ppo", **SMALL).run
    document = measure(str(run.path), checkpoint="last", rows=4096)
    assert document["batch_size"] == 32 and document["part"] == "policy"
    (entry,) = document["checkpoints"]
    assert set(entry["parts"]) == {"policy", "value"}
    assert entry["parts"]["policy"]["blocks"] >= 16
    kept = json.loads((run.path / "noise_scale.json").read_text())
    assert kept["noise_scale"] == document["noise_scale"] and kept["verdict"] == document["verdict"]


def test_without_a_checkpoint_named_the_course_of_training_is_measured(fit: Fit) -> None:
    fields = {"n_envs": 4, "n_steps": 32, "max_episode_steps": 32, "max_env_steps": 256, "eval_episodes": 1}
    run = fit("CartPole-v1:a2c", **fields, checkpoint_freq_epochs=2).run
    document = measure(str(run.path), rows=1024)
    names = [entry["checkpoint"] for entry in document["checkpoints"]]
    assert names[0] == "epoch=2" and 1 < len(names) <= 5 and "last" not in names
    assert document["batch_size"] == 128


@pytest.mark.parametrize(("ref", "parts"), [("CartPole-v1:dqn", {"value"}), ("Pendulum-v1:td3", {"policy", "value"})])
def test_replay_algorithms_are_measured_on_their_replay(fit: Fit, ref: str, parts: set[str]) -> None:
    run = fit(ref, max_env_steps=1200, learning_starts=100, batch_size=32, hidden_dims=(16,), eval_episodes=1).run
    found = minibatch_gradients(run, "last", experience=32)
    assert set(found.means) == parts and found.rows == 32
    assert all(np.isfinite(squares).all() and (squares > 0).all() for squares in found.squares.values())
    with pytest.raises(ConfigError, match=r"holds no replay.*--checkpoint last"):
        minibatch_gradients(run, "best")


def test_a_table_has_no_gradient(fit: Fit) -> None:
    run = fit("FrozenLake-v1:q_learning", max_env_steps=2000, eval_episodes=2).run
    with pytest.raises(ConfigError, match=r"q_learning.*no minibatch gradient"):
        measure(str(run.path))


def test_a_run_without_checkpoints_is_told(tmp_path: Path) -> None:
    from tests.made_runs import write_run

    with pytest.raises(NotFoundError, match="no checkpoint"):
        measure(str(write_run(tmp_path / "runs").path))


@pytest.mark.parametrize(
    ("ref", "fields", "scale", "change"),
    [
        ("CartPole-v1:ppo", {"n_envs": 8, "n_steps": 128, "batch_size": 64}, 300.0, {"batch_size": 256}),
        ("CartPole-v1:ppo", {"n_envs": 8, "n_steps": 128, "batch_size": 64}, 1e6, {"batch_size": 1024}),
        ("CartPole-v1:ppo", {"n_envs": 6, "n_steps": 100, "batch_size": 60}, 1e6, {"batch_size": 8}),
        ("CartPole-v1:ppo", {"n_envs": 8, "n_steps": 128, "batch_size": 64}, 60.0, {}),
        ("CartPole-v1:ppo", {"n_envs": 8, "n_steps": 128, "batch_size": 64}, 0.1, {"batch_size": 2}),
        ("CartPole-v1:dqn", {"batch_size": 64}, 1900.0, {"batch_size": 2048}),
        ("CartPole-v1:a2c", {"n_envs": 8, "n_steps": 16}, 1000.0, {"n_envs": 64}),
    ],
)
def test_the_suggestion_is_the_nearest_valid_setting(ref: str, fields: dict, scale: float, change: dict) -> None:
    config = to_dict(load_config(ref, fields))
    assert suggestion(config, scale) == change
    load_config(ref, {**fields, **change})


@pytest.mark.parametrize(
    ("scale", "low", "high", "direction"),
    [
        (1000.0, 500.0, 2000.0, "larger"),
        (1000.0, 60.0, None, "probably larger"),
        (100.0, 10.0, 1000.0, "keep"),
        (4.0, 2.0, 8.0, "smaller"),
        (4.0, 2.0, 80.0, "probably smaller"),
        (None, None, None, None),
    ],
)
def test_the_direction_is_certain_only_where_the_interval_is(
    scale: float | None, low: float | None, high: float | None, direction: str | None
) -> None:
    assert _direction(64, scale, low, high) == direction
