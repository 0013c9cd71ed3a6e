"""What a client may get wrong, and what a server must not give away."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.runs.reader import Run
from tests.made_runs import HEALTHY, write_run
from tests.mcp.talking import ask, make_server, read

pytestmark = pytest.mark.integration


def refusal(server: Any, tool: str, **arguments: Any) -> str:
    error = ask(server, tool, **arguments).error
    assert error is not None, f"{tool} accepted {arguments}"
    return error


def test_an_unknown_run_names_the_nearest_and_the_next_call(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir)
    said = refusal(server, "get_run_info", run_id=solved.run_id[:-4] + "0000")
    assert solved.run_id in said and "call list_runs" in said
    for tool in ("get_run_metrics", "get_run_logs", "list_checkpoints", "diagnose_run", "get_training_status"):
        assert "call list_runs" in refusal(server, tool, run_id="nothing-like-it")
    assert "call list_runs" in refusal(server, "compare_runs", run_ids=["nothing-like-it"])


def test_an_empty_runs_directory_says_how_to_begin(runs_dir: Path) -> None:
    assert "has no runs" in refusal(make_server(runs_dir), "get_run_info", run_id="@last")


@pytest.mark.parametrize("run_id", ["../secret", "..", ".", "a/../../secret", "~", "x\x00y", " ", "..\\secret"])
def test_paths_are_no_run_ids(runs_dir: Path, solved: Run, run_id: str) -> None:
    server = make_server(runs_dir)
    for tool in ("get_run_info", "get_run_logs", "diagnose_run", "stop_training"):
        assert "list_runs" in refusal(server, tool, run_id=run_id)


def test_runs_outside_are_not_reached_by_path_link_or_working_directory(
    runs_dir: Path, solved: Run, tmp_path: Path
) -> None:
    outside = write_run(tmp_path / "elsewhere", HEALTHY)
    (runs_dir / "link").symlink_to(outside.path, target_is_directory=True)
    shutil.copytree(outside.path, tmp_path / "beside")  # in the working directory, where find_run looks too
    server = make_server(runs_dir)
    for run_id in (str(outside.path), "link", "beside"):
        assert "list_runs" in refusal(server, "get_run_info", run_id=run_id)
    assert "list_runs" in refusal(server, "inspect_checkpoint", checkpoint=f"{outside.path}/@best")


def test_a_log_that_is_a_link_out_is_refused(runs_dir: Path, solved: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    (solved.path / "run.log").unlink(missing_ok=True)
    (solved.path / "run.log").symlink_to(tmp_path / "secret")
    assert "the secret" not in refusal(make_server(runs_dir), "get_run_logs", run_id="@last")


@pytest.mark.parametrize("uri", ["run://../summary", "run://..%2F..%2Fsecret/log", "run://nothing/summary"])
def test_resources_refuse_the_same(runs_dir: Path, solved: Run, uri: str) -> None:
    text, error = read(make_server(runs_dir), uri)
    assert error and not text


def test_unknown_metrics_name_the_nearest(runs_dir: Path, solved: Run) -> None:
    said = refusal(make_server(runs_dir), "get_run_metrics", run_id="@last", metric_names=["train/los/policy"])
    assert "train/loss/policy" in said and "get_run_info" in said


@pytest.mark.parametrize(
    "tool, arguments",
    [
        ("list_runs", {"limit": -1}),
        ("list_runs", {"limit": 0}),
        ("list_runs", {"limt": 5}),
        ("list_runs", {"status": "runing"}),
        ("get_run_logs", {"run_id": "@last", "lines": -3}),
        ("get_run_metrics", {"run_id": "@last", "max_points": 10**9}),
        ("start_training", {"config_id": "CartPole-v1:ppo", "max_env_steps": -1}),
        ("start_training", {"config_id": "CartPole-v1:ppo", "seeds": 0}),
        ("start_training", {}),
        ("compare_runs", {"run_ids": []}),
        ("get_training_status", {"wait_seconds": 1e9}),
    ],
)
def test_arguments_out_of_range_or_unknown_are_refused(
    runs_dir: Path, solved: Run, tool: str, arguments: dict[str, Any]
) -> None:
    said = refusal(make_server(runs_dir), tool, **arguments)
    name = list(arguments)[-1] if arguments else "config_id"
    assert name in said
    assert [run.name for run in runs_dir.iterdir() if run.is_dir() and not run.is_symlink()] == [solved.run_id]


@pytest.mark.parametrize("tool", ["start_training", "get_config", "optimize_config", "profile_config", "sweep_config"])
def test_a_bad_configuration_is_refused_before_anything_starts(runs_dir: Path, tool: str) -> None:
    server = make_server(runs_dir)
    said = refusal(server, tool, config_id="CartPole-v1:ppo", overrides={"polcy_lr": 1e-3})
    assert "polcy_lr: unknown field" in said and "policy_lr" in said
    assert "get_config" in said
    said = refusal(server, tool, config_id="CartPol-v1:ppo")
    assert "CartPole-v1" in said and "list_environments" in said
    assert not list(runs_dir.iterdir())


def test_code_named_by_a_client_is_not_run_in_the_server(
    runs_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(tmp_path)
    server = make_server(runs_dir, read_only=True)
    for config_id in ("trap:Env:ppo", "os:abort:ppo"):
        assert "does not import" in refusal(server, "get_config", config_id=config_id)
        assert "does not import" in refusal(server, "list_variants", env_id=config_id.removesuffix(":ppo"))
        assert "does not import" in str(read(server, f"config://{config_id}")[1])
    started: list[Any] = []
    monkeypatch.setattr("gymnasium_solver.mcp.tools.experiments.start_job", lambda *words: started.append(words))
    monkeypatch.setattr("gymnasium_solver.api.start", lambda *words, **_: started.append(words))
    server, allowing = make_server(runs_dir), make_server(runs_dir, allow_code=["trap"])
    for tool, arguments in {
        "start_training": {},
        "optimize_config": {},
        "sweep_config": {},
        "profile_config": {},
        "apply_and_verify": {"overrides": {"gamma": 0.9}},
    }.items():
        assert "--allow-code trap" in refusal(server, tool, config_id="trap:Env:ppo", **arguments)
        ask(allowing, tool, config_id="trap:Env:ppo", **arguments)
    assert "--allow-code trap" in refusal(server, "solve_environment", env_id="trap:Env")
    ask(allowing, "solve_environment", env_id="trap:Env")
    assert len(started) == 6, "the process that is started judges it"


def test_what_looks_like_an_option_is_none(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("gymnasium_solver.mcp.tools.experiments.start_job", lambda *words: started.append(words[3]))
    server = make_server(runs_dir)
    assert "is not module:Name" in refusal(server, "validate_ppo", function="--help")
    assert "in a terminal" in refusal(server, "validate_ppo", function="any.py:loss")
    ask(server, "solve_environment", env_id="--resume:x")
    ask(server, "profile_config", config_id="CartPole-v1:ppo")
    assert [words[words.index("--") + 1 :] for words in started] == [
        *(["--resume:x"], ["CartPole-v1:ppo"]),
    ]


def test_errors_name_the_next_call(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir)
    said = refusal(server, "compare_runs", run_ids=[solved.run_id])
    assert "at least two" in said and "call list_runs" in said
    assert "call list_runs" in refusal(server, "get_insights", env_id="Nothing-v0")
    said = refusal(server, "sweep_config", config_id="CartPole-v1:ppo", budget="soon")
    assert "not a time" in said and "call it again" in said
    assert "runing" in refusal(server, "list_runs", status="runing")
    call = ask(server, "get_training_status", run_id="@last").document["next_call"]
    assert call == f"diagnose_run(run_id={solved.run_id!r})"


def test_a_change_that_is_invalid_or_none_is_not_tested(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir)
    assert "gamma" in refusal(server, "apply_and_verify", run_id="@last", overrides={"gamma": 2})
    assert "nothing to test" in refusal(
        server, "apply_and_verify", run_id="@last", overrides={"gamma": solved.config["gamma"]}
    )
    assert "nothing to test" in refusal(server, "apply_and_verify", run_id="@last", overrides={"seed": 7})
    assert "either run_id or config_id" in refusal(server, "apply_and_verify", overrides={"gamma": 0.9})
    assert "not a time" in refusal(server, "apply_and_verify", run_id="@last", overrides={"gamma": 0.9}, budget="soon")
    for tool, what in {"solve_environment": {"env_id": "CartPole-v1"}, "optimize_config": {"run_id": "@last"}}.items():
        assert "not a time" in refusal(server, tool, budget="soon", **what)
    assert "CartPole-v1" in refusal(server, "solve_environment", env_id="CartPol-v1")
    assert not (runs_dir / ".jobs").exists()


def test_a_run_deleted_between_calls_or_within_one(
    runs_dir: Path, failed: Run, solved: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server(runs_dir)
    assert ask(server, "get_run_info", run_id=failed.run_id).error is None
    shutil.rmtree(failed.path)
    assert "call list_runs" in refusal(server, "get_run_info", run_id=failed.run_id)

    summary = Run.summary

    def vanishing(run: Run) -> dict[str, Any]:
        shutil.rmtree(run.path)
        return summary(run)

    monkeypatch.setattr(Run, "summary", vanishing)
    assert "deleted while it was read" in refusal(server, "get_run_info", run_id=solved.run_id)


def test_a_damaged_run_still_answers(runs_dir: Path, solved: Run) -> None:
    (solved.path / "metrics.csv").write_bytes(b"train/cnt/env_steps,val/roll/ep_rew_mean\n1,2\nrubbish\n\xff\xfe")
    (solved.path / "status.json").write_text("{")
    answer = ask(make_server(runs_dir), "get_run_info", run_id="@last")
    assert answer.document["summary"]["status"] == "failed"


def test_a_read_only_server_offers_and_does_nothing_that_writes(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir, read_only=True)

    def visible() -> list[str]:
        return sorted(path.name for path in runs_dir.iterdir() if not path.name.startswith("."))

    before = visible()
    for tool, arguments in {
        "start_training": {"config_id": "CartPole-v1:ppo"},
        "stop_training": {"run_id": "@last"},
        "solve_environment": {"env_id": "CartPole-v1"},
        "import_run": {"path": "."},
    }.items():
        assert "Unknown tool" in refusal(server, tool, **arguments)
    assert ask(server, "diagnose_run", run_id="@last").error is None
    assert visible() == before and not (runs_dir / ".jobs").exists()


def test_a_crash_of_a_tool_is_no_crash_of_the_server(
    runs_dir: Path, solved: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Run) -> list[str]:
        raise ZeroDivisionError("a secret of the machine")

    monkeypatch.setattr(Run, "log_lines", broken)
    server = make_server(runs_dir)
    assert "secret" not in refusal(server, "get_run_logs", run_id="@last")
    assert ask(server, "list_runs").error is None
