"""The documents of the REST API, asked for as a client does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from starlette.testclient import TestClient

from gymnasium_solver import api
from gymnasium_solver.plain import plain
from gymnasium_solver.runs import checkpoints, reader
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter
from tests.made_runs import HEALTHY, STEPS, write_run
from tests.web.conftest import Connect, get

pytestmark = pytest.mark.integration

REWARD = "val/roll/ep_rew_mean"


def test_health(client: TestClient, runs_dir: Path) -> None:
    found = get(client, "/health")
    assert found["name"] == "gymnasium-solver"
    assert found["runs_dir"] == str(runs_dir)
    assert found["read_only"] is False


def test_runs_are_listed_searched_sorted_and_paged(client: TestClient) -> None:
    whole = get(client, "/runs")
    assert whole["total"] == 3
    assert [row["seed"] for row in whole["runs"]] == [3, 2, 1]
    assert all(0 < len(row["sparkline"]) <= 40 for row in whole["runs"])
    assert [row["seed"] for row in get(client, "/runs", sort="seed")["runs"]] == [1, 2, 3]
    assert get(client, "/runs", search="cartpole a2c")["total"] == 1
    assert get(client, "/runs", search="%")["total"] == 0
    assert get(client, "/runs", status="failed", algo="ppo")["total"] == 0
    page = get(client, "/runs", limit=1, offset=1)
    assert [row["seed"] for row in page["runs"]] == [2]
    assert page["total"] == 3


def test_a_listing_is_the_summary_of_the_api(client: TestClient, run: Run) -> None:
    row = next(row for row in get(client, "/runs")["runs"] if row["run_id"] == run.run_id)
    assert {name: row[name] for name in run.summary()} == plain(run.summary())


def test_an_answer_that_is_cut_says_so(client: TestClient, run: Run) -> None:
    assert "500" in get(client, "/runs", limit=10**30)["notice"]
    assert "5000" in get(client, f"/runs/{run.run_id}/metrics", points=10**6)["notice"]
    assert "5000" in get(client, f"/runs/{run.run_id}/logs", lines=10**6)["notice"]
    assert get(client, "/runs", limit=500)["notice"] is None


def test_sorting_by_what_is_no_column_is_refused(client: TestClient) -> None:
    refused = get(client, "/runs", 422, sort="path; drop table runs")
    assert "started_at" in refused["error"]


def test_filters_that_match_nothing_say_so(client: TestClient) -> None:
    assert "solved, missed" in get(client, "/runs", 422, status="complete")["error"]
    assert get(client, "/runs", status="interrupted")["total"] == 0
    assert get(client, "/runs", env="cartpole-V1", algo="A2C")["total"] == 1
    nothing = get(client, "/runs", env="CartPole")
    assert (nothing["total"], nothing["notice"]) == (0, "no run has env 'CartPole'")


def test_one_run(client: TestClient, run: Run) -> None:
    found = get(client, f"/runs/{run.run_id}")
    assert found["summary"]["run_id"] == run.run_id
    assert found["config"] == run.config
    assert REWARD in found["metrics"]
    assert found["checkpoints"] == []
    assert get(client, f"/runs/{run.run_id[:-4]}")["summary"]["run_id"] == run.run_id
    assert get(client, "/runs/@last")["summary"]["seed"] == 3


def test_checkpoints_say_how_far_they_were(client: TestClient, run: Run) -> None:
    progress = {"epoch": 3, "env_steps": 3000, "best_eval": 22.5, "rng": {"state": 1}}
    checkpoints.save(run.path / "checkpoints", ["best"], {"w": np.zeros(2)}, {"progress": progress})
    (found,) = get(client, f"/runs/{run.run_id}/checkpoints")
    assert found["progress"] == {"epoch": 3, "env_steps": 3000, "best_eval": 22.5}
    assert found["bytes"] == (run.path / "checkpoints" / "best.safetensors").stat().st_size
    refused = get(client, f"/runs/{run.run_id}/episode", 404, checkpoint="@last")
    assert "no checkpoint 'last'; there are best" in refused["error"]


def test_an_unknown_run_names_the_nearest(client: TestClient, run: Run) -> None:
    refused = get(client, f"/runs/{run.run_id[:-1]}x", 404)
    assert run.run_id in refused["error"]
    assert refused["next"] == "GET /api/runs lists the runs"


def test_curves_hold_the_peaks_and_the_range(client: TestClient, run: Run) -> None:
    path = f"/runs/{run.run_id}/metrics"
    found = get(client, path, names=f"{REWARD},no/such", points=10)
    curve = found["series"][REWARD]
    _, values = run.metrics.series(REWARD)
    assert len(curve["values"]) <= 10
    assert max(curve["values"]) == values.max()
    assert min(curve["values"]) == values.min()
    assert (curve["total"], curve["downsampled"]) == (len(STEPS), True)
    assert found["missing"] == ["no/such"]
    part = get(client, path, names=REWARD, **{"from": 2000, "to": 5000})["series"][REWARD]
    assert part["steps"] == [2000, 3000, 4000, 5000]
    assert part["downsampled"] is False
    assert get(client, path, names=REWARD, **{"from": 9e9})["series"][REWARD]["steps"] == []


@pytest.mark.parametrize(
    "asked", [{"points": 1}, {"points": "many"}, {"from": "nan"}, {"names": "a" * 10_001}, {"from": 2, "to": 1}]
)
def test_a_range_that_is_none_is_refused(client: TestClient, run: Run, asked: dict[str, Any]) -> None:
    assert get(client, f"/runs/{run.run_id}/metrics", 422, **asked)["error"]


def test_numbers_that_json_does_not_have_are_left_out(client: TestClient, runs_dir: Path) -> None:
    rewards = HEALTHY[REWARD].copy()
    rewards[3], rewards[7] = np.nan, np.inf
    broken = write_run(runs_dir, HEALTHY | {REWARD: rewards}, seed=4, solved=None)
    for part in ("", "/metrics", "/diagnosis"):
        get(client, f"/runs/{broken.run_id}{part}")
    assert get(client, f"/runs/{broken.run_id}/metrics")["series"][REWARD]["total"] == len(STEPS) - 2


def test_a_run_that_is_written_is_read_as_it_grows(client: TestClient, runs_dir: Path, run: Run) -> None:
    writer = RunWriter.create(runs_dir, run.config, command=["test"])
    path = f"/runs/{writer.run_id}/metrics"
    for steps in (1000, 2000, 3000):
        writer.metrics({"train/cnt/env_steps": steps, REWARD: float(steps)})
        assert get(client, path)["series"][REWARD]["steps"][-1] == steps
    with (writer.path / "metrics.csv").open("a") as file:  # half a line: not there yet
        file.write("4000,40")
        file.flush()
        assert get(client, path)["series"][REWARD]["steps"][-1] == 3000
        file.write("00\n")
    assert get(client, path)["series"][REWARD]["values"][-1] == 4000
    writer.metrics({"train/cnt/env_steps": 5000, "train/loss/value": 1.0})  # a new column: the file is replaced
    assert get(client, path, names=f"{REWARD},train/loss/value")["series"]["train/loss/value"]["steps"] == [5000]
    assert get(client, f"/runs/{writer.run_id}")["summary"]["status"] == "running"
    writer.close()


def test_a_run_deleted_while_open_is_gone_everywhere(client: TestClient, run: Run) -> None:
    get(client, f"/runs/{run.run_id}/metrics")
    shutil.rmtree(run.path)
    for part in ("", "/metrics", "/logs", "/diagnosis", "/checkpoints", "/episode", "/files/report.md"):
        get(client, f"/runs/{run.run_id}{part}", 404)


def test_a_run_deleted_in_the_middle_of_an_answer_is_gone(
    client: TestClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete_first(given: Run) -> Any:
        shutil.rmtree(run.path)
        raise ValueError("columns of different length")

    monkeypatch.setattr(api, "diagnose", delete_first)
    assert "deleted" in get(client, f"/runs/{run.run_id}/diagnosis", 404)["error"]


def test_two_servers_on_one_directory(connect: Connect, runs_dir: Path) -> None:
    one, other = connect(), connect(port=8081)
    assert get(one, "/runs")["total"] == get(other, "/runs")["total"] == 3
    added = write_run(runs_dir, HEALTHY, seed=9)
    for client in (one, other):
        client.app.app.state.store._refreshed = -1e9  # type: ignore[attr-defined]
        assert get(client, "/runs")["runs"][0]["run_id"] == added.run_id


def test_diagnosis_is_the_document_of_the_api(client: TestClient, run: Run) -> None:
    assert get(client, f"/runs/{run.run_id}/diagnosis") == json.loads(json.dumps(plain(api.diagnose(run))))


def test_comparison(client: TestClient, runs_dir: Path) -> None:
    ids = [row["run_id"] for row in get(client, "/runs", algo="ppo")["runs"]]
    assert get(client, "/compare", run_ids=",".join(ids))["env_id"] == "CartPole-v1"
    assert "at least two" in get(client, "/compare", 422, run_ids=ids[0])["error"]
    assert get(client, "/compare", 404, run_ids=f"{ids[0]},../{ids[1]}")["error"]
    assert get(client, "/compare", 422)["error"]


def test_logs_in_pieces(client: TestClient, run: Run) -> None:
    log, path = run.path / "run.log", f"/runs/{run.run_id}/logs"
    log.write_text("".join(f"line {index}\n" for index in range(10)))
    tail = get(client, path, lines=3)
    assert tail["lines"] == ["line 7", "line 8", "line 9"]
    with log.open("a") as file:
        file.write("line 10\nhalf")
    more = get(client, path, after=tail["next"])
    assert more["lines"] == ["line 10"]
    assert get(client, path, after=more["next"])["lines"] == []
    assert get(client, path, after=0, lines=2)["lines"] == ["line 0", "line 1"]
    log.write_text("begun anew\n")
    assert get(client, path, after=more["next"])["lines"] == ["begun anew"]
    log.unlink()
    assert get(client, path) == {"lines": [], "next": 0, "notice": None}


def test_configurations(client: TestClient) -> None:
    found = get(client, "/configs", env_filter="cartpole")
    assert {"CartPole-v1:ppo", "CartPole-v1:dqn"} <= {row["config_id"] for row in found}
    assert get(client, "/configs/CartPole-v1:ppo")["config"]["env_id"] == "CartPole-v1"
    assert "CartPole-v1" in get(client, "/configs/CartPoel-v1:ppo", 404)["error"]
    assert get(client, "/configs/CartPole-v1", 422)["error"]


def test_the_catalogue_has_ranges_and_families(client: TestClient) -> None:
    found = {entry["name"]: entry for entry in get(client, "/metrics-catalogue")["metrics"]}
    assert found["train/metrics/kl_divergence"]["high"] == 0.02
    assert "train/hp/*" in found


def test_the_diagnosis_of_a_run_that_dies_is_made_anew(
    client: TestClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def diagnose(run: Run) -> dict[str, str]:
        made.append(run.status["status"])
        return {"status": made[-1]}

    monkeypatch.setattr(api, "diagnose", diagnose)
    status = run.path / "status.json"
    status.write_text(json.dumps({**json.loads(status.read_text()), "status": "running", "host": "elsewhere"}))
    monkeypatch.setattr(reader, "_is_running", lambda record: True)
    for _ in range(2):
        get(client, f"/runs/{run.run_id}/diagnosis")
    monkeypatch.setattr(reader, "_is_running", lambda record: False)
    get(client, f"/runs/{run.run_id}/diagnosis")
    (run.path / "noise_scale.json").write_text("{}")
    get(client, f"/runs/{run.run_id}/diagnosis")
    assert made == ["running", "crashed", "crashed"]


def test_starting_a_training(client: TestClient, runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(api, "start", lambda ref, **options: asked.update(ref=ref, **options) or "new-run")
    wanted = {"config_id": "CartPole-v1:ppo", "overrides": {"policy_lr": 1e-3}, "max_env_steps": 5000, "seeds": 2}
    response = client.post("/api/runs", json=wanted)
    assert (response.status_code, response.json()) == (201, {"run_id": "new-run", "group": "new-run"})
    assert asked == {
        **{"ref": "CartPole-v1:ppo", "seeds": 2, "runs_dir": runs_dir, "policy_lr": 1e-3, "max_env_steps": 5000}
    }


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"config_id": "CartPole-v1:ppo", "overrides": {"runs_dir": "/tmp"}}, 422),
        ({"config_id": "CartPole-v1:ppo", "overrides": {"init_from": "/tmp/x"}}, 422),
        ({"config_id": "CartPole-v1:ppo", "overrides": {"policy_lrr": 1}}, 422),
        ({"config_id": "CartPole-v1:pppo"}, 404),
        ({"config_id": "CartPole-v1:ppo", "seeds": 0}, 422),
        ({"config_id": "CartPole-v1:ppo", "command": "rm"}, 422),
        ({}, 422),
        ([], 422),
    ],
)
def test_a_training_that_cannot_be_is_refused(client: TestClient, runs_dir: Path, wanted: Any, status: int) -> None:
    before = sorted(runs_dir.glob("[!.]*"))
    response = client.post("/api/runs", json=wanted)
    assert response.status_code == status, response.text
    assert response.json()["error"]
    assert sorted(runs_dir.glob("[!.]*")) == before


def test_stopping_what_has_ended_says_so(client: TestClient, run: Run) -> None:
    found = client.post(f"/api/runs/{run.run_id}/stop").json()
    assert (found["status"], found["was_running"]) == ("missed", False)


def test_openapi_describes_every_answer(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for operation in methods.values():
            good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
            assert good.get("content") or path.endswith(("/events", "/files/{path}")), path


def test_the_page_and_its_scripts(client: TestClient) -> None:
    assert "<html" in client.get("/").text
    assert "Plotly" in client.get("/static/plotly.min.js").text[-100:]
    assert client.get("/static/../app.py").status_code == 404
    script = client.get("/static/main.js")
    assert script.headers["cache-control"] == "no-cache"
    assert client.get("/static/main.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304
