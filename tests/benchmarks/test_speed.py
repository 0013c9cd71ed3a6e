"""The benchmark's bookkeeping: targets, medians of unsolved seeds, JSON and Markdown, and timing a process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import measurements
import processes
import speed
import table
from table import Row
from zoo import TASKS, our_overrides


def document(*rows: Row, quick: bool = False) -> dict[str, Any]:
    return {
        "date": "2026-01-02",
        "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 8, "system": "Linux, Python 3.11.7"},
        "versions": {"ours": {"jax": "0.10.2"}, "peers": {"stable-baselines3": "2.9.2"}},
        "quick": quick,
        "seeds": 5,
        "missing": {"rejax": "pip install it"},
        "measurements": {"one": {"rows": [row.to_json() for row in rows], "runs": []}},
    }


FAST = Row("speed", "steps/s", 20_000.0, peer_name="SB3", peer=4_000.0, at_least=5.0)
SOLVED = Row("solve", "s", 3.0, peer_name="SB3", peer=10.0, at_most=0.4, solved=(5, 5))
UNSOLVED = Row("solve", "s", 3.0, peer_name="SB3", peer=10.0, at_most=0.4, solved=(4, 5))
CENSORED = Row("lander", "s", 90.0, peer_name="SB3 and SBX", peer=240.0, peer_censored=True, at_most=0.5)
HELP = Row("gsolve --help", "s", 0.6, at_most=0.5)


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (FAST, True),
        (SOLVED, True),
        (UNSOLVED, False),
        (CENSORED, True),
        (HELP, False),
        (Row("no target", "s", 1.0), None),
        (Row("no peer measured", "steps/s", 9.0, peer_name="SB3", at_least=5.0), None),
        (Row("never solved", "s", None, peer_name="SB3", peer=10.0, at_most=0.4, solved=(0, 5)), False),
    ],
)
def test_target_is_met_only_by_measured_ratios_of_solved_runs(row: Row, met: bool | None) -> None:
    assert row.met is met


def test_median_counts_unsolved_seeds_as_slower_than_any() -> None:
    assert table.median([3.0, None, 1.0]) == 3.0
    assert table.median([1.0, 2.0]) == 1.5
    assert table.median([1.0, None, None]) is None
    assert table.median([1.0, None]) is None
    assert table.median([]) is None


def test_json_round_trip_keeps_rows(tmp_path: Path) -> None:
    path = tmp_path / "results" / "speed.json"
    table.save(document(FAST, SOLVED, HELP), path)
    assert table.rows_of(table.load(path)) == [FAST, SOLVED, HELP]
    assert json.loads(path.read_text())["measurements"]["one"]["rows"][0]["ratio"] == 5.0


def test_text_shows_ratio_target_and_verdict() -> None:
    text = table.as_text(document(FAST, UNSOLVED, CENSORED, quick=True))
    assert "20,000 steps/s" in text and "5×" in text and "yes" in text
    assert "3 s (4/5 solved)" in text
    assert "> 240 s SB3 and SBX" in text and "< 38%" in text
    assert "too short for conclusions" in text
    assert "Missing: rejax (pip install it)." in text


def test_markdown_goes_between_the_markers_and_again(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"# Title\n\n{table.BEGIN}\nold\n{table.END}\n\nafter\n")
    for _ in range(2):
        table.write_markdown(document(FAST), page)
    text = page.read_text()
    assert text.startswith("# Title\n") and text.endswith("\n\nafter\n") and "old" not in text
    assert "| speed | 20,000 steps/s | 4,000 steps/s SB3 | 5× | ≥ 5× | yes |" in text
    assert "Some CPU" in text and "2026-01-02" in text


def test_markdown_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Title\n")
    with pytest.raises(SystemExit, match="has no lines"):
        table.write_markdown(document(FAST), page)


def test_fastest_peer_is_the_smallest_median_or_the_cap() -> None:
    best = measurements.fastest({"sb3": [8.0, 9.0, 10.0], "rejax": [7.0, None, 8.0]}, 120.0)
    assert best == {"peer_name": "rejax", "peer": 8.0}
    best = measurements.fastest({"sb3": [None, 200.0, None], "sbx": [None] * 3}, 240.0)
    assert best == {"peer_name": "SB3 and SBX", "peer": 240.0, "peer_censored": True}
    assert measurements.fastest({}, 240.0) == {}


def test_process_lines_are_timed_and_the_rest_kept(tmp_path: Path) -> None:
    code = "import time; print('hello'); print('{\"a\": 1}', flush=True); time.sleep(0.3)"
    seen: list[int] = []
    finished = processes.run(
        [sys.executable, "-c", code], cwd=tmp_path, timeout=30, on_line=lambda pid, line: seen.append(line.data["a"])
    )
    assert finished.exit_code == 0 and seen == [1] and finished.errors == "hello\n"
    assert finished.last is not None and finished.last.seconds < finished.seconds - 0.2
    assert finished.peak_mb > 1


def test_process_is_killed_at_the_timeout(tmp_path: Path) -> None:
    finished = processes.run([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, timeout=0.3)
    assert finished.exit_code == -9 and finished.seconds < 20


def test_our_speed_and_solution_come_from_events() -> None:
    def event(seconds: float, kind: str, **data: Any) -> processes.Line:
        return processes.Line(seconds, {"event": kind, "run": "r", "data": data})

    steps = [event(2.0 + i, "epoch", metrics={measurements.STEPS: 1000 * i}) for i in range(1, 11)]
    lines = [event(1.0, "started", engine="gymnasium/native"), *steps]
    lines += [
        event(20.0, "evaluated", ep_rew_mean=400.0, solved=False),
        event(21.0, "evaluated", ep_rew_mean=480.0, solved=True),
    ]
    finished = processes.Finished(lines, 22.0, 0, 300.0, "")
    speed = measurements.our_speed(finished)
    assert speed["steps_per_second"] == pytest.approx(10_000 / 11, abs=0.1)
    assert speed["warm_steps_per_second"] == 1000.0
    assert measurements.our_solution(finished, 475.0, cap=120.0) == 21.0
    assert measurements.our_solution(finished, 475.0, cap=20.5) is None


@pytest.mark.parametrize("task", TASKS)
def test_zoo_settings_are_valid_configurations_of_ours(task: str) -> None:
    load = pytest.importorskip("gymnasium_solver.config.load")
    config = load.load_config(f"{TASKS[task].env_id}:ppo", [*our_overrides(TASKS[task]), "max_env_steps=1000000"])
    assert config.n_envs == TASKS[task].n_envs
    assert config.n_steps == TASKS[task].ppo["n_steps"]
    assert config.batch_size == TASKS[task].ppo["batch_size"]
    assert config.normalize_obs is TASKS[task].normalize


def test_measuring_one_thing_again_keeps_the_rest_of_the_day() -> None:
    today = {"date": "2026-01-02", "machine": {"cores": 2}, "versions": {}, "seeds": 5, "quick": False}
    earlier = {**today, "measurements": {"startup": {"rows": []}}}
    assert speed.kept_measurements(earlier, today) == {"startup": {"rows": []}}
    assert speed.kept_measurements({**earlier, "date": "2026-01-01"}, today) == {}
