"""What the tools answer, asked by the SDK's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver.api.groups import Group
from gymnasium_solver.runs import checkpoints
from gymnasium_solver.runs.layout import write_json
from gymnasium_solver.runs.reader import Run
from tests.made_runs import FAILING, HEALTHY, write_run
from tests.mcp.talking import ask, listed, make_server, talk

pytestmark = pytest.mark.integration

CONTRACT = {
    *("list_environments", "list_variants", "get_config", "start_training", "stop_training", "list_runs"),
    *("get_run_info", "get_run_metrics", "get_run_logs", "get_training_status", "list_checkpoints", "compare_runs"),
    "get_best_run",
}
TASKS = {
    *("diagnose_run", "recommend_changes", "apply_and_verify", "optimize_config", "solve_environment"),
    *("inspect_checkpoint", "profile_config", "import_run", "score_run", "get_insights"),
}


def test_tools_of_the_contract_are_there_described_and_typed(runs_dir: Path) -> None:
    tools = listed(make_server(runs_dir))
    assert set(tools) >= CONTRACT | TASKS
    for tool in tools.values():
        assert tool.description and len(tool.description) < 500, tool.name
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint is not None
    assert tools["get_run_metrics"].annotations.read_only_hint
    assert not tools["start_training"].annotations.read_only_hint
    assert tools["stop_training"].annotations.destructive_hint


def test_a_group_is_diagnosed_by_its_worst_seed(tmp_path: Path) -> None:
    group, runs = Group.create(tmp_path, "a-group", [1, 2]), {}
    for seed, curves in ((1, HEALTHY), (2, FAILING)):
        runs[seed] = write_run(tmp_path, curves, seed=seed)
        write_json(runs[seed].path / "status.json", {**runs[seed].status, "group": group.group_id})
    server = make_server(tmp_path)
    assert ask(server, "diagnose_run", run_id="a-group").document["summary"]["run_id"] == runs[2].run_id
    assert ask(server, "recommend_changes", run_id="a-group").document["run_id"] == runs[2].run_id


def test_argument_names_are_those_users_rely_on(runs_dir: Path) -> None:
    tools = listed(make_server(runs_dir))
    for tool, names in {
        "start_training": {"config_id", "overrides", "max_env_steps"},
        "get_run_metrics": {"run_id", "metric_names"},
        "get_run_logs": {"run_id", "lines"},
        "list_environments": {"env_filter"},
        "list_runs": {"env_filter", "limit"},
        "compare_runs": {"run_ids"},
        "get_config": {"config_id", "overrides"},
    }.items():
        assert names <= set(tools[tool].input_schema["properties"]), tool


def test_every_answer_has_the_shape_its_schema_says(runs_dir: Path, failed: Run, solved: Run) -> None:
    import jsonschema

    server = make_server(runs_dir)
    tools = listed(server)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_runs", {}),
        ("get_run_info", {"run_id": "@last"}),
        ("get_run_metrics", {"run_id": "@last"}),
        ("get_run_logs", {"run_id": "@last"}),
        ("get_best_run", {}),
        ("list_checkpoints", {"run_id": "@last"}),
        ("compare_runs", {"run_ids": [failed.run_id, solved.run_id]}),
        ("diagnose_run", {"run_id": failed.run_id}),
        ("recommend_changes", {"run_id": failed.run_id}),
        ("get_insights", {"env_id": "CartPole-v1"}),
        ("list_environments", {}),
        ("list_variants", {"env_id": "CartPole-v1"}),
        ("get_config", {"config_id": "CartPole-v1:ppo"}),
        ("get_training_status", {}),
        ("list_jobs", {}),
        ("list_experiments", {}),
    ]
    for (name, _), answer in zip(calls, talk(server, calls), strict=True):
        assert answer.error is None, f"{name}: {answer.error}"
        jsonschema.validate(answer.document, tools[name].output_schema)
        assert json.loads(answer.text) == answer.document


def test_checkpoints_with_references_for_other_tools(runs_dir: Path, solved: Run) -> None:
    names = ["best", "epoch=3"]
    progress = {"epoch": 3, "env_steps": 3000, "best_eval": 480.0, "rng": {"state": 1}}
    checkpoints.save(solved.path / "checkpoints", names, {"w": np.zeros(2)}, {"progress": progress})
    server = make_server(runs_dir)
    found = ask(server, "list_checkpoints", run_id="@last").document["checkpoints"]
    assert [entry["ref"] for entry in found] == [f"{solved.run_id}/@best", f"{solved.run_id}/epoch=3"]
    assert [found[0][key] for key in ("epoch", "env_steps", "best_eval")] == [3, 3000, 480.0]
    assert found[0]["bytes"] == (solved.path / "checkpoints" / "best.safetensors").stat().st_size
    said = str(ask(server, "evaluate_run", checkpoint="@last/@last").error)
    assert "no checkpoint 'last'; there are best, epoch=3; call list_checkpoints" in said


def test_runs_are_found_by_prefix_and_last(runs_dir: Path, failed: Run, solved: Run) -> None:
    server = make_server(runs_dir)
    assert ask(server, "get_run_info", run_id="@last").document["summary"]["run_id"] == solved.run_id
    assert ask(server, "get_run_info", run_id=failed.run_id[:-1]).document["summary"]["run_id"] == failed.run_id
    best = ask(server, "get_best_run").document["best"]
    assert [run["run_id"] for run in best] == [solved.run_id]


def test_list_runs_filters_limits_and_says_what_it_left_out(runs_dir: Path, failed: Run, solved: Run) -> None:
    server = make_server(runs_dir)
    found = ask(server, "list_runs", limit=1).document
    assert (found["total"], len(found["runs"])) == (2, 1)
    assert "1 of 2 runs" in found["truncated"][0]
    assert ask(server, "list_runs", env_filter="cartpole").document["total"] == 2
    assert ask(server, "list_runs", env_filter="Pendulum").document["total"] == 0
    assert ask(server, "list_runs", status="running").document["total"] == 0


def test_curves_are_downsampled_to_real_values_with_their_extremes(runs_dir: Path) -> None:
    values = np.linspace(22, 500, 50)
    values[31] = 9999.0
    run = write_run(runs_dir, HEALTHY | {"val/roll/ep_rew_mean": values})
    server = make_server(runs_dir)
    name = "val/roll/ep_rew_mean"
    answer = ask(server, "get_run_metrics", run_id=run.run_id, metric_names=[name], max_points=5).document
    curve = answer["series"][name]
    assert len(curve["values"]) == len(curve["steps"]) <= 5
    assert 9999 in curve["values"], "a peak is not lost"
    assert (curve["total"], curve["downsampled"]) == (50, True)
    assert curve["values"][0] == 22 and curve["values"][-1] == curve["last"] == 500
    assert curve["highest"] == [32000.0, 9999.0]
    assert "raise max_points" in answer["truncated"][0]
    near = ask(server, "get_run_metrics", run_id=run.run_id, metric_names=[name], from_step=31500, to_step=32500)
    assert near.document["series"][name]["values"] == [9999.0]


def test_metrics_by_pattern_with_healthy_ranges(runs_dir: Path, solved: Run) -> None:
    server = make_server(runs_dir)
    series = ask(server, "get_run_metrics", run_id="@last", metric_names=["train/metrics/k*"]).document["series"]
    assert list(series) == ["train/metrics/kl_divergence"]
    assert series["train/metrics/kl_divergence"]["healthy"] == [0.0, 0.02]


def test_diagnosis_has_five_sections_and_advice_that_can_be_applied(runs_dir: Path, failed: Run) -> None:
    server = make_server(runs_dir)
    document = ask(server, "diagnose_run", run_id=failed.run_id).document
    assert list(document)[:5] == ["summary", "metrics", "bottlenecks", "recommendations", "next_steps"]
    assert document["bottlenecks"]
    for advice in document["recommendations"]:
        checked = ask(server, "get_config", config_id="CartPole-v1:ppo", overrides=advice["set"])
        assert checked.error is None, checked.error
    assert "points" not in next(iter(document["metrics"].values()))


def long_run(runs_dir: Path, curves: dict[str, np.ndarray]) -> Run:
    run = write_run(runs_dir)
    columns = {"train/cnt/env_steps": np.arange(1, 3001) * 12_345.0, **curves}
    rows = np.stack(list(columns.values()), axis=1)
    np.savetxt(run.path / "metrics.csv", rows, delimiter=",", header=",".join(columns), comments="")
    return run


def test_answers_are_bounded_and_never_advise_what_is_not_allowed(runs_dir: Path) -> None:
    from gymnasium_solver.mcp.answers import CHARACTERS

    wild = np.random.default_rng(0).normal(size=3000) * 1.23456e-5
    run = long_run(runs_dir, {f"train/metrics/{name}/long_name": wild for name in range(30)} | {"val/roll/x": wild})
    (run.path / "run.log").write_text("\n".join(f"{number} " + 'é"x' * 1000 for number in range(3000)))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_run_metrics", {"metric_names": ["*"], "max_points": 1000}),
        ("get_run_metrics", {"metric_names": ["val/roll/x"], "max_points": 1000}),
        ("get_run_logs", {"lines": 2000}),
        ("get_run_logs", {}),
    ]
    answers = talk(make_server(runs_dir), [(tool, {"run_id": "@last", **more}) for tool, more in calls])
    for answer in answers:
        assert answer.error is None and CHARACTERS / 3 < len(answer.text) <= CHARACTERS
        assert "raise" not in "".join(answer.document["truncated"])
    everything, one, lines, _ = answers
    assert all(len(curve["values"]) > 10 for curve in everything.document["series"].values())
    assert "fewer metrics" in everything.document["truncated"][0]
    assert "narrow from_step" in one.document["truncated"][0] and "fewer" not in one.document["truncated"][0]
    last = lines.document["quoted"]["lines"][-1]
    assert last.startswith("2999 ") and last.endswith("…")


def test_a_long_list_is_bounded_whatever_limit_says() -> None:
    from gymnasium_solver.mcp.answers import CHARACTERS, as_text, bounded, shown_of

    assert shown_of(100, 600, "runs", "narrow it") == ["100 of 600 runs: raise limit or narrow it"]
    assert shown_of(500, 600, "runs", "narrow it") == ["500 of 600 runs: narrow it"]
    answer = {"total": 600, "runs": [{"run_id": "x" * 400}] * 100, "truncated": shown_of(100, 600, "runs")}
    kept = bounded(answer)
    assert len(as_text(kept)) <= CHARACTERS and kept["total"] == 600
    assert "of 100" in kept["truncated"][0] and "raise" not in "".join(kept["truncated"])


def test_a_spike_is_shown(runs_dir: Path) -> None:
    name = "train/metrics/kl_divergence"
    values = np.full(3000, 0.01)
    values[1777] = 9.0
    long_run(runs_dir, {name: values})
    curve = ask(make_server(runs_dir), "get_run_metrics", run_id="@last", metric_names=[name]).document["series"][name]
    assert 9.0 in curve["values"] and len(curve["values"]) <= 50


def test_the_statuses_to_filter_by_are_those_there_are(runs_dir: Path) -> None:
    from gymnasium_solver.runs.outcome import OUTCOMES

    known = listed(make_server(runs_dir))["list_runs"].input_schema["properties"]["status"]["enum"]
    assert set(known) == {*OUTCOMES, ""}


def test_long_logs_are_cut_and_said_to_be(runs_dir: Path, solved: Run) -> None:
    lines = [f"line {number}" for number in range(500)] + ["x" * 5000]
    (solved.path / "run.log").write_text("\n".join(lines))
    answer = ask(make_server(runs_dir), "get_run_logs", run_id="@last", lines=3).document
    lines = answer["quoted"]["lines"]
    assert lines[:2] == ["line 498", "line 499"] and len(lines[2]) == 500
    assert answer["total"] == 501 and len(answer["truncated"]) == 2


def test_nan_is_null_and_numbers_are_short(runs_dir: Path) -> None:
    write_run(runs_dir, HEALTHY | {"train/loss/policy": np.full(50, np.nan), "train/loss/value": np.full(50, 1 / 3)})
    metrics = ask(make_server(runs_dir), "get_run_info", run_id="@last").document["metrics"]
    assert metrics["train/loss/policy"] is None
    assert metrics["train/loss/value"] == 0.333333


def test_overrides_reach_the_configuration(runs_dir: Path) -> None:
    answer = ask(make_server(runs_dir), "get_config", config_id="CartPole-v1:ppo", overrides={"n_envs": 32})
    assert answer.document["config"]["n_envs"] == 32
    assert "n_envs: 32" in answer.document["yaml"]


def test_import_of_another_librarys_run(runs_dir: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = "\n".join(f"{step},{step / 100}" for step in range(0, 10_000, 100))
    log.write_text(f"step,reward\n{rows}\n")
    mapping = {"train/cnt/env_steps": "step", "train/roll/ep_rew_mean": "reward"}
    server = make_server(runs_dir)
    answer = ask(server, "import_run", path=str(log), env_id="CartPole-v1", algo_id="ppo", mapping=mapping)
    assert answer.error is None, answer.error
    assert ask(server, "diagnose_run", run_id=answer.document["run_id"]).error is None


def test_starting_a_server_imports_no_jax(runs_dir: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from gymnasium_solver.mcp.server import make_server; make_server(); "
        "print([name for name in ('jax', 'gymnasium', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("total, count", [(0, 5), (1, 5), (5, 5), (100, 7), (100, 2), (100, 1)])
def test_evenly_keeps_the_ends(total: int, count: int) -> None:
    from gymnasium_solver.mcp.answers import evenly

    places = evenly(total, count)
    assert len(places) == min(total, count) == len(set(places))
    if total:
        assert places[-1] == total - 1
        assert count < 2 or places[0] == 0


def test_documents_of_any_size_are_made_short() -> None:
    from gymnasium_solver.mcp.answers import CHARACTERS, as_text, short

    whole = {"curve": list(range(10_000)), "runs": [{"name": "x" * 100, "values": [0.1] * 500} for _ in range(300)]}
    kept, cut = short(whole, "the whole: elsewhere")
    assert len(as_text(kept)) <= CHARACTERS
    assert kept["curve"][0] == 0 and kept["curve"][-1] == 9999
    assert any("curve" in line and "of 10000" in line for line in cut) and cut[-1] == "the whole: elsewhere"
    assert short({"a": [1, 2]}, "")[1] == []
    kept, cut = short({"text": "x" * 10**6, "names": {str(number): 0.5 for number in range(10**4)}}, "elsewhere")
    assert len(as_text(kept)) <= CHARACTERS and kept["text"].endswith("…") and len(cut) == 3
