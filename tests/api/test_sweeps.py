"""A sweep is read from its directory as it is, while it runs and afterwards, and nothing is written there."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from gymnasium_solver import api
from gymnasium_solver.api.groups import Group, find
from gymnasium_solver.errors import SolverError
from tests.api.made_sweep import add_trial, begin, close, conclude, make_sweep, nobody
from tests.made_runs import HEALTHY, write_run

pytestmark = pytest.mark.integration

optuna = pytest.importorskip("optuna", reason="the [search] extra is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sweep(tmp_path_factory.mktemp("made"), runs=["one", "two"])


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "own"))


def nobody_trains() -> bool:
    return False


def files_in(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_finished_sweep_in_the_form_of_an_experiment(path: Path) -> None:
    before = files_in(path)
    group = Group(path)
    record = group.record
    assert (record["kind"], record["env_id"], record["algo_id"]) == ("sweep", "CartPole-v1", "ppo")
    assert record["asked"] == {"source": "CartPole-v1:ppo", "overrides": ["max_env_steps=50000"], "seeds": 2}
    assert record["counts"] == {"complete": 18, "pruned": 3, "failed": 1}
    best = record["best"]
    assert (record["winner"], best["value"], best["set"]) == ("trial 7", 20e3, {"policy_lr": 2e-3, "n_epochs": 4})
    assert "policy_lr: 0.002" in best["yaml"] and best["command"].endswith("-s policy_lr=0.002 -s n_epochs=4")
    assert record["base"]["value"] == 60e3
    assert list(record["importance"]) == ["policy_lr", "n_epochs"]
    assert record["confirmation"]["verdict"] == "better"
    assert record["confirmation"]["sentence"] in record["verdict"]
    assert record["trainings"] == 2 + 10
    assert record["started_at"].endswith("Z") and 0 < record["duration_s"] < 100
    assert group.standing(nobody_trains) == "completed"
    trials = group.trials()
    assert [trial["number"] for trial in trials] == list(range(22))
    assert (trials[20]["outcome"], trials[20]["error"], trials[20]["value"]) == ("failed", "it broke", None)
    json.dumps([record, trials], allow_nan=False)
    assert files_in(path) == before


def test_a_sweep_at_work_is_read_along(tmp_path: Path) -> None:
    study = begin(tmp_path)
    group = Group(study.directory)
    assert group.record["counts"] == {} and group.record["best"] is None
    add_trial(study, 60e3, changed={})
    trial = add_trial(study, None, outcome="running")
    assert group.record["counts"] == {"complete": 1, "running": 1}
    assert group.record["importance"] == {}
    assert (group.leader, group.standing(nobody_trains)) == (os.getpid(), "running")
    study.optuna.tell(trial, 10e3)
    conclude(study)
    assert group.standing(nobody_trains) == "completed"
    assert study.optuna.trials[1].state.name == "COMPLETE"  # it is as it was left
    add_trial(study, None, outcome="running")  # and goes on
    assert group.standing(nobody_trains) == "running"
    close(study)


def test_a_sweep_whose_process_is_gone(tmp_path: Path) -> None:
    study = begin(tmp_path)
    add_trial(study, 60e3, by=nobody())
    add_trial(study, None, outcome="running", by=nobody())
    close(study)
    group = Group(study.directory)
    assert (group.leader, group.standing(nobody_trains)) == (None, "crashed")
    assert group.standing(lambda: True) == "running"
    assert study.optuna.trials[1].state.name == "RUNNING"  # who resumes it says what becomes of it
    with pytest.raises(SolverError, match="gsolve sweep --resume own"):
        group.write_report()
    assert not (group.path / "report.md").exists()


def test_a_sweep_on_another_machine(tmp_path: Path) -> None:
    study = begin(tmp_path)
    add_trial(study, None, outcome="running", by={**nobody(), "host": "elsewhere"})
    assert Group(study.directory).standing(nobody_trains) == "unknown (on elsewhere)"
    close(study)


def test_a_sweep_in_which_nothing_could_be_trained(tmp_path: Path) -> None:
    study = begin(tmp_path)
    for _ in range(3):
        add_trial(study, None, outcome="failed", error="no such wrapper")
    close(study)
    record = Group(study.directory).record
    assert (record["status"], record["error"], record["verdict"]) == (
        *("failed", "no such wrapper", "No trial was completed."),
    )


def test_what_cannot_be_read_says_so(tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("empty", "rubbish", "foreign"):
        (tmp_path / name).mkdir()
    (tmp_path / "empty" / "study.db").touch()
    (tmp_path / "rubbish" / "study.db").write_bytes(b"no database\n" * 1000)
    optuna.create_study(study_name="theirs", storage=f"sqlite:///{tmp_path / 'foreign' / 'study.db'}")
    for name in ("empty", "rubbish", "foreign"):
        record = Group(tmp_path / name).record
        assert (record["kind"], record["status"], name in record["error"]) == ("sweep", "unknown", True)
        assert Group(tmp_path / name).trials() == []
    assert "not created by gsolve sweep" in record["error"]
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "[search] extra" in Group(path).record["error"]


def test_attributes_of_another_kind_than_ours_are_no_crash(path: Path) -> None:
    with sqlite3.connect(path / "study.db") as connection:
        connection.execute("UPDATE trial_user_attributes SET value_json = '3' WHERE key IN ('owner', 'set')")
    connection.close()
    assert "error" in Group(path).record


@pytest.mark.parametrize("name", ["with space", "per%20cent", "quest?ion=1&mode=rw", "ha#sh", "ünï"])
def test_names_that_mean_something_in_an_address(tmp_path: Path, path: Path, name: str) -> None:
    path.rename(tmp_path / name)
    assert Group(tmp_path / name).record["counts"]["complete"] == 18  # moved, too


def test_reading_runs_no_code_of_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    run = write_run(tmp_path, HEALTHY, max_env_steps=50_000)
    study = begin(tmp_path, ref="trap:Env:ppo")
    add_trial(study, 20e3, runs=[run.run_id])
    conclude(study)
    close(study)
    record = Group(study.directory).record
    assert record["best"]["yaml"] == "env_id: CartPole-v1\n"  # as the sweep has written it
    assert record["best"]["command"] is None
    assert record["best"]["value"] == 20e3


def test_a_configuration_that_is_gone_with_all_its_runs(tmp_path: Path) -> None:
    study = begin(tmp_path, ref="Nothing-v9:ppo")
    add_trial(study, 20e3, runs=["../../outside"])
    close(study)
    assert "is not known here any more" in Group(study.directory).record["error"]


def test_a_sweep_is_a_group_of_its_runs(tmp_path: Path, path: Path) -> None:
    runs = [write_run(tmp_path, HEALTHY, seed=seed, policy_lr=lr) for lr in (1e-3, 2e-3) for seed in (1, 2)]
    for run in runs:
        status = json.loads((run.path / "status.json").read_text())
        (run.path / "status.json").write_text(json.dumps({**status, "group": "own"}))
    found = find("own", tmp_path)
    assert isinstance(found, Group)
    assert {run.run_id for run in found.runs()} == {run.run_id for run in runs}
    status = api.status("own", runs_dir=tmp_path)
    assert (status["status"], status["count"], len(status["seeds"])) == ("completed", 4, 4)
    document = api.compare("own", runs_dir=tmp_path)
    assert len(document["sides"]) == 2
    assert any("own chose among these by some of their seeds" in caveat for caveat in document["caveats"])
