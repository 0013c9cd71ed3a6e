"""A run counts env steps or, without an environment, updates: everything that reads it follows the clock it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gymnasium_solver import api
from gymnasium_solver.cli.main import main
from gymnasium_solver.diagnose.engine import diagnose
from gymnasium_solver.diagnose.insights import insights
from gymnasium_solver.diagnose.readings import read
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.metrics.clocks import ENV_STEPS, UPDATES, clock_of
from gymnasium_solver.recommend.changes import more_steps
from gymnasium_solver.recommend.monitor import Monitor
from gymnasium_solver.runs.index.index import Index
from gymnasium_solver.runs.metrics_writer import MetricsFile
from gymnasium_solver.runs.plots import thinned
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import steps_to_threshold, write_group_report, write_report
from gymnasium_solver.verify.comparison.document import compare_runs
from gymnasium_solver.verify.comparison.plots import draw
from gymnasium_solver.verify.comparison.text import to_markdown
from tests.made_runs import FAILING, HEALTHY, line, write_offline_run, write_run

REWARD = "val/roll/ep_rew_mean"
PACKAGE = Path(__file__).parent.parent / "gymnasium_solver"


@pytest.mark.parametrize(
    ("config", "clock"),
    [
        ({"max_env_steps": 100}, ENV_STEPS),
        ({"max_updates": 100}, UPDATES),
        ({"max_updates": 100, "max_env_steps": None}, UPDATES),
        ({"max_updates": None, "max_env_steps": 100}, ENV_STEPS),
        ({"max_updates": 100, "max_env_steps": 100}, ENV_STEPS),
        ({}, ENV_STEPS),
    ],
)
def test_the_config_names_the_clock(config: dict[str, Any], clock: Any) -> None:
    assert clock_of(config) is clock


@pytest.mark.parametrize("counts", [False, True], ids=["no env steps", "env steps of 0"])
def test_a_run_is_read_on_the_clock_of_updates(tmp_path: Path, counts: bool) -> None:
    run = write_offline_run(tmp_path, HEALTHY, counts=counts)
    steps, values = run.metrics.series(REWARD)
    assert (len(values), steps[0], steps[-1]) == (50, 100, 5000)
    assert run.metrics.overview()[REWARD].steps[-1] == 5000
    summary = run.summary()
    assert (summary["clock"], summary["progress"], summary["budget"]) == ("updates", 5000, 5000)
    assert summary["env_steps"] == (0 if counts else None)
    assert (summary["best_reward"], summary["max_env_steps"]) == (500, None)
    assert steps_to_threshold(run, 475.0) == 4800
    with Index.open(tmp_path) as index:
        index.refresh()
        ((found,), total) = reversed(index.find(sort="-progress"))
    assert total == 1
    assert {name: found[name] for name in summary} == {**summary, "path": found["path"]}
    assert len(found["sparkline"]) == 40


def test_a_run_with_an_environment_is_read_as_before(tmp_path: Path) -> None:
    run = write_run(tmp_path, HEALTHY)
    summary = run.summary()
    assert run.metrics.series(REWARD)[0][-1] == summary["env_steps"] == summary["progress"] == 50_000
    assert (summary["clock"], summary["budget"]) == ("env_steps", 50_000)
    assert "| environment steps | 50,000 of 50,000 |" in write_report(run.path).read_text()
    markdown = to_markdown(compare_runs([run, write_run(tmp_path, FAILING, policy_lr=1e-5)]))
    assert "50,000 env steps" in markdown and "| steps per second |" in markdown and "updates" not in markdown


def test_reports_and_plots_follow_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    monkeypatch.setattr("gymnasium_solver.runs.plots.thinned", lambda x, y: (seen.append(x), thinned(x, y))[1])
    run = write_offline_run(tmp_path, HEALTHY, counts=True)
    text = write_report(run.path).read_text()
    assert "| updates | 5,000 of 5,000 |" in text
    assert "over updates." in text and "nvironment steps |" not in text
    assert ">updates</text>" in (run.path / "plots" / "reward.svg").read_text()
    assert {float(x[-1]) for x in seen if x.size} == {5000.0}
    group = write_group_report([run, write_offline_run(tmp_path, HEALTHY, seed=1)])
    assert "| updates | updates to threshold |" in group
    assert "Median to threshold: 4,800 updates." in group


def test_a_diagnosis_speaks_of_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fallen = np.concatenate([line(22, 400)[:25], np.full(25, 25.0)])
    run = write_offline_run(tmp_path, HEALTHY | {REWARD: fallen}, max_updates=20_000)
    assert main(["diagnose", str(run.path)]) == 0
    text = capsys.readouterr().out
    assert "5,000 of 20,000 updates" in text and "collapsed at 2,600 updates" in text
    assert not re.search(r"\d steps", text)
    readings = read(run)
    assert (readings.steps, readings.planned, readings.planned_env_steps) == (5000, 20_000, None)
    assert readings.usual_steps is None, "what shipped configurations need is in env steps"
    assert not any("train/cnt" in line for line in readings.missing)
    assert diagnose(readings).answers["updates-begin-late"] is None
    assert more_steps(readings).keys() == {"max_updates"}


def test_the_outlook_is_by_the_budget_of_updates(tmp_path: Path) -> None:
    rising = HEALTHY | {REWARD: line(22, 300)}
    odds = []
    for budget in (5100, 20_000):
        run = write_offline_run(tmp_path, rising, status="running", max_updates=budget)
        odds.append(api.diagnose(run)["outlook"]["probability_of_threshold"])
    assert odds[0] < 0.2 and odds[1] > 0.8


def test_a_training_is_watched_on_its_clock() -> None:
    monitor = Monitor({"max_updates": 100, "algo_id": "bc"}, {}, 475.0)
    for update in range(10):
        monitor.observe({UPDATES.column: 10.0 * update, ENV_STEPS.column: 0.0, REWARD: float(update)})
    readings = monitor._diagnosis().readings
    assert readings.curves[REWARD].steps.tolist() == [10.0 * update for update in range(10)]
    assert (readings.steps, readings.planned) == (90, 100)


def test_runs_without_an_environment_are_compared_by_updates(tmp_path: Path) -> None:
    runs = [write_offline_run(tmp_path, HEALTHY, seed=seed) for seed in range(3)]
    runs += [write_offline_run(tmp_path, FAILING, seed=seed, policy_lr=1e-6) for seed in range(3)]
    document = compare_runs(runs)
    assert document["measures"]["clock"] == "updates"
    first = document["sides"][0]["runs"][0]
    assert (first["updates"], first["steps_to_threshold"]) == (5000, 4800) and "env_steps" not in first
    assert first["seconds_to_threshold"] == pytest.approx(0.96 * runs[0].summary()["duration_s"])
    assert document["sides"][0]["curve"]["steps"][-1] == 5000
    assert {"curves.png", "losses.png"} <= draw(document).keys()
    text = to_markdown(document)
    assert "| updates to 475, IQM |" in text and "4,800 updates" in text
    assert not re.search(r"env steps|\d steps", text)


def test_different_clocks_are_not_mixed(tmp_path: Path) -> None:
    online, offline = write_run(tmp_path, HEALTHY), write_offline_run(tmp_path, HEALTHY)
    with pytest.raises(ConfigError, match=f"{online.run_id} counts env steps, {offline.run_id} updates; compare runs"):
        compare_runs([online, offline])
    with pytest.raises(ConfigError, match=r"counted in updates and in env steps.*--metric seconds"):
        insights("CartPole-v1", runs_dir=tmp_path)
    assert insights("CartPole-v1", "return", tmp_path)["runs"]["solved"] == 2
    assert insights("CartPole-v1", "seconds", tmp_path)["best"][0]["seconds_to_threshold"]["seeds"] == 1


def test_the_terminal_names_what_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, other = write_offline_run(tmp_path, HEALTHY), write_run(tmp_path, HEALTHY)
    assert main(["runs", "--runs-dir", str(tmp_path)]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "5,000 updates" in rows[run.run_id]
    assert "50,000 " in rows[other.run_id] and "updates" not in rows[other.run_id]
    assert main(["status", str(run.path)]) == 0
    assert re.search(r"updates +5,000 of 5,000 \(100%\)", capsys.readouterr().out)
    assert main(["show", str(run.path)]) == 0
    assert "eval reward" in capsys.readouterr().out
    assert main(["insights", "CartPole-v1", "--runs-dir", str(tmp_path)]) == 2
    assert "do not mix" in capsys.readouterr().err


def test_watching_a_run_counts_its_updates(tmp_path: Path) -> None:
    from gymnasium_solver.cli.following import Following
    from gymnasium_solver.cli.progress import progress_line

    following = Following(write_offline_run(tmp_path, HEALTHY, status="running", max_updates=20_000))
    following.catch_up()
    assert (following.progress.steps, following.progress.fraction) == (5000, 0.25)
    assert progress_line(following.progress).startswith("5,000/20,000 updates (25%), ")


@pytest.mark.integration
def test_rest_and_mcp_answer_on_the_clock(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from starlette.testclient import TestClient

    from gymnasium_solver.web.app import create_app
    from gymnasium_solver.web.settings import Settings

    run = write_offline_run(tmp_path, HEALTHY, counts=True)
    with TestClient(create_app(Settings(runs_dir=tmp_path)), base_url="http://127.0.0.1:8080") as client:
        found = client.get(f"/api/runs/{run.run_id}/metrics", params={"names": REWARD, "from": 4900}).json()
        assert found["clock"] == "updates"
        assert found["series"][REWARD]["steps"] == [4900, 5000]
        listed = client.get("/api/runs", params={"sort": "-progress"}).json()["runs"]
        assert [(one["clock"], one["progress"], one["budget"]) for one in listed] == [("updates", 5000, 5000)]
        assert client.get(f"/api/runs/{run.run_id}/diagnosis").json()["summary"]["progress"] == 5000
    pytest.importorskip("mcp")
    from tests.mcp.talking import ask, make_server

    server = make_server(tmp_path)
    answer = ask(server, "get_run_metrics", run_id=run.run_id, metric_names=[REWARD], from_step=4900).document
    assert (answer["clock"], answer["series"][REWARD]["steps"]) == ("updates", [4900, 5000])
    status = ask(server, "get_training_status", run_id=run.run_id).document["trainings"][0]
    assert (status["clock"], status["progress"], status["budget"]) == ("updates", 5000, 5000)


def test_older_runs_are_read_under_the_new_name(tmp_path: Path) -> None:
    run = write_run(tmp_path, HEALTHY)
    path = run.path / "metrics.csv"
    path.write_text(path.read_text().replace("train/cnt/updates", "train/cnt/gradient_steps", 1))
    run = Run(run.path)
    assert run.metrics["train/cnt/updates"][-1] == 5000
    assert "train/cnt/gradient_steps" not in run.metrics
    file = MetricsFile(path)  # as a resumed training goes on with it
    file.append({"train/cnt/env_steps": 51_000, "train/cnt/updates": 5100, "new": 1})
    file.close()
    assert run.metrics.last("train/cnt/updates") == 5100
    assert path.read_text().splitlines()[0].count("train/cnt/updates") == 1


def test_the_x_axis_is_named_in_one_place() -> None:
    """What writes rows and reads other libraries' files names columns; whoever draws or judges asks the clock."""
    readers = ("runs", "diagnose", "recommend", "verify/comparison", "web", "mcp", "cli")
    names = ('"train/cnt/env_steps"', '"train/cnt/updates"')
    allowed = {PACKAGE / "runs/metrics_cells.py", PACKAGE / "runs/foreign/names.py"}
    files = [path for room in readers for path in (PACKAGE / room).rglob("*.py") if path not in allowed]
    assert not [path for path in files if any(name in path.read_text(encoding="utf-8") for name in names)]
