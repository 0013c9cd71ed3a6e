"""`gsolve diagnose` as users call it: five sections, two files, and bad input that never ends in a stack trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gymnasium_solver.api.groups import Group
from gymnasium_solver.runs.layout import write_json
from gymnasium_solver.runs.reader import Run
from tests.cli.conftest import Result
from tests.cli.test_main import on_a_terminal
from tests.diagnose.test_inference import STILL
from tests.made_runs import FAILING, HEALTHY, write_run

GSolve = Callable[..., Result]
SECTIONS = ("Run summary", "Key metrics", "Diagnosed bottlenecks", "Recommendations", "Next steps")


@pytest.fixture
def failing(tmp_path: Path) -> Run:
    return write_run(tmp_path / "runs", FAILING | STILL, policy_lr=1e-6)


def test_the_five_sections_in_order(gsolve: GSolve, failing: Run) -> None:
    done = gsolve("diagnose", "@last")
    assert done.code == 0
    assert [line[3:] for line in done.out.splitlines() if line.startswith("## ")][:5] == list(SECTIONS)
    assert "learning-rate-too-low" in done.out
    assert "gsolve train CartPole-v1:ppo" in done.out


def test_two_files_are_written_into_the_run(gsolve: GSolve, failing: Run) -> None:
    gsolve("diagnose", failing.run_id)
    document = json.loads((failing.path / "diagnosis.json").read_text())
    assert document["bottlenecks"][0]["cause"] == "learning-rate-too-low"
    assert (failing.path / "diagnosis.md").read_text().startswith(f"# Diagnosis of {failing.run_id}")


def test_json_is_the_document_and_nothing_else(gsolve: GSolve, failing: Run) -> None:
    done = gsolve("diagnose", "@last", "--json")
    assert json.loads(done.out)["recommendations"][0]["set"]


def test_of_a_group_the_seed_that_did_worst(gsolve: GSolve, failing: Run) -> None:
    good = write_run(failing.path.parent, HEALTHY, solved=True, seed=7)
    Group.create(failing.path.parent, "20260101-120000-seeds-1a2b", [7, 42]).finish("completed")
    for run in (failing, good):
        write_json(run.path / "status.json", {**run.status, "group": "20260101-120000-seeds-1a2b"})
    done = gsolve("diagnose", "20260101-120000-seeds", "--json")
    assert json.loads(done.out)["summary"]["run_id"] == failing.run_id
    assert f"this is {failing.run_id}, the seed that did worst" in done.err
    done = gsolve("logs", "20260101-120000-seeds-1a2b")
    assert done.code == 3
    assert f"name one of them: {good.run_id}, {failing.run_id}" in done.err


def test_a_solved_run_has_nothing_to_mend(gsolve: GSolve, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", HEALTHY)
    done = gsolve("diagnose", "@last")
    assert "None found." in done.out
    assert "Nothing to change." in done.out


def test_a_run_in_progress_gets_an_outlook(gsolve: GSolve, tmp_path: Path) -> None:
    write_run(tmp_path / "runs", FAILING | STILL, status="running", policy_lr=1e-6, max_env_steps=200_000)
    outlook = json.loads(gsolve("diagnose", "@last", "--json").out)["outlook"]
    assert outlook["action"].startswith("stop and restart")
    assert outlook["probability_of_threshold"] < 0.3


def test_a_run_in_progress_that_rises_is_to_go_on(gsolve: GSolve, tmp_path: Path) -> None:
    rising = {name: values * 0.6 if "ep_rew" in name else values for name, values in HEALTHY.items()}
    write_run(tmp_path / "runs", rising, status="running", max_env_steps=200_000)
    outlook = json.loads(gsolve("diagnose", "@last", "--json").out)["outlook"]
    assert outlook["action"] == "continue"
    assert outlook["probability_of_threshold"] > 0.6


def test_a_directory_that_cannot_be_written_is_still_diagnosed(gsolve: GSolve, failing: Run) -> None:
    (failing.path / "diagnosis.json").mkdir()  # in the way
    done = gsolve("diagnose", "@last")
    assert done.code == 0 and "learning-rate-too-low" in done.out
    assert "warning: cannot write" in done.err


def test_an_earlier_run_that_solved_the_task_is_named(gsolve: GSolve, tmp_path: Path) -> None:
    earlier = write_run(tmp_path / "runs", HEALTHY, solved=True)
    write_run(tmp_path / "runs", FAILING | STILL, policy_lr=1e-6)
    assert f"{earlier.run_id} solved this task; it differs in policy_lr" in gsolve("diagnose", "@last").out


# On a terminal


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_verdict_cause_and_command_first(
    gsolve: GSolve, failing: Run, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    on_a_terminal(monkeypatch, columns)
    lines = gsolve("diagnose", "@last").out.splitlines()
    document = json.loads((failing.path / "diagnosis.json").read_text())
    assert len(lines) < 24 and not any(line.startswith(("#", "- ", "```")) for line in lines)
    command = document["recommendations"][0]["cli"]
    assert command in lines and len(command) > 80  # whole, so that it can be copied
    verdict, cause = (next(i for i, line in enumerate(lines) if word in line) for word in ("verdict", "too-low"))
    assert verdict < cause < lines.index(command)
    assert "train/loss/value" not in "".join(lines)
    assert all(len(line) <= columns for line in lines if line != command)


def test_a_terminal_shows_the_rest_when_asked(gsolve: GSolve, failing: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, 80)
    brief, full = gsolve("diagnose", "@last").out, gsolve("diagnose", "@last", "--full").out
    assert full.startswith(brief.partition("\nmore: ")[0])
    positions = [full.index(f"\n{title}\n") for title in SECTIONS[1:]]
    assert positions == sorted(positions)
    assert "loss/value" in full and "critical: set policy_lr" in full


# Bad input


def damage(run: Run, how: str) -> None:
    metrics = run.path / "metrics.csv"
    if how == "empty":
        metrics.write_text("")
    elif how == "missing":
        metrics.unlink()
    elif how == "header only":
        metrics.write_text(metrics.read_text().splitlines()[0] + "\n")
    elif how == "cut in mid-line":
        metrics.write_bytes(metrics.read_bytes()[:-700])
    elif how == "all NaN":
        header, *rows = metrics.read_text().splitlines()
        metrics.write_text("\n".join([header, *(",".join("nan" for _ in row.split(",")) for row in rows)]) + "\n")
    elif how == "foreign columns":
        metrics.write_text("step,something\n1,2\n2,3\n3,4\n")
    elif how == "rubbish":
        metrics.write_bytes(bytes(range(256)) * 40)
    elif how == "one update":
        metrics.write_text("\n".join(metrics.read_text().splitlines()[:2]) + "\n")
    elif how == "no config":
        (run.path / "config.json").write_text("{")
    elif how == "no status":
        (run.path / "status.json").unlink()
    elif how == "wrong types":
        (run.path / "config.json").write_text(
            json.dumps({"env_id": 3, "algo_id": ["ppo"], "policy_lr": "fast", "n_envs": None, "hidden_dims": "wide"})
        )
    elif how == "bad checkpoint":
        (run.path / "checkpoints" / "last.safetensors").write_bytes(b"\x80\x04cos\nsystem\n(S'false'\ntR.")


@pytest.mark.parametrize(
    "how",
    [
        *("empty", "missing", "header only", "cut in mid-line", "all NaN", "foreign columns", "rubbish", "one update"),
        *("no config", "no status", "wrong types", "bad checkpoint"),
    ],
)
def test_damage_gives_a_partial_diagnosis_that_says_what_is_missing(how: str, gsolve: GSolve, failing: Run) -> None:
    damage(failing, how)
    done = gsolve("diagnose", str(failing.path), "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["summary"]["run_id"] == failing.run_id
    assert document["missing"] or how in ("one update", "no status", "wrong types")
    assert "Traceback" not in done.err


def test_no_such_run(gsolve: GSolve, failing: Run) -> None:
    done = gsolve("diagnose", "nothing-like-it")
    assert done.code == 3
    assert done.err.count("\n") == 1
