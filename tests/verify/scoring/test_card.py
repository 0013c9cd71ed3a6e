"""The score card's figures on episodes whose answers are known, its tasks, and the runs it counts as seeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from gymnasium_solver.config.load import build_config
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.probes import _OneNumber, _signal
from gymnasium_solver.errors import ConfigError, NotFoundError
from gymnasium_solver.plain import plain
from gymnasium_solver.statistics import wilson
from gymnasium_solver.train.policy import Policy
from gymnasium_solver.verify.scoring import measures, playing, transfer_tasks
from gymnasium_solver.verify.scoring.card import find_solution, score
from gymnasium_solver.verify.scoring.measures import Plays
from gymnasium_solver.verify.scoring.text import to_text, to_yaml
from tests.conftest import PROBES, Fitted
from tests.made_runs import HEALTHY, write_run

RNG = np.random.default_rng(0)
BY_NAME = {name: list(tasks) for name, tasks in transfer_tasks.TASKS.items()}


class TellsSuccess(_OneNumber):
    """One step, reward 5 either way; a success with action 1."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        return _signal(0), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return _signal(0), 5.0, True, False, {"is_success": bool(action)}


class RefusesMasked(_OneNumber):
    """Twenty steps in which only action 1 is legal, then a success."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.left = 20
        return _signal(0), {"action_mask": np.array([0, 1], np.int8)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert action == 1, "illegal action"
        self.left -= 1
        info = {"action_mask": np.array([0, 1], np.int8)} | ({"is_success": True} if self.left == 0 else {})
        return _signal(0), 1.0, self.left == 0, False, info


def config_for(env_id: str, **fields: Any) -> Config:
    return build_config({"env_id": env_id, "algo_id": "ppo", "seed": 0, **fields}, "test")


def policy_for(env_id: str, act: Callable[[np.ndarray], np.ndarray], **fields: Any) -> Policy:
    config = config_for(env_id, **fields)
    greedy = lambda actor, carry, obs, mask: (act(obs), carry)  # noqa: E731
    without_memory: Any = SimpleNamespace(begin=lambda n: ())
    return Policy(config, describe(config), {}, greedy, greedy, without_memory)


def played(seed: int, home: np.ndarray, noisy: np.ndarray | None = None, **tasks: np.ndarray) -> Plays:
    return Plays(seed, home, home if noisy is None else noisy, None, tasks)


def kept_under_noise(policy: Policy, noise: float) -> float | None:
    """As the score card measures it."""
    seen = playing.Spread()
    home = playing.play(policy, policy.config, 200, seen)
    perturb = playing.noise_on(policy.spec, seen, noise, np.random.default_rng(0))
    noisy = playing.play(policy, policy.config, 200, perturb)
    chance = {"": playing.play_at_random(policy.config, 100)}
    return measures.robustness([played(0, home, noisy)], chance, noise).value


# --- noise ----------------------------------------------------------------------------------------------------------


def test_a_policy_that_does_not_look_keeps_everything() -> None:
    blind = policy_for(f"{PROBES}:ActionReward", lambda obs: np.ones(len(obs), np.int32))
    assert kept_under_noise(blind, 5.0) == 1.0


def test_a_policy_that_looks_loses_with_the_noise() -> None:
    """The sign of a number of size 1 is hardly blurred by a noise of 0.2, and nearly gone in one of 20."""
    looks = policy_for(f"{PROBES}:ObservationActionReward", lambda obs: (obs[:, 0] > 0).astype(np.int32))
    little, much = (kept_under_noise(looks, noise) for noise in (0.2, 20.0))
    assert little == pytest.approx(1.0, abs=0.02)
    assert much == pytest.approx(0.0, abs=0.2)


def test_a_policy_no_better_than_chance_has_nothing_to_keep() -> None:
    found = measures.robustness([played(0, RNG.normal(size=100))], {"": RNG.normal(size=100)}, 0.2)
    assert found.value is None and found.verdict == "not measured" and "not shown to be better" in found.note


def test_the_spread_of_observations_is_that_of_each_component() -> None:
    obs = RNG.normal(loc=100.0, scale=(1.0, 5.0, 0.0), size=(4000, 3))
    seen = playing.Spread()
    for part in np.split(obs, 40):
        seen(part)
    np.testing.assert_allclose(seen.std, obs.std(axis=0), atol=1e-6)
    assert seen.std_of_all == pytest.approx(obs.std())


def test_noise_is_a_share_of_that_spread_and_leaves_the_observation_alone() -> None:
    seen = playing.Spread()
    obs = np.tile(np.array([[-1.0, 10.0], [1.0, 10.0]], np.float32), (2000, 1))
    before = seen(obs).copy()
    spec = describe(config_for("MountainCar-v0"))
    noisy = playing.noise_on(spec, seen, 0.2, np.random.default_rng(0))(obs)
    assert (noisy - obs).std(axis=0) == pytest.approx([0.2, 0.0], abs=0.01)
    assert noisy.dtype == np.float32 and np.array_equal(obs, before)


def test_discrete_observations_are_redrawn_that_share_of_the_time() -> None:
    spec = describe(config_for("FrozenLake-v1"))
    obs = np.zeros((8000, 16), np.float32)
    obs[:, 3] = 1.0
    noisy = playing.noise_on(spec, playing.Spread(), 0.2, np.random.default_rng(0))(obs)
    assert (noisy.sum(axis=1) == 1).all()
    assert (noisy[:, 3] == 0).mean() == pytest.approx(0.2 * 15 / 16, abs=0.02)


def test_images_stay_images() -> None:
    class Image:
        obs_sizes, is_image = (), True

    seen = playing.Spread()
    obs = RNG.integers(0, 256, size=(20, 8, 8, 1)).astype(np.uint8)
    seen(obs)
    noisy = playing.noise_on(Image(), seen, 0.2, np.random.default_rng(0))(obs)  # type: ignore[arg-type]
    assert noisy.dtype == np.uint8 and noisy.shape == obs.shape
    assert 5 < np.abs(noisy.astype(int) - obs).mean() < 20


# --- figures --------------------------------------------------------------------------------------------------------


def test_kept_performance_counts_from_chance_also_where_returns_are_negative() -> None:
    plays = [played(0, np.full(50, -100.0), np.full(50, -200.0), harder=np.full(50, -400.0))]
    chance = {"": np.full(50, -1100.0), "harder": np.full(50, -900.0)}
    kept = measures.robustness(plays, chance, 0.2)
    assert kept.value == pytest.approx(0.9) and kept.verdict == "pass" and kept.certain
    moved = measures.transfer(plays, chance)
    assert moved.value == pytest.approx(0.5) and moved.verdict == "fail"
    assert moved.tasks[0]["return"] == -400.0 and moved.tasks[0]["random_return"] == -900.0


def test_without_a_similar_task_transfer_is_not_measured() -> None:
    found = measures.transfer([played(0, np.ones(5))], {"": np.zeros(5)})
    assert found.verdict == "not measured" and "--transfer" in found.note


@pytest.mark.parametrize("means", [[100.0], [100.0, 90.0]])
def test_the_spread_of_too_few_seeds_is_not_measured(means: list[float]) -> None:
    found = measures.spread([played(seed, np.full(10, mean)) for seed, mean in enumerate(means)])
    assert found.value is None and found.verdict == "not measured" and "gsolve train --seeds" in found.note


def test_the_spread_over_seeds_is_the_coefficient_of_variation() -> None:
    found = measures.spread([played(seed, np.full(10, mean)) for seed, mean in enumerate([-90.0, -100.0, -110.0])])
    assert found.value == pytest.approx(0.1)
    assert found.verdict == "fail" and found.certain is False  # 10 % is not under 10 %, and three seeds show little
    assert found.low == pytest.approx(0.0521, abs=1e-3) and found.high == pytest.approx(0.6285, abs=1e-3)


def test_success_is_an_episode_at_the_threshold() -> None:
    plays = [played(0, np.array([475.0] * 95 + [100.0] * 5)), played(1, np.full(100, 500.0))]
    found = measures.success(plays, 475.0)
    assert found.value == pytest.approx(0.975) and found.per_seed == {0: 0.95, 1: 1.0}
    assert found.low is not None and 0.9 < found.low < 0.96
    assert measures.success(plays, None).verdict == "not measured"


def test_all_successes_still_leave_room_for_failures() -> None:
    """Wilson's interval of 100 of 100: n / (n + z²)."""
    assert wilson(1.0, 100) == pytest.approx((100 / (100 + 1.959964**2), 1.0))
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    found = measures.success([played(0, np.ones(100))], 1.0)
    assert found.low == pytest.approx(0.963, abs=1e-3) and found.certain


def test_intervals_over_seeds_are_wider_than_over_their_episodes() -> None:
    apart = [played(seed, np.full(100, float(seed))) for seed in range(4)]
    found = measures.mean_return(apart, None)
    assert found.value == 1.5 and found.low is not None and found.high is not None
    assert found.low < 0.8 and found.high > 2.2


def test_episodes_to_solve_count_a_seed_that_never_got_there_as_infinite(tmp_path: Path) -> None:
    episodes = {"train/cnt/episodes": np.linspace(10, 500, 50)}
    solved = write_run(tmp_path, HEALTHY | episodes, solved=True, seed=1)
    missed = write_run(tmp_path, HEALTHY | episodes, solved=False, seed=2)
    both, frames = measures.efficiency({1: solved, 2: missed}, 475.0)
    assert both.value is None and both.verdict == "fail" and "solved in 1 of 2" in both.note
    assert both.per_seed[2] is None and frames.per_seed[2] is None
    alone, frames = measures.efficiency({1: solved}, 475.0)
    assert alone.verdict == "pass" and alone.low is None and alone.certain is None
    assert alone.value == pytest.approx(frames.value / 100, abs=10)  # ten episodes in a thousand steps
    unknown, _ = measures.efficiency({1: solved}, None)
    assert unknown.verdict == "not measured" and "threshold" in unknown.note


# --- success as the environment tells it ----------------------------------------------------------------------------


def test_is_success_of_the_environment_is_used_where_there_is_one() -> None:
    env_id = f"{__name__}:TellsSuccess"
    assert playing.tells_success(config_for(env_id))
    assert not playing.tells_success(config_for("CartPole-v1"))
    half = policy_for(env_id, lambda obs: np.arange(len(obs)) % 2)
    flags = playing.play(half, transfer_tasks.success_config(half.config), 64)
    assert flags.mean() == 0.5
    found = measures.success([Plays(0, np.full(64, 5.0), np.full(64, 5.0), flags, {})], 1.0)
    assert found.value == 0.5 and "is_success" in found.note


def test_random_play_keeps_to_the_action_mask() -> None:
    config = config_for(f"{__name__}:RefusesMasked")
    assert playing.tells_success(config)
    assert playing.play_at_random(config, 3).tolist() == [20, 20, 20]


# --- tasks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [name for name in BY_NAME if not name.endswith("-v5")])
def test_built_in_tasks_can_be_made_and_differ_from_home(env_id: str) -> None:
    trained = config_for(env_id)
    home = describe(trained)
    for task in BY_NAME[env_id]:
        config = transfer_tasks.config_of(task, trained)
        transfer_tasks.require_same_spaces(task, describe(config), home)
        env = build_env(config)
        for name, value in task.attributes.items():
            assert getattr(env.unwrapped, name) == value
            assert getattr(build_env(trained).unwrapped, name) != value
        env.close()


def test_a_longer_pole_falls_otherwise() -> None:
    trained = config_for("CartPole-v1")
    longer = transfer_tasks.config_of(BY_NAME["CartPole-v1"][0], trained)
    ends = []
    for config in (trained, longer):
        env = build_env(config)
        env.reset(seed=0)
        ends.append([env.step(1)[0] for _ in range(5)][-1])
    assert not np.allclose(ends[0], ends[1])


def test_a_task_is_arguments_and_attributes() -> None:
    task = transfer_tasks.parse_task("Pendulum-v1:g=8.5,m=1.2", config_for("Pendulum-v1"))
    assert task.env_id == "Pendulum-v1" and task.arguments == {"g": 8.5} and task.attributes == {"m": 1.2}
    whole = transfer_tasks.parse_task(f"{PROBES}:ActionReward", config_for(f"{PROBES}:ActionReward"))
    assert whole.env_id == f"{PROBES}:ActionReward" and not whole.arguments


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CartPole-v1:gravty=12", "'gravty' is neither.*nearest is 'gravity'"),
        ("CartPole-v1:=12", "not name=value"),
        ("CartPole-v1:gravity=12,length", "not name=value"),
        ("CartPoll-v1", "nearest is 'CartPole-v1'"),
    ],
)
def test_a_task_that_does_not_exist_is_named(text: str, message: str) -> None:
    with pytest.raises((ConfigError, NotFoundError), match=message):
        transfer_tasks.parse_task(text, config_for("CartPole-v1"))


@pytest.mark.parametrize(
    ("home", "other", "message"),
    [("FrozenLake-v1", "FrozenLake8x8-v1", r"observations are \[64\]"), ("Acrobot-v1", "CartPole-v1", r"takes \[6\]")],
)
def test_a_task_with_other_spaces_is_refused(home: str, other: str, message: str) -> None:
    task = transfer_tasks.Task(other, other)
    with pytest.raises(ConfigError, match=message):
        transfer_tasks.require_same_spaces(task, describe(config_for(other)), describe(config_for(home)))


# --- runs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gymnasium_solver.runs.reader.Run.checkpoints", lambda self: ["last", "best"])


@pytest.mark.usefixtures("with_checkpoints")
def test_runs_of_the_same_configuration_are_seeds_of_one_solution(tmp_path: Path) -> None:
    first = write_run(tmp_path, seed=1)
    second = write_run(tmp_path, seed=2)
    write_run(tmp_path, seed=3, policy_lr=1e-5)
    run, checkpoint, runs = find_solution(second.run_id, tmp_path)
    assert run.run_id == second.run_id and checkpoint == "best"
    assert [one.run_id for one in runs] == [first.run_id, second.run_id]
    assert find_solution(f"{second.run_id}/@last", tmp_path)[1] == "last"


def test_a_run_without_a_policy_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    with pytest.raises(NotFoundError, match="no checkpoint"):
        score(run.run_id, runs_dir=tmp_path)


@pytest.mark.parametrize(("options", "message"), [({"episodes": 1}, "--episodes 1"), ({"noise": -0.1}, "--noise")])
def test_bad_numbers_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        score("any", runs_dir=tmp_path, **options)


def test_a_trained_run_gets_a_card_that_is_the_same_in_every_form(fit: Callable[..., Fitted]) -> None:
    run = fit("CartPole-v1:ppo", n_envs=4, n_steps=32, batch_size=32, max_env_steps=256, eval_episodes=2).run
    document = score(str(run.path), episodes=4, transfer=["CartPole-v1:gravity=12"])
    assert plain(document) == yaml.safe_load(to_yaml(document)) == json.loads(json.dumps(plain(document)))
    by_name = {measure["name"]: measure for measure in document["measures"]}
    assert by_name["spread over seeds"]["verdict"] == "not measured"
    assert by_name["episodes to solve"]["verdict"] == "fail"  # 256 steps solve nothing
    text = to_text(document)
    assert all(measure["name"] in text and measure["target"] in text for measure in document["measures"])
    counted = document["passed"] + document["failed"] + document["not_measured"]
    assert counted == sum(measure["verdict"] != "no target" for measure in document["measures"]) == 5
    assert "only one seed" in text
