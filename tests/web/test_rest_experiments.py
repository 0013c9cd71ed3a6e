"""Experiments and sweeps in the REST API: the list, and one of them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient

from gymnasium_solver.processes import record_of
from tests.api.made_sweep import add_trial, begin, close, make_sweep, nobody
from tests.web.conftest import get

pytestmark = pytest.mark.integration


def test_experiments(client: TestClient, runs_dir: Path) -> None:
    assert get(client, "/experiments") == {"total": 0, "experiments": []}
    place = runs_dir / "20260102-030405-solve-ab12"
    place.mkdir()
    record = {"experiment": place.name, "kind": "solve", "status": "solved", "verdict": "it is", "attempts": [1]}
    (place / "experiment.json").write_text(json.dumps(record))
    (place / "trials.jsonl").write_text('{"seed": 1}\n{"cut')
    assert get(client, "/experiments")["experiments"][0]["started_at"] == "2026-01-02T03:04:05.000Z"
    found = get(client, f"/experiments/{place.name}")
    assert (found["attempts"], found["trials"]) == ([1], [{"seed": 1}])
    get(client, "/experiments/nope", 404)
    assert get(client, "/runs")["total"] == 3


def test_experiments_in_summer_time(client: TestClient, runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = runs_dir / "20260702-030405-solve-ab12"
    place.mkdir()
    (place / "experiment.json").write_text('{"kind": "solve"}')
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert get(client, "/experiments")["experiments"][0]["started_at"] == "2026-07-02T03:04:05.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_experiment_whose_process_is_gone(client: TestClient, runs_dir: Path) -> None:
    place = runs_dir / "20260102-030405-solve-ab12"
    place.mkdir()
    alive = record_of()
    for leader, status in ((alive, "running"), ({**alive, "process": "another"}, "crashed"), ({}, "crashed")):
        (place / "experiment.json").write_text(json.dumps({"kind": "solve", "status": "running", **leader}))
        assert get(client, f"/experiments/{place.name}")["status"] == status
        assert get(client, "/experiments")["experiments"][0]["status"] == status


def test_what_is_left_of_an_experiment_on_another_machine(client: TestClient, runs_dir: Path) -> None:
    place = runs_dir / "20260102-030405-solve-ab12"
    place.mkdir()
    (place / "experiment.json").write_text('{"kind": "solve", "status": "running", "pid": 1, "host": "elsewhere"}')
    assert get(client, "/experiments")["experiments"][0]["status"] == "unknown (on elsewhere)"


def test_a_sweep_is_an_experiment(client: TestClient, runs_dir: Path) -> None:
    pytest.importorskip("optuna", reason="the [search] extra is not installed")
    make_sweep(runs_dir, "by-name", runs=["one", "two"])
    (row,) = get(client, "/experiments")["experiments"]
    assert (row["experiment"], row["kind"], row["status"], row["winner"]) == (
        "by-name",
        "sweep",
        "completed",
        "trial 7",
    )
    assert (row["env_id"], row["trainings"], row["error"]) == ("CartPole-v1", 12, None)
    assert row["started_at"].endswith("Z") and "trial 7" in row["verdict"]
    assert "trials" not in row and "best" not in row  # the list is short
    found = get(client, "/experiments/by-name")
    assert (found["best"]["value"], len(found["trials"])) == (20e3, 22)
    assert [found["trials"][number]["outcome"] for number in (0, 5, 20)] == ["complete", "pruned", "failed"]
    assert found["trials"][7]["runs"] == ["one", "two"]
    assert sum(found["importance"].values()) == pytest.approx(1)
    assert get(client, "/runs", group="by-name")["is_experiment"] is True
    for group in ("none", "..", "x" * 300, ""):
        assert get(client, "/runs", group=group)["is_experiment"] is False


def test_a_sweep_while_it_runs_and_after_it_was_killed(client: TestClient, runs_dir: Path) -> None:
    pytest.importorskip("optuna", reason="the [search] extra is not installed")
    study = begin(runs_dir)
    add_trial(study, None, outcome="running")
    assert get(client, "/experiments/own")["status"] == "running"
    study.optuna.tell(0, 50e3)
    add_trial(study, None, outcome="running", by=nobody())
    found = get(client, "/experiments/own")
    assert found["counts"]["running"] == 1 and found["trials"][0]["value"] == 50e3
    close(study)
    study = begin(runs_dir, "killed")
    add_trial(study, None, outcome="running", by=nobody())
    close(study)
    assert get(client, "/experiments/killed")["status"] == "crashed"


def test_a_study_that_is_none_takes_no_list_down(client: TestClient, runs_dir: Path) -> None:
    pytest.importorskip("optuna", reason="the [search] extra is not installed")
    (runs_dir / "broken").mkdir()
    (runs_dir / "broken" / "study.db").write_bytes(b"no database\n" * 1000)
    (row,) = get(client, "/experiments")["experiments"]
    assert (row["status"], "cannot be used" in row["error"]) == ("unknown", True)
    assert get(client, "/experiments/broken")["trials"] == []
