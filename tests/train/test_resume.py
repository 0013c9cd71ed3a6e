"""A stopped run continues bit-identically to never having stopped, however it was stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.config.load import build_config, load_config
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.runs.reader import Run, find_run
from gymnasium_solver.train.loop import Loop
from gymnasium_solver.train.session import Event, train

pytestmark = pytest.mark.integration

train = partial(train, report=False)  # nobody reads one here

SMALL: dict[str, Any] = {
    "n_envs": 2,
    "n_steps": 16,
    "max_env_steps": 1000,
    "hidden_dims": [8],
    "eval_freq_epochs": 10,
    "eval_episodes": 2,
    "checkpoint_freq_epochs": 6,
    "max_episode_steps": 20,  # environments restart after epochs 12 and 24
    "stop_when_solved": False,
    "reward_threshold": 1e9,
}
PPO = {"batch_size": 16, "n_epochs": 2}
REPLAY = {"train_freq": 4, "learning_starts": 100, "batch_size": 8, "update_to_data": 0.25}
HOST = {"engine": "gymnasium"}
SEVERAL = {"max_env_steps": 4000, "eval_freq_epochs": 8, "checkpoint_freq_epochs": 4}  # epochs in a row of metrics
CASES: dict[str, dict[str, Any]] = {
    "CartPole-v1:ppo": PPO | HOST,
    "CartPole-v1:a2c": HOST,
    "CartPole-v1:reinforce": HOST,
    "Pendulum-v1:ppo": {**PPO, **HOST, "normalize_obs": True, "normalize_reward": True},
    "LunarLander-v3:ppo": PPO,  # a Box2D world, whose state nobody can save
    "HalfCheetah-v5:ppo": {**PPO, "normalize_obs": True},
    "Taxi-v3:ppo": PPO,
    # The ring is filled over and over, priorities change, a bonus learns, networks are reset.
    "CartPole-v1:dqn": {
        **REPLAY,
        "buffer_size": 240,
        "n_step": 3,
        "prioritized_replay": True,
        "bonus": "rnd",
        "reset_interval": 400,
    },
    "Pendulum-v1:sac": {
        **REPLAY,
        **HOST,
        "buffer_size": 500,
        "use_sde": True,
        "normalize_obs": True,
        "normalize_reward": True,
    },
    "Pendulum-v1:td3": {**REPLAY, **HOST, "noise": "ou", "replay_device": "accelerator"},
    "Taxi-v3:q_learning": {"bonus": "count"},
    "CartPole-v1:ppo compiled": PPO,
    "Acrobot-v1:ppo compiled": PPO | SEVERAL,
    "MountainCar-v0:a2c compiled": SEVERAL,
    "Pendulum-v1:reinforce compiled": {"normalize_obs": True, "normalize_reward": True},
    "CartPole-v1:dqn compiled": {**REPLAY, "buffer_size": 240, "n_step": 3, "reset_interval": 400},
    "Pendulum-v1:sac compiled": {**REPLAY, "buffer_size": 500, "normalize_obs": True, "normalize_reward": True},
    "MountainCarContinuous-v0:td3 compiled": {**REPLAY, "noise": "ou"},
}


def small_config(case: str) -> Config:
    ref, _, engine = case.partition(" ")
    return load_config(ref, small(case) | ({"engine": engine} if engine else {}))


def small(case: str) -> dict[str, Any]:
    fields = SMALL | CASES[case]
    return {name: value for name, value in fields.items() if name != "hidden_dims" or ":q_learning" not in case}


def comparable(run: Run) -> dict[str, np.ndarray]:
    """All metrics but clocks and memory."""
    return {name: run.metrics[name] for name in run.metrics if not name.startswith("train/sys/")}


def assert_identical(one: Run, other: Run) -> None:
    left, right = comparable(one), comparable(other)
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    ours, theirs = one.read_checkpoint("last")[0], other.read_checkpoint("last")[0]
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}


class Killed(BaseException):
    """Stands for a kill that nothing can catch: no handler runs after it."""


def killed_at(epoch: int) -> Any:
    def on_event(event: Event) -> None:
        if event.kind == "epoch" and event.data["metrics"]["train/cnt/epochs"] == epoch:
            raise Killed

    return on_event


@pytest.mark.parametrize("case", CASES)
def test_resume_equals_never_having_stopped(case: str, tmp_path: Path) -> None:
    config = small_config(case)
    whole = train(config, runs_dir=tmp_path / "whole", command=[])
    for epoch in (2, 14):  # before the first checkpoint, and between two
        directory = tmp_path / f"killed-{epoch}"
        with pytest.raises(Killed):
            train(config, runs_dir=directory, command=[], on_event=killed_at(epoch))
        assert_identical(train(resume="@last", runs_dir=directory), whole)


@pytest.mark.parametrize("case", ["CartPole-v1:ppo", "LunarLander-v3:ppo", "CartPole-v1:ppo compiled"])
def test_an_interrupt_keeps_every_update_and_resumes_identically(case: str, tmp_path: Path) -> None:
    config = small_config(case)
    whole = train(config, runs_dir=tmp_path / "whole", command=[])

    def interrupt(event: Event) -> None:
        if event.kind == "epoch" and event.data["metrics"]["train/cnt/epochs"] == 15:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = train(config, runs_dir=tmp_path / "stopped", command=[], on_event=interrupt)
    assert stopped.status["status"] == "interrupted"
    assert stopped.read_checkpoint("last")[1]["progress"]["epoch"] == 15
    resumed = train(resume="@last", runs_dir=tmp_path / "stopped")
    assert resumed.status["status"] == "completed"
    assert_identical(resumed, whole)


def test_a_stop_in_the_midst_of_an_evaluation_resumes_identically(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {**SMALL, **PPO})
    whole = train(config, runs_dir=tmp_path / "whole", command=[])
    for purpose in ("evaluation", "final"):  # the one of epoch 10, and the one that ends the run
        directory = tmp_path / purpose
        stopped = _stop_at(purpose, config, directory)
        assert stopped.status["status"] == "interrupted"
        assert_identical(train(resume="@last", runs_dir=directory), whole)


def test_a_stop_in_the_midst_of_a_confirmation_loses_no_best_policy(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {**SMALL, **PPO, "max_env_steps": 64, "reward_threshold": 1.0})
    whole = train(config, runs_dir=tmp_path / "whole", command=[])
    stopped = _stop_at("confirmation", config, tmp_path / "stopped")
    assert stopped.status["status"] == "interrupted"
    resumed = train(resume="@last", runs_dir=tmp_path / "stopped")
    assert_identical(resumed, whole)
    ours, theirs = (run.read_checkpoint("best")[0] for run in (resumed, whole))
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}


def _stop_at(purpose: str, config: Any, directory: Path) -> Run:
    from gymnasium_solver.train.judge import EpisodeJudge

    evaluate = EpisodeJudge.evaluate

    def stopping(judge: EpisodeJudge, actor: Any, wanted: str, *rest: Any) -> Any:
        if wanted == purpose:
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(judge, actor, wanted, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpisodeJudge, "evaluate", stopping)
        return train(config, runs_dir=directory, command=[])


def test_same_seed_same_run_other_seed_other_run(tmp_path: Path) -> None:
    runs = [
        train(load_config("CartPole-v1:ppo", {**SMALL, **PPO, "seed": seed}), runs_dir=tmp_path, command=[])
        for seed in (1, 1, 2)
    ]
    assert_identical(runs[0], runs[1])
    with pytest.raises(AssertionError):
        assert_identical(runs[0], runs[2])


@pytest.mark.parametrize("engine", ["gymnasium", "compiled"])
def test_kill_dash_nine_leaves_a_run_that_reads_and_resumes(engine: str, tmp_path: Path) -> None:
    settings = {**SMALL, **PPO, "max_env_steps": 20_000, "checkpoint_freq_epochs": 25, "engine": engine}
    config = load_config("CartPole-v1:ppo", settings)
    whole = train(config, runs_dir=tmp_path / "whole", command=[])
    command = [
        sys.executable,
        "-m",
        "gymnasium_solver",
        "train",
        "CartPole-v1:ppo",
        "-q",
        "--runs-dir",
        str(tmp_path / "k"),
    ]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        metrics = list((tmp_path / "k").glob("2*/metrics.csv"))
        if metrics and len(metrics[0].read_bytes().splitlines()) > 60:
            break
    process.kill()
    process.wait()
    killed = find_run("@last", tmp_path / "k")
    assert killed.status["status"] == "crashed"
    assert len(killed.metrics["train/cnt/epochs"]) >= 59
    assert_identical(train(resume="@last", runs_dir=tmp_path / "k"), whole)


def test_any_checkpoint_can_be_gone_on_from(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {**SMALL, **PPO})
    whole = train(config, runs_dir=tmp_path / "whole", command=[])
    again = train(config, runs_dir=tmp_path / "again", command=[])
    resumed = train(resume=f"{again.run_id}/epoch=18", overrides={"eval_episodes": 2}, runs_dir=tmp_path / "again")
    assert_identical(resumed, whole)
    assert train(resume=f"{again.run_id}/@best", overrides={"eval_episodes": 2}, runs_dir=tmp_path / "again")


def test_episodes_in_flight_do_not_reach_into_environments_that_begin_anew(tmp_path: Path) -> None:
    """`best` does not say where its environments stood, so what it knows of their episodes is of no use."""
    run = train(load_config("Pendulum-v1:ppo", small("Pendulum-v1:ppo")), runs_dir=tmp_path, command=[])
    assert run.read_checkpoint("best")[0]["return_carry"].any()
    config = build_config(run.config, run.run_id)
    loop = Loop(config, describe(config), None)
    loop.restore(run, "best")
    assert not loop.learner.state.return_carry.any()


def test_a_longer_budget_goes_on_as_if_it_had_been_given_at_once(tmp_path: Path) -> None:
    """The replay of a short training is short; that of a longer one holds what was in it."""
    constant = {"policy_lr": 1e-3, "epsilon": 0.2, "priority_beta": 0.5, "prioritized_replay": True}
    fields = {**SMALL, **REPLAY, **constant, "buffer_size": 100_000}
    long = train(load_config("FrozenLake-v1:dqn", fields), runs_dir=tmp_path / "long", command=[])
    config = load_config("FrozenLake-v1:dqn", fields | {"max_env_steps": 300})
    short = train(config, runs_dir=tmp_path / "short", command=[])
    longer = train(resume=short.run_id, overrides={"max_env_steps": 1000}, runs_dir=tmp_path / "short")
    ours, theirs = long.read_checkpoint("last")[0], longer.read_checkpoint("last")[0]
    assert ours["replay/obs"].shape[2:] == (1,) and len(ours["replay/obs"]) > 500
    assert {k: v.tobytes() for k, v in ours.items()} == {k: v.tobytes() for k, v in theirs.items()}
    with pytest.raises(ConfigError, match="max_env_steps: with this many the replay has"):
        train(resume=short.run_id, overrides={"max_env_steps": 110}, runs_dir=tmp_path / "short")


def test_what_the_tensors_depend_on_cannot_change_in_mid_run(tmp_path: Path) -> None:
    run = train(load_config("CartPole-v1:ppo", {**SMALL, **PPO}), runs_dir=tmp_path, command=[])
    fixed = ({"n_envs": 4}, {"n_steps": 8}, {"hidden_dims": [9]}, {"algo_id": "a2c"}, {"activation": "elu"})
    for change in (*fixed, {"vectorization": "async"}, {"log_std_init": -1.0}):
        with pytest.raises(ConfigError, match="cannot change in mid-run") as refused:
            train(resume=run.run_id, overrides={"max_env_steps": 2000, **change}, runs_dir=tmp_path)
        assert "--init-from" in str(refused.value)


def test_a_transferred_start_survives_a_kill_before_the_first_checkpoint(tmp_path: Path) -> None:
    source = train(load_config("CartPole-v1:ppo", {**SMALL, **PPO}), runs_dir=tmp_path / "source", command=[])
    config = load_config("CartPole-v1:ppo", {**SMALL, **PPO, "seed": 7})
    origin = str(source.path) + "/@best"
    whole = train(config, init_from=origin, runs_dir=tmp_path / "whole", command=[])
    with pytest.raises(Killed):
        train(config, init_from=origin, runs_dir=tmp_path / "killed", command=[], on_event=killed_at(3))
    assert_identical(train(resume="@last", runs_dir=tmp_path / "killed"), whole)


def test_a_finished_run_goes_on_only_with_more_steps(tmp_path: Path) -> None:
    run = train(load_config("CartPole-v1:ppo", {**SMALL, **PPO}), runs_dir=tmp_path, command=[])
    with pytest.raises(ConfigError, match="complete"):
        train(resume=run.run_id, runs_dir=tmp_path)
    longer = train(resume=run.run_id, overrides={"max_env_steps": 1500}, runs_dir=tmp_path)
    assert longer.run_id == run.run_id
    assert longer.metrics.last("train/cnt/env_steps") >= 1500
    assert longer.config["max_env_steps"] == 1500, "config.json tells what was trained"


def test_what_a_resume_changes_is_on_record(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", small("CartPole-v1:ppo") | {"gamma": 0.99})
    run = train(config, runs_dir=tmp_path, command=["gsolve", "train", "CartPole-v1:ppo"], report=True)
    assert "Changed on the way" not in run.report_path.read_text()
    steps = int(run.metrics.last("train/cnt/env_steps") or 0)
    changes = {"gamma": 0.5, "max_env_steps": 1200}
    resumed = train(resume=run.run_id, overrides=changes, runs_dir=tmp_path, report=True)
    report = resumed.report_path.read_text()
    for change in ("gamma=0.5 (was 0.99)", "max_env_steps=1200 (was 1000)"):
        assert any(line.endswith(f"INFO from {steps} env steps on: {change}") for line in resumed.log_lines())
        assert f"- from {steps} env steps on: {change}" in report
    assert f"gsolve train CartPole-v1:ppo  # reproduce the first {steps} env steps, then the changes" in report
