"""Long work in processes of their own: found again, stopped, and honest about how they ended."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest

from gymnasium_solver.api.jobs import Job, find_job, list_jobs, start_job
from tests.mcp.talking import ask, make_server

pytestmark = pytest.mark.integration


def ended(job: Job) -> Job:
    deadline = time.monotonic() + 20
    while job.is_running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not job.is_running
    return job


@pytest.fixture
def sleeper(runs_dir: Path) -> Job:
    """A process that runs until it is interrupted."""
    job = start_job(runs_dir, "sleep", "http.server", ["0", "--bind", "127.0.0.1"])
    yield job
    job.stop()


def test_a_job_that_ends_with_a_document_has_completed(runs_dir: Path, tmp_path: Path) -> None:
    document = {"verdict": "better", "values": list(range(1000))}
    (tmp_path / "in.json").write_text(json.dumps(document))
    job = ended(start_job(runs_dir, "echo", "json.tool", [str(tmp_path / "in.json")]))
    answer = ask(make_server(runs_dir), "get_job_status", job_id=job.job_id).document
    assert (answer["status"], answer["kind"], answer["error"]) == ("completed", "echo", None)
    assert answer["result"]["verdict"] == "better"
    assert len(answer["result"]["values"]) < 100 and "values: 60 of 1000" in answer["truncated"][0]


def test_what_an_environment_prints_before_the_document_does_no_harm(runs_dir: Path, tmp_path: Path) -> None:
    job = ended(start_job(runs_dir, "echo", "json.tool", [str(tmp_path / "missing.json")]))
    (job.path / "stdout").write_text('pygame says hello\n{\n  "verdict": "fine"\n}\n')
    assert job.result() == {"verdict": "fine"}


def test_a_job_that_fails_says_its_last_word(runs_dir: Path) -> None:
    job = ended(start_job(runs_dir, "solve", "gymnasium_solver", ["solve", "CartPol-v1", "--json"]))
    answer = ask(make_server(runs_dir), "get_job_status", job_id=job.job_id).document
    assert answer["status"] == "failed"
    assert answer["error"] == "see quoted: error" and "CartPole-v1" in answer["quoted"]["error"]


def test_a_killed_job_has_failed_not_completed(runs_dir: Path, sleeper: Job) -> None:
    os.kill(sleeper.record["pid"], 9)
    assert ended(sleeper).status() == "failed"


def test_a_job_outlives_its_server_and_is_found_by_the_next(runs_dir: Path, sleeper: Job) -> None:
    jobs = ask(make_server(runs_dir), "list_jobs").document["jobs"]
    assert [(job["job_id"], job["status"]) for job in jobs] == [(sleeper.job_id, "running")]
    answer = ask(make_server(runs_dir), "get_job_status", job_id=sleeper.job_id[:-1], wait_seconds=1.2)
    assert answer.document["status"] == "running"
    assert answer.progress, "waiting reports progress"
    assert [done for done, _, _ in answer.progress] == sorted({done for done, _, _ in answer.progress})


def test_a_job_is_stopped_gently_and_stopping_twice_is_fine(runs_dir: Path, sleeper: Job) -> None:
    server = make_server(runs_dir)
    assert ask(server, "stop_job", job_id=sleeper.job_id).document["status"] == "stopped"
    assert ask(server, "stop_job", job_id=sleeper.job_id).document["status"] == "stopped"


def test_a_process_with_the_same_number_is_not_the_job(runs_dir: Path, sleeper: Job) -> None:
    record = {**sleeper.record, "pid": os.getpid(), "process": "another-boot/1"}
    other = runs_dir / ".jobs" / "20200101-000000-old-0000"
    other.mkdir()
    (other / "job.json").write_text(json.dumps(record))
    assert not Job(other).is_running
    assert not Job(other).stop()


def test_a_job_of_another_machine_or_with_half_a_record(runs_dir: Path) -> None:
    for name, record in {
        "2020-far": {"pid": 1, "process": "x", "host": "elsewhere", "kind": "solve"},
        "2021-half": {"pid": os.getpid(), "host": socket.gethostname()},
    }.items():
        (runs_dir / ".jobs" / name).mkdir(parents=True)
        (runs_dir / ".jobs" / name / "job.json").write_text(json.dumps(record))
    server = make_server(runs_dir)
    assert [job["status"] for job in ask(server, "list_jobs").document["jobs"]] == ["running", "unknown (on elsewhere)"]
    far = ask(server, "get_job_status", job_id="2020-far").document
    assert far["error"] is None and "elsewhere" in far["next_call"]
    (runs_dir / ".jobs" / "2020-far" / "stdout").write_text('{"verdict": "done"}')
    assert ask(server, "get_job_status", job_id="2020-far").document["status"] == "completed"


def test_unknown_and_ambiguous_jobs(runs_dir: Path) -> None:
    server = make_server(runs_dir)
    assert "list_jobs" in str(ask(server, "get_job_status", job_id="nope").error)
    assert "list_jobs" in str(ask(server, "get_job_status", job_id="../x").error)
    for name in ("2020-a", "2020-b"):
        (runs_dir / ".jobs" / name).mkdir(parents=True)
        (runs_dir / ".jobs" / name / "job.json").write_text("{}")
    assert "beginning of 2 jobs" in str(ask(server, "stop_job", job_id="2020").error)
    assert find_job(runs_dir, "2020-a").status() == "failed"
    assert [job.job_id for job in list_jobs(runs_dir)] == ["2020-b", "2020-a"]


@pytest.mark.slow
def test_a_change_is_tested_over_seeds(runs_dir: Path) -> None:
    server = make_server(runs_dir)
    started = ask(
        server,
        "apply_and_verify",
        config_id="CartPole-v1:ppo",
        overrides={"policy_lr": 1e-9, "max_env_steps": 8_000},
        seeds=4,
        budget="50s",
    )
    assert started.error is None, started.error
    job = find_job(runs_dir, started.document["job_id"])
    try:
        deadline = time.monotonic() + 55
        while job.is_running and time.monotonic() < deadline:
            time.sleep(0.2)
        answer = ask(server, "get_job_status", job_id=job.job_id).document
    finally:
        job.stop()
    assert answer["status"] == "completed", answer
    assert answer["result"]["kind"] == "verify" and answer["result"]["set"]["policy_lr"] == 1e-9
    assert answer["result"]["verdict"]
    assert ask(server, "list_runs", group=answer["result"]["experiment"]).document["total"] == 8
