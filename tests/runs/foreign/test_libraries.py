"""A run of each library, imported: what the values become, what is recovered, and what is said to be missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gymnasium_solver.metrics.catalogue import is_catalogued
from gymnasium_solver.runs.foreign import import_run, names, read_foreign
from gymnasium_solver.runs.layout import read_json
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import write_report
from tests.runs.foreign.event_writer import event, scalar, text

REWARD, EVALUATED = "train/roll/ep_rew_mean", "val/roll/ep_rew_mean"


def column(run: Run, name: str) -> dict[float, float]:
    return dict(zip(*(x.tolist() for x in run.metrics.series(name)), strict=True))


def test_every_name_that_is_mapped_to_is_catalogued() -> None:
    tables = [*names.LIBRARIES.values(), *names.BY_ALGORITHM.values(), names.COMMON]
    for table in tables:
        for name in table:
            for to in names._as_targets(table[name]):
                assert to.kind != "values" or is_catalogued(to.name), f"{name} → {to.name}"
    for expected in names.EXPECTED.values():
        assert all(map(is_catalogued, expected))


def test_stable_baselines3(sb3: Path, runs_dir: Path) -> None:
    run = import_run(sb3, runs_dir)
    source = read_json(run.path / "source.json")
    assert source["library"] == "sb3"
    assert run.metrics.skipped_lines == 0
    assert column(run, REWARD) == {512.0 * update: 20.0 * update for update in range(1, 9)}
    assert column(run, "train/metrics/kl_divergence")[1024.0] == 0.02
    assert column(run, "train/loss/entropy")[1024.0] == -0.6
    assert column(run, "train/metrics/entropy")[1024.0] == 0.6
    assert column(run, "foreign/my/own")[4096.0] == 8.0
    # 80 passes over 512 rows in minibatches of 64
    assert column(run, "train/cnt/updates")[4096.0] == 80 * 8
    assert run.metrics["train/cnt/env_steps"].tolist() == sorted(run.metrics["train/cnt/env_steps"].tolist())
    summary = run.summary()
    assert (summary["env_id"], summary["algo_id"], summary["seed"]) == ("CartPole-v1", "ppo", 1)
    assert (summary["status"], summary["env_steps"], summary["threshold"]) == ("missed", 4096, 475.0)
    config = run.config
    assert (config["n_envs"], config["n_steps"], config["batch_size"], config["n_epochs"]) == (2, 256, 64, 10)
    assert (config["clip_range"], config["hidden_dims"]) == (0.3, [64, 64])
    assert config["policy_lr"] == {"start": 0.001, "end": 0.0, "schedule": "linear"}  # pickled; seen in its curve
    assert "use_sde" not in config
    assert source["hyperparameters"]["gamma"] == 0.99
    assert source["unmapped"] == ["my/own"]
    assert source["missing"] == [f"metrics: {x}" for x in (
        EVALUATED, "train/loss/policy", "train/loss/value", "train/metrics/grad_norm/all",
        "train/metrics/clip_fraction",
    )]  # fmt: skip


def test_nan_before_the_first_update_is_absence(sb3: Path, runs_dir: Path) -> None:
    run = import_run(sb3, runs_dir)
    assert not np.isnan(
        run.metrics["train/metrics/explained_variance"][run.metrics.recorded("train/metrics/explained_variance")]
    ).any()


def test_monitors_are_merged_by_time(sb3: Path, runs_dir: Path) -> None:
    for name in ("progress.csv", "model.zip"):
        (sb3 / name).unlink()
    run = import_run(sb3, runs_dir)
    assert column(run, "train/roll/ep_rew_last") == {10.0: 10.0, 30.0: 20.0, 60.0: 30.0}
    assert column(run, REWARD) == {10.0: 10.0, 30.0: 15.0, 60.0: 20.0}
    assert column(run, "train/cnt/episodes") == {10.0: 1.0, 30.0: 2.0, 60.0: 3.0}
    assert run.config["env_id"] == "CartPole-v1"


def test_a_model_alone_gives_its_settings(sb3: Path, runs_dir: Path) -> None:
    run = import_run(sb3 / "model.zip", runs_dir)
    assert run.config["gamma"] == 0.99
    assert len(run.metrics) == 1
    assert "metrics: train/roll/ep_rew_mean" in read_json(run.path / "source.json")["missing"]


def test_settings_of_the_zoo(sb3: Path, runs_dir: Path) -> None:
    (sb3 / "model.zip").unlink()
    (sb3 / "CartPole-v1").mkdir()
    (sb3 / "CartPole-v1" / "args.yml").write_text(
        "!!python/object/apply:collections.OrderedDict\n- - - algo\n    - ppo\n  - - env\n    - CartPole-v1\n"
    )
    (sb3 / "CartPole-v1" / "config.yml").write_text(
        "!!python/object/apply:collections.OrderedDict\n- - - n_envs\n    - 8\n  - - gamma\n    - 0.98\n"
    )
    config = import_run(sb3, runs_dir).config
    assert (config["env_id"], config["algo_id"], config["n_envs"], config["gamma"]) == ("CartPole-v1", "ppo", 8, 0.98)


def test_evaluations(sb3: Path, runs_dir: Path) -> None:
    np.savez(sb3 / "evaluations.npz", timesteps=[500, 1000], results=[[1, 3], [5, 5]], ep_lengths=[[1, 1], [2, 4]])
    run = import_run(sb3, runs_dir)
    assert column(run, EVALUATED) == {500.0: 2.0, 1000.0: 5.0}
    assert column(run, "val/roll/ep_rew_std") == {500.0: 1.0, 1000.0: 0.0}
    assert column(run, "val/roll/ep_len_mean") == {500.0: 1.0, 1000.0: 3.0}


def test_dqn_of_stable_baselines3(tmp_path: Path, runs_dir: Path) -> None:
    rows = [f"{100 * i},{i},{0.5},{1.0 - i / 10},{25 * i}" for i in range(1, 6)]
    header = "time/total_timesteps,rollout/ep_rew_mean,train/loss,rollout/exploration_rate,train/n_updates"
    (tmp_path / "progress.csv").write_text("\n".join([header, *rows]) + "\n")
    run = import_run(tmp_path / "progress.csv", runs_dir)
    assert run.config["algo_id"] == "dqn"
    assert run.config["update_to_data"] == 0.25  # 25 gradient steps in 100
    assert column(run, "train/loss/value")[100.0] == 0.5
    assert column(run, "train/hp/epsilon")[500.0] == 0.5


def test_cleanrl(cleanrl: Callable[..., Path], runs_dir: Path) -> None:
    returns = [float(i) for i in range(1, 251)]
    run = import_run(cleanrl(returns), runs_dir)
    assert read_json(run.path / "source.json")["library"] == "cleanrl"
    means = column(run, REWARD)
    assert means[4.0] == 1.0
    assert means[400.0] == pytest.approx(50.5)  # episodes 1 to 100
    assert means[1000.0] == pytest.approx(200.5)  # episodes 151 to 250
    assert column(run, "train/roll/ep_rew_last")[1000.0] == 250.0
    assert column(run, "train/cnt/episodes")[1000.0] == 250.0
    assert column(run, "train/loss/value") == {512.0: 3.0}  # it logs half of the squared error
    assert column(run, "train/loss/entropy") == {512.0: -0.5}
    assert column(run, "foreign/losses/old_approx_kl") == {512.0: 0.125}
    config = run.config
    assert config["policy_lr"] == {"start": 0.00025, "end": 0.0, "schedule": "linear"}
    assert (config["batch_size"], config["n_epochs"], config["clip_range_vf"]) == (128, 4, 0.2)
    assert (config["env_id"], config["algo_id"], config["max_env_steps"]) == ("CartPole-v1", "ppo", 2000)
    assert "target_kl" not in config


RESULT = {
    "training_iteration": 1,
    "num_env_steps_sampled_lifetime": 4000,
    "env_runners": {"episode_return_mean": float("nan"), "episode_len_mean": 20.0},
    "learners": {"default_policy": {"mean_kl_loss": 0.01, "entropy": 0.6, "vf_explained_var": 0.3, "vf_loss": 8.0}},
    "config": {"lr": 0.0003, "env": "CartPole-v1"},
    "hostname": "somewhere",
    "time_total_s": 3.0,
}


def test_rllib_results(tmp_path: Path, runs_dir: Path) -> None:
    trial = tmp_path / "PPO_CartPole-v1_3f2a1_00000_0_2026"
    trial.mkdir()
    rows = [RESULT, {**RESULT, "num_env_steps_sampled_lifetime": 8000, "env_runners": {"episode_return_mean": 42.0}}]
    (trial / "result.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parameters = {"env": "CartPole-v1", "lr": 0.0003, "gamma": 0.99, "train_batch_size": 4000, "num_env_runners": 2}
    parameters |= {"num_envs_per_env_runner": 5, "minibatch_size": 128, "num_epochs": 30, "clip_param": 0.3}
    (trial / "params.json").write_text(json.dumps(parameters | {"model": {"fcnet_hiddens": [256, 256]}}))
    run = import_run(tmp_path, runs_dir)
    assert read_json(run.path / "source.json")["library"] == "rllib"
    assert column(run, REWARD) == {8000.0: 42.0}  # NaN: no episode had ended
    assert column(run, "train/metrics/kl_divergence")[4000.0] == 0.01
    config = run.config
    assert (config["algo_id"], config["env_id"], config["policy_lr"]) == ("ppo", "CartPole-v1", 0.0003)
    assert (config["n_envs"], config["n_steps"], config["batch_size"]) == (10, 400, 128)
    assert (config["hidden_dims"], config["clip_range"]) == ([256, 256], 0.3)


def test_rllib_of_old(tmp_path: Path, runs_dir: Path) -> None:
    stats = "info/learner/default_policy/learner_stats"
    (tmp_path / "progress.csv").write_text(
        f"episode_reward_mean,timesteps_total,training_iteration,date,{stats}/kl,{stats}/cur_lr,config/gamma\n"
        '20.5,4000,1,"2026-01-01, noon",0.01,5e-05,0.9\n'
    )
    (tmp_path / "error.txt").write_text("Traceback\nRuntimeError: out of memory\n")
    run = import_run(tmp_path, runs_dir)
    assert column(run, REWARD) == {4000.0: 20.5}
    assert column(run, "train/hp/policy_lr") == {4000.0: 5e-05}
    assert run.config["gamma"] == 0.9
    assert (run.status["status"], run.status["error"]) == ("failed", "RuntimeError: out of memory")


def test_tianshou_updates_are_put_at_environment_steps(tmp_path: Path, runs_dir: Path) -> None:
    records = []
    for epoch in range(4):
        now, steps = 1000.0 + 10 * epoch, 500 * epoch
        values = (("train/env_step", steps), ("train/reward", epoch), ("test/reward", 2 * epoch))
        records += [event(steps, scalar(name, value), time=now) for name, value in values]
        records.append(event(epoch + 1, scalar("update/loss/clip", 0.5), time=now))
    records.append(
        event(0, text("args", "Namespace(task='CartPole-v1', lr=0.001, eps_clip=0.2, hidden_sizes=[64, 32])"))
    )
    (tmp_path / "events.out.tfevents.1").write_bytes(b"".join(records))
    run = import_run(tmp_path, runs_dir)
    assert read_json(run.path / "source.json")["library"] == "tianshou"
    assert column(run, "train/loss/policy") == {0.0: 0.5, 500.0: 0.5, 1000.0: 0.5, 1500.0: 0.5}
    assert column(run, EVALUATED)[1500.0] == 6.0
    assert (run.config["policy_lr"], run.config["hidden_dims"], run.config["algo_id"]) == (0.001, [64, 32], "ppo")


def test_wandb(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "history.csv").write_text(
        "_step,_timestamp,_runtime,global_step,charts/episodic_return,losses/approx_kl\n"
        "0,1700000000,1,100,10,\n1,1700000001,2,200,,0.02\n"
    )
    (tmp_path / "config.yaml").write_text(
        "wandb_version: 1\nenv_id:\n  desc: null\n  value: CartPole-v1\nlearning_rate:\n  value: 0.0003\n"
        "exp_name:\n  value: ppo\n"
    )
    run = import_run(tmp_path, runs_dir)
    source = read_json(run.path / "source.json")
    assert (source["library"], source["format"]) == ("cleanrl", "wandb")
    assert column(run, "train/metrics/kl_divergence") == {200.0: 0.02}
    assert (run.config["env_id"], run.config["policy_lr"]) == ("CartPole-v1", 0.0003)
    assert run.status["started_at"].startswith("2023-11-14")


def test_wandb_download_of_the_page(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "export.csv").write_text(
        '"Step","sunny-sea-1 - reward","sunny-sea-1 - reward__MIN","sunny-sea-1 - reward__MAX"\n"5","1.5","1","2"\n'
    )
    run = import_run(tmp_path / "export.csv", runs_dir)
    assert column(run, REWARD) == {5.0: 1.5}
    assert not [name for name in run.metrics if "__M" in name]


def test_wandb_history_has_nan_where_it_has_nothing(tmp_path: Path, runs_dir: Path) -> None:
    rows = [{"_step": 1, "approx_kl": float("nan")}, {"_step": 2, "approx_kl": 0.5}, {"_step": 3, "approx_kl": "NaN"}]
    (tmp_path / "history.json").write_text(json.dumps(rows))
    run = import_run(tmp_path, runs_dir)
    name = "train/metrics/kl_divergence"
    assert dict(zip(run.metrics["train/cnt/env_steps"], run.metrics.recorded(name), strict=True)) == {2: True, 3: True}
    assert np.isnan(run.metrics.last(name))  # as text it was logged so


@pytest.mark.parametrize(
    "content",
    [
        '[{"step": 1, "reward": 2.0}, {"step": 2, "reward": 3.0}]',
        '{"step": 1, "reward": 2.0}\n{"step": 2, "reward": 3.0}\n',
        '{"step": [1, 2], "reward": [2.0, 3.0]}',
        '{"config": {"gamma": 0.9}, "history": [{"step": 1, "reward": 2.0}, {"step": 2, "reward": 3.0}]}',
        '{"step": {"0": 1, "1": 2}, "reward": {"0": 2.0, "1": 3.0}}',
    ],
)
def test_forms_of_json(tmp_path: Path, runs_dir: Path, content: str) -> None:
    (tmp_path / "log.json").write_text(content)
    assert column(import_run(tmp_path / "log.json", runs_dir), REWARD) == {1.0: 2.0, 2.0: 3.0}


def test_plain_csv_with_a_mapping(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "mine.csv").write_text("when;score_avg;other\n10;1.5;7\n20;2.5;8\n")
    mapping = {REWARD: "score_avg", "train/cnt/env_steps": "when"}
    run = import_run(tmp_path / "mine.csv", runs_dir, mapping=mapping, env_id="CartPole-v1", algo_id="ppo")
    assert column(run, REWARD) == {10.0: 1.5, 20.0: 2.5}
    assert column(run, "foreign/other") == {10.0: 7.0, 20.0: 8.0}
    assert (run.config["env_id"], run.config["algo_id"]) == ("CartPole-v1", "ppo")


def test_without_steps_the_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("loss\n1\n2\n")
    foreign = read_foreign(tmp_path / "log.csv")
    assert foreign.columns["train/loss/total"].steps.tolist() == [1.0, 2.0]
    assert any("number of the row" in note for note in foreign.notes)


def test_a_second_import_refreshes_the_first(sb3: Path, runs_dir: Path) -> None:
    first = import_run(sb3, runs_dir)
    with (sb3 / "progress.csv").open("a") as file:
        file.write("9,180,4608,180,,,,,,\n")
    second = import_run(sb3, runs_dir)
    assert first.run_id == second.run_id
    assert len(list(runs_dir.iterdir())) == 1
    assert second.summary()["env_steps"] == 4608


def test_a_run_that_still_grows_is_running(sb3: Path, runs_dir: Path) -> None:
    lines = (sb3 / "progress.csv").read_text().splitlines()
    (sb3 / "progress.csv").write_text("\n".join(lines[:3]) + "\n")
    assert import_run(sb3, runs_dir).status["status"] == "running"  # 1024 of 4096 steps, written just now


def test_the_report_copes_with_foreign_names(sb3: Path, runs_dir: Path) -> None:
    page = write_report(import_run(sb3, runs_dir).path).read_text()
    assert page.startswith("# CartPole-v1 · ppo · seed 1: missed")


def test_steps_out_of_order_and_twice(tmp_path: Path, runs_dir: Path) -> None:
    (tmp_path / "log.csv").write_text("step,reward,kl\n30,3,\n10,1,0.1\n20,2,\n10,5,\n")
    run = import_run(tmp_path / "log.csv", runs_dir)
    assert column(run, REWARD) == {10.0: 5.0, 20.0: 2.0, 30.0: 3.0}  # the last value of a step counts
    assert column(run, "train/metrics/kl_divergence") == {10.0: 0.1}


def test_rows_across_the_pieces_a_table_is_written_in(tmp_path: Path, runs_dir: Path) -> None:
    lines = "".join(f"{step},{step / 4},{'' if step % 3 else step}\n" for step in range(1, 45_001))
    (tmp_path / "log.csv").write_text("step,reward,other\n" + lines)
    run = import_run(tmp_path / "log.csv", runs_dir)
    steps, rewards = run.metrics.series(REWARD)
    np.testing.assert_array_equal(steps, np.arange(1, 45_001))
    np.testing.assert_array_equal(rewards, steps / 4)
    np.testing.assert_array_equal(run.metrics.series("foreign/other")[0], np.arange(3, 45_001, 3))
