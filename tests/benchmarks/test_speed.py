"""The benchmark's bookkeeping: targets, medians of unsolved seeds, JSON and Markdown, and timing a process."""

from __future__ import annotations

import itertools
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

from gymnasium_solver.config.load import load_config


def document(*rows: Row, quick: bool = False) -> dict[str, Any]:
    return {
        "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 8, "system": "Linux, Python 3.11.7"},
        "versions": {"ours": {"jax": "0.10.2"}, "peers": {"stable-baselines3": "2.9.2"}},
        "quick": quick,
        "seeds": 5,
        "missing": {"rejax": "pip install it"},
        "measurements": {"one": {"date": "2026-01-02", "rows": [row.to_json() for row in rows], "runs": []}},
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


@pytest.mark.integration
def test_process_lines_are_timed_and_the_rest_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "print('hello'); print('{\"a\": 1}'); print('{\"a\": 2}')"
    seen: list[int] = []
    looks = itertools.count(100.0)  # a second passes from one look at the clock to the next
    monkeypatch.setattr("time.perf_counter", lambda: next(looks))
    finished = processes.run(
        [sys.executable, "-c", code], cwd=tmp_path, timeout=30, on_line=lambda pid, line: seen.append(line.data["a"])
    )
    assert finished.exit_code == 0 and seen == [1, 2] and finished.errors == "hello\n"
    assert [line.seconds for line in finished.lines] == [2.0, 3.0] and finished.seconds == 4.0
    assert finished.peak_mb > 1


@pytest.mark.integration
def test_process_is_killed_at_the_timeout(tmp_path: Path) -> None:
    finished = processes.run([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, timeout=0.3)
    assert finished.exit_code == -9


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
    speed = measurements.our_speed(finished, warm_from=1000)
    assert speed["steps_per_second"] == pytest.approx(10_000 / 11, abs=0.1)
    assert speed["warm_steps_per_second"] == 1000.0
    assert measurements.our_solution(finished, 475.0, cap=120.0) == 21.0
    assert measurements.our_solution(finished, 475.0, cap=20.5) is None


def test_steps_of_random_actions_count_for_no_library() -> None:
    """A thousand quick random steps, 500 while it compiles, then 100 a second."""
    at = [(2.0, 500), (3.0, 1000), (9.0, 1500), (14.0, 2000), (19.0, 2500), (24.0, 3000)]
    lines = [processes.Line(1.0, {"event": "started", "data": {"engine": "gymnasium/sync"}})]
    lines += [
        processes.Line(second, {"event": "epoch", "data": {"metrics": {measurements.STEPS: n}}}) for second, n in at
    ]
    finished = processes.Finished(lines, 25.0, 0, 300.0, "")
    warm_from = TASKS["halfcheetah-sac"].warm_from(3000)
    assert warm_from == 1000 + 200
    assert measurements.our_speed(finished, warm_from)["warm_steps_per_second"] == 100.0
    assert "warm_steps_per_second" not in measurements.our_speed(finished, 3000)
    assert TASKS["cartpole"].warm_from(100_000) == 10_000  # no random actions there: the first tenth


@pytest.mark.parametrize("name", TASKS)
def test_zoo_settings_are_valid_configurations_of_ours(name: str) -> None:
    task, config = TASKS[name], our_config(name)
    assert config.algo_id == task.algorithm
    assert config.n_envs == task.n_envs
    assert config.batch_size == task.settings["batch_size"]
    assert config.gamma == task.settings["gamma"]
    assert config.hidden_dims == task.hidden_dims
    assert config.normalize_obs is task.normalize
    if task.is_off_policy:
        assert (config.train_freq, config.updates) == (task.settings["train_freq"], task.settings["gradient_steps"])
        assert config.policy_lr == task.settings["learning_rate"]
    else:
        assert config.n_steps == task.settings["n_steps"]


def our_config(name: str) -> Any:
    task = TASKS[name]
    return load_config(f"{task.env_id}:{task.algorithm}", [*our_overrides(task), "max_env_steps=1000000"])


def test_dqn_of_the_zoo_is_plain_and_explores_as_long() -> None:
    config = our_config("cartpole-dqn")
    assert not (config.double or config.dueling or config.prioritized_replay)
    assert config.target_update_interval == 10
    assert [config.epsilon.at(steps, 1000) for steps in (0, 80, 160, 1000)] == pytest.approx([1.0, 0.52, 0.04, 0.04])


# What is left to the shipped variant: where and how long it runs and what is looked at, and fields of what is off.
NOT_SPELLED_OUT = {
    *("env_id", "algo_id", "seed", "max_env_steps", "reward_threshold", "stop_when_solved", "engine", "vectorization"),
    *("n_steps", "eval_freq_epochs", "checkpoint_freq_epochs", "eval_episodes", "eval_deterministic", "replay_device"),
    *("clip_obs", "clip_reward", "bonus_coef", "bonus_lr", "bonus_bits", "priority_alpha", "priority_beta"),
    *("priority_eps", "reset_part", "sde_sample_freq"),
}


@pytest.mark.parametrize("name", [name for name in TASKS if TASKS[name].is_off_policy])
def test_nothing_that_bears_on_speed_comes_from_the_shipped_variant(name: str) -> None:
    given = {override.partition("=")[0] for override in our_overrides(TASKS[name])}
    assert set(type(our_config(name)).model_fields) - given <= NOT_SPELLED_OUT


def test_epochs_are_whole_rounds_of_acting_and_learning() -> None:
    assert measurements.epoch_rows(TASKS["cartpole-dqn"], 20_000) == 3 * 256
    assert measurements.epoch_rows(TASKS["cartpole-dqn"], 1_000) == 256
    assert measurements.epoch_rows(TASKS["pendulum-sac"], 3_000) == 150


class Rehearsal(measurements.Bench):
    """A bench whose processes are made up: ours does 300 steps per second, SB3 100 and SBX 150."""

    def __init__(self, scratch: Path, seeds: int = 1) -> None:
        super().__init__("ours", "theirs", ["sb3", "sbx"], seeds, quick=True, scratch=scratch)
        self.trained: list[tuple[str, list[str]]] = []

    def train(self, ref: str, settings: list[str], cache: Path, **_: Any) -> processes.Finished:
        self.trained.append((ref, settings))
        lines = [processes.Line(0.0, {"event": "started", "data": {"engine": "gymnasium/sync"}})]
        for second in range(1, 41):
            metrics = {measurements.STEPS: 300 * second}
            lines.append(processes.Line(second, {"event": "epoch", "data": {"metrics": metrics}}))
        lines.append(processes.Line(41.0, {"event": "evaluated", "data": {"solved": True, "ep_rew_mean": -150.0}}))
        return processes.Finished(lines, 42.0, 0, 300.0, "")

    def peer(self, name: str, task: str, seed: int, *, steps: int | None = None, cap: float = 900.0) -> dict[str, Any]:
        speed = {"sb3": 100.0, "sbx": 150.0}[name]
        return {"steps_per_second": 50.0, "warm_steps_per_second": speed, "solved_seconds": None}

    def torch_threads(self, task: str) -> int:
        return 1


def test_off_policy_throughput_is_judged_once_it_learns_against_each_peer(tmp_path: Path) -> None:
    bench = Rehearsal(tmp_path)
    sb3, sbx = measurements.pendulum_sac_throughput(bench)
    assert (sb3.what, sb3.ratio, sb3.at_least) == ("Pendulum-v1 SAC, zoo settings, once learning", 3.0, 3.0)
    assert (sbx.peer_name, sbx.ratio, sbx.at_least) == ("SBX", 2.0, 1.2)
    (ref, settings) = bench.trained[0]
    assert ref == "Pendulum-v1:sac" and "n_steps=30" in settings and "max_env_steps=600" in settings


def test_on_policy_throughput_is_told_with_compilation_too(tmp_path: Path) -> None:
    rows = measurements.cartpole_throughput(Rehearsal(tmp_path))
    assert [(row.what, row.at_least) for row in rows] == [
        ("CartPole-v1, zoo settings, once compiled", 9.0),
        ("CartPole-v1, zoo settings, with compilation", None),
    ] + [(f"CartPole-v1, zoo settings, {when}", None) for when in ("once compiled", "with compilation")]


def test_time_to_a_solution_is_of_the_shipped_variant_of_the_algorithm(tmp_path: Path) -> None:
    bench = Rehearsal(tmp_path, seeds=2)
    (row,) = measurements.pendulum_sac_solve(bench)
    assert (row.what, row.ours, row.solved) == ("Pendulum-v1 SAC to -200, cold compilation cache", 41.0, (2, 2))
    assert (row.peer_name, row.peer, row.peer_censored, row.at_most) == ("SBX", 60.0, True, 0.25)
    assert bench.trained == [("Pendulum-v1:sac", [f"seed={seed}"]) for seed in (100, 101)]


def test_the_prompt_is_timed_by_the_whole_process(tmp_path: Path) -> None:
    bench = Rehearsal(tmp_path, seeds=2)
    alone, warm, cold = measurements.cartpole_prompt(bench)
    assert {row.ours for row in (alone, warm, cold)} == {42.0}  # not 41, when it was solved
    assert (alone.peer_name, alone.at_most, alone.solved) == (None, 1.6, (2, 2))
    assert (warm.peer_name, warm.peer, warm.at_most, cold.at_most) == ("SB3", 120.0, 0.20, 0.35)
    assert bench.trained == [("CartPole-v1:ppo", [f"seed={seed}"]) for seed in (100, 100, 101, 101)]  # cold, warm


@pytest.mark.integration
def test_replay_of_stacked_frames_grows_a_process_by_one_frame_a_step(tmp_path: Path) -> None:
    script = str(Path(measurements.__file__).with_name("replay_memory.py"))
    finished = processes.run([sys.executable, script, "frames", "10000"], cwd=tmp_path, timeout=120)
    assert finished.exit_code == 0 and finished.last is not None, finished.errors
    found = finished.last.data
    assert found["transitions"] == 10_000
    assert found["frames_mb"] == pytest.approx(10_000 * 84 * 84 / 2**20)
    assert found["grown_mb"] == pytest.approx(found["frames_mb"], rel=0.05)


def test_measuring_one_thing_again_keeps_the_rest_of_any_day() -> None:
    now = {"machine": {"cores": 2}, "versions": {"ours": {"jax": "0.10.2"}}, "seeds": 5, "quick": False}
    measured = {"startup": {"date": "2026-01-02", "rows": []}}
    earlier = {**now, "measurements": measured}
    assert speed.kept_measurements(earlier, now) == measured
    others = {"machine": {"cores": 4}, "versions": {"ours": {"jax": "0.10.3"}}, "seeds": 3, "quick": True}
    for name, value in others.items():
        assert speed.kept_measurements({**earlier, name: value}, now) == {}, name


def test_footnote_tells_the_first_and_the_last_day() -> None:
    several = document(FAST)
    several["measurements"] |= {
        "two": {"date": "2026-01-05", "rows": [], "runs": []},
        "three": {"date": "2026-01-03", "rows": [], "runs": []},
    }
    assert table.footnotes(document(FAST))[0].startswith("Measured 2026-01-02 on Some CPU")
    assert table.footnotes(several)[0].startswith("Measured 2026-01-02 to 2026-01-05 on Some CPU")
