"""Where the time goes: a clock with known answers, trainings whose bottleneck was planted, and a verdict that holds
still when nothing differs."""

from __future__ import annotations

import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gymnasium_solver.config.load import build_config, load_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.verify.profiling import candidates, threads, trials
from gymnasium_solver.verify.profiling.candidates import Candidate
from gymnasium_solver.verify.profiling.clock import PHASES, Clock, Watched, phase_seconds, tree_of
from gymnasium_solver.verify.profiling.description import describe
from gymnasium_solver.verify.profiling.limits import limit_of
from gymnasium_solver.verify.profiling.measure import measure
from gymnasium_solver.verify.profiling.plot import bars, draw
from gymnasium_solver.verify.profiling.profile import profile
from gymnasium_solver.verify.profiling.text import to_markdown
from gymnasium_solver.verify.profiling.trials import Window
from tests.envs import sample_environments

STEP_SECONDS = 2e-3
SLOW = {
    "env_kwargs": {"length": 100},
    "engine": "gymnasium",
    "vectorization": "sync",
    "n_envs": 4,
    "n_steps": 32,
    "batch_size": 128,
    "n_epochs": 1,
    "eval_episodes": 1,
    "eval_freq_epochs": 10_000,
}


MOMENT = [100.0]  # that perf_counter() tells where a test has taken the clock


def pass_time(now: list[float], seconds: float) -> None:
    now[0] += seconds


class Slow(sample_environments.Clock):
    """Every step takes so long, and nothing else takes any time."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        pass_time(MOMENT, STEP_SECONDS)
        return super().step(action)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of day, which only the test moves."""
    monkeypatch.setattr(time, "perf_counter", lambda: MOMENT[0])
    return MOMENT


@pytest.fixture
def silent_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX says how long it compiles in seconds that really pass."""
    monkeypatch.setattr(Clock, "compiled", lambda clock, seconds: None)


def test_a_phase_has_its_seconds_without_those_inside_it(now: list[float]) -> None:
    clock = Clock()

    def outer() -> str:
        pass_time(now, 1.0)
        clock.call("inner", pass_time, now, 2.0)
        clock.call("inner", pass_time, now, 4.0)
        return "made"

    assert clock.call("outer", outer) == "made"
    assert clock.seconds == {("outer",): 1.0, ("outer", "inner"): 6.0}
    assert clock.calls == {("outer",): 1, ("outer", "inner"): 2}


def test_a_call_that_fails_is_booked_and_leaves_the_clock_in_order(now: list[float]) -> None:
    clock = Clock()

    def fail() -> None:
        pass_time(now, 3.0)
        raise KeyError

    with pytest.raises(KeyError):
        clock.call("outer", clock.call, "inner", fail)
    assert clock.seconds[("outer", "inner")] == 3.0
    assert clock.path == ()


def test_compilations_are_taken_out_of_the_phase_they_happen_in_and_counted_once(now: list[float]) -> None:
    clock = Clock()

    def act() -> None:
        pass_time(now, 10.0)  # of which tracing took 6, and within it an inner function's 2; then compiling 3
        now[0] -= 4.0
        clock.compiled(2.0)
        pass_time(now, 1.0)
        clock.compiled(6.0)
        pass_time(now, 3.0)
        clock.compiled(3.0)

    clock.call("act", act)
    assert clock.seconds == {("act", "compile"): 9.0, ("act",): 1.0}


def test_other_threads_are_counted_apart(now: list[float]) -> None:
    clock = Clock()
    thread = threading.Thread(target=clock.call, args=("compile", pass_time, now, 5.0))
    thread.start()
    thread.join()
    assert not clock.seconds
    assert clock.background == {"compile": 5.0}


def test_a_watched_object_is_the_object_with_its_calls_booked(now: list[float]) -> None:
    class Engine:
        n_envs = 3

        def step(self, seconds: float, *, twice: bool) -> float:
            pass_time(now, seconds)
            return seconds * (2 if twice else 1)

    clock = Clock()
    watched = Watched(Engine(), "step", clock)
    assert watched.n_envs == 3
    assert watched.step(2.0, twice=True) == 4.0
    assert clock.seconds == {("step",): 2.0}


def measured(config: Config, directory: Path, seconds: float = 2.0) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document without trials, and its phases by name."""
    found = measure(config, directory, seconds)
    document = describe(config, found)
    assert sum(phase_seconds(found.clock).values()) == pytest.approx(found.seconds)
    return document, {entry["phase"]: entry for entry in document["phases"]}


@pytest.mark.integration
def test_a_slow_environment_is_found_to_be_the_limit(tmp_path: Path, now: list[float], silent_compiler: None) -> None:
    config = load_config(f"{__name__}:Slow:ppo", SLOW)
    document, phases = measured(config, tmp_path)
    assert document["engine"] == "gymnasium/sync"
    assert phases["step"]["us_per_env_step"] == pytest.approx(1e6 * STEP_SECONDS)
    assert [name for name, entry in phases.items() if entry["seconds"] > 1e-9] == ["step"]
    limit = limit_of(document, to_dict(config), [])
    assert limit["phase"] == "step"
    assert limit["kind"] == "environment"
    assert limit["share"] == pytest.approx(1.0)
    assert document["work"]["parts_add_up_to"] is None
    assert limit["text"].startswith("the environment: ")
    assert not document["evaluation"]["was_due"]
    assert document["evaluation"]["seconds"] == pytest.approx(100 * STEP_SECONDS)  # an episode


@pytest.mark.integration
def test_a_slow_update_is_found_to_be_the_limit(
    tmp_path: Path, now: list[float], silent_compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_update = Learner.compile

    def compile_slow(learner: Learner) -> Any:
        update = compile_update(learner)

        def slow(*arguments: Any) -> Any:
            pass_time(now, 0.6)
            return update(*arguments)

        return slow

    monkeypatch.setattr(Learner, "compile", compile_slow)
    config = load_config(f"{__name__}:Slow:ppo", SLOW)  # steps of an epoch: 0.256 s
    document, phases = measured(config, tmp_path)
    assert phases["update"]["seconds"] == pytest.approx(0.6 * document["epochs"])
    assert phases["step"]["seconds"] == pytest.approx(STEP_SECONDS * document["env_steps"])
    limit = limit_of(document, to_dict(config), [])
    assert limit["phase"] == "update"
    assert limit["kind"] == "floating point"
    assert "of the floating-point limit" in limit["text"]
    work = document["work"]["update"]
    done = 1e-3 * work["mflop"] * document["gradient_steps"]
    assert work["gflops"] == pytest.approx(done / phases["update"]["seconds"])
    assert limit["share"] == pytest.approx(0.6 / 0.856, rel=0.05)  # a reset takes no time
    assert 0 < document["peak_memory_mb"] < 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "ref",
    ["CartPole-v1:ppo", "CartPole-v1:a2c", "CartPole-v1:reinforce", "CartPole-v1:dqn", "Pendulum-v1:sac",
     "FrozenLake-v1:q_learning"],
)  # fmt: skip
def test_every_kind_of_algorithm_is_accounted_for(ref: str, tmp_path: Path) -> None:
    document, phases = measured(load_config(ref), tmp_path)
    assert set(phases) == set(PHASES)
    assert all(entry["seconds"] >= 0 for entry in phases.values())
    assert all(phases[name]["seconds"] > 0 for name in ("step", "act", "update", "record", "write"))
    assert document["gradient_steps"] > 0


@pytest.mark.integration
def test_rows_of_the_compiled_engine_are_divided_into_their_parts(tmp_path: Path) -> None:
    config = load_config("CartPole-v1:ppo", {"eval_freq_epochs": 10_000})
    document, phases = measured(config, tmp_path)
    assert document["engine"] == "compiled"
    assert all(phases[name]["seconds"] > 0 for name in ("step", "act", "update"))
    assert phases["update"]["seconds"] > phases["act"]["seconds"]  # ten epochs, both ways, against one forward pass
    assert document["work"]["parts_add_up_to"] > 0
    assert document["work"]["calls_per_second"] < document["steps_per_second"] / config.rollout  # a call is a row
    assert 0 < document["work"]["update"]["of_peak"] < 1
    assert sum(limit["share"] for limit in document["limits"]) == pytest.approx(1.0)


@pytest.mark.integration
def test_a_process_of_its_own_trains_with_the_threads_it_was_given(tmp_path: Path) -> None:
    order = {"fields": to_dict(load_config("CartPole-v1:ppo")), "directory": str(tmp_path), "seconds": 0.1}
    with threads._trainer(1) as trainer:
        assert trainer(json.dumps(order)) > 0
        with pytest.raises(SolverError, match="n_envs"):
            trainer(json.dumps(order | {"fields": order["fields"] | {"n_envs": 0}}))
        assert trainer(json.dumps(order)) > 0


def test_the_compiled_engine_is_a_candidate_where_it_can_serve() -> None:
    notes: list[str] = []
    found = list(candidates.engines(load_config("CartPole-v1:ppo"), "gymnasium/native", 1e-5, notes))
    assert found[:3] == ["gymnasium/native", "compiled", "gymnasium/sync"]
    assert "compiled" not in candidates.engines(load_config("FrozenLake-v1:q_learning"), "gymnasium/sync", 1e-5, notes)
    compiled = candidates.with_engine(load_config("CartPole-v1:ppo", {"engine": "gymnasium"}), "compiled")
    assert candidates.shortest_change(load_config("CartPole-v1:ppo", {"engine": "gymnasium"}), compiled) == {
        "engine": "compiled"
    }


@pytest.mark.parametrize(
    ("ref", "factor", "expected"),
    [
        ("CartPole-v1:ppo", 2.0, {"n_envs": 32, "n_steps": 32}),
        ("CartPole-v1:ppo", 0.5, {"n_envs": 8, "n_steps": 128}),
        ("CartPole-v1:ppo", 8.0, None),  # eight times as long between updates, or rollouts of 8 steps
        ("CartPole-v1:a2c", 2.0, {"n_envs": 32, "n_steps": 16}),  # no shorter: half as many updates
        ("CartPole-v1:a2c", 4.0, None),
        ("CartPole-v1:dqn", 2.0, {"n_envs": 8, "train_freq": 8, "n_steps": 120}),
        ("CartPole-v1:dqn", 0.125, None),  # half an environment
        ("FrozenLake-v1:q_learning", 16.0, {"n_envs": 128, "n_steps": 8}),  # a table needs no stretch of an episode
    ],
)
def test_more_environments_keep_the_steps_between_updates_where_they_can(
    ref: str, factor: float, expected: dict[str, int] | None
) -> None:
    config = load_config(ref)
    candidate = candidates.resized(config, "gymnasium/sync", factor)
    if expected is None:
        assert candidate is None
    else:
        assert candidate is not None
        assert {name: getattr(candidate.config, name) for name in expected} == expected
        apart = candidates.env_steps_between_updates
        assert apart(candidate.config) in (apart(config), 2 * apart(config))


def rivals() -> tuple[Candidate, Candidate, dict[Candidate, Window]]:
    config = load_config("CartPole-v1:ppo")
    current = Candidate("compiled", config, {})
    challenger = candidates.resized(config, "compiled", 2.0)
    assert challenger is not None
    return current, challenger, {current: Window(1000.0, 0.078), challenger: Window(2000.0, 0.078)}


def judged(turns: list[tuple[float, float]]) -> dict[str, Any]:
    current, challenger, screened = rivals()
    return trials._judged(current, challenger, screened, turns, 10.0)


def test_a_gain_in_every_turn_is_recommended_as_a_config_that_loads() -> None:
    found = judged([(1000, 1500), (800, 1300), (1200, 1400), (1000, 1600), (900, 1500)])["recommendation"]
    assert found["set"] == {"n_envs": 32, "n_steps": 32}  # the engine is chosen anyway
    block = yaml.safe_load(found["yaml"])["ppo"]
    assert build_config({"env_id": "CartPole-v1", "algo_id": "ppo", **block}, "yaml").n_envs == 32
    assert found["cli"] == "gsolve train CartPole-v1:ppo --set n_envs=32 --set n_steps=32"
    assert "as many updates per env step as before" in found["effect_on_learning"]
    assert "32 steps of each environment instead of 64" in found["effect_on_learning"]


def test_fewer_updates_per_step_are_named() -> None:
    config = load_config("CartPole-v1:a2c")
    larger = candidates.resized(config, "gymnasium/native", 2.0)
    assert larger is not None
    text = trials.effect_on_learning(config, larger.config, Window(1.0, 0.004), Window(1.0, 0.002))
    assert text.startswith("one update per 512 env steps instead of 256")
    assert "0.5 times the gradient steps per env step" in text


@pytest.mark.parametrize(
    ("turns", "verdict"),
    [
        ([(1000, 1030)] * 5, "nothing to gain: the current settings are within 5 % of the best"),
        ([(1000, 700)] * 5, "nothing to gain"),
        ([(1000, 1500)] * 4 + [(1000, 990)], "nothing certain to gain"),
        ([(1000, 1500)] * 4, "no verdict: only 4 of 5 turns"),
    ],
)
def test_no_recommendation_without_a_gain_that_every_turn_shows(turns: list[tuple[float, float]], verdict: str) -> None:
    found = judged(turns)
    assert "recommendation" not in found
    assert found["verdict"].startswith(verdict)


def test_equals_are_seldom_recommended_over_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_recommendation", lambda *_: {"set": {}})
    rng = np.random.default_rng(0)
    current, challenger, screened = rivals()
    wrong = sum(
        "recommendation" in trials._judged(current, challenger, screened, turns, 10.0)
        for turns in np.exp(rng.normal(7, 0.3, (2000, trials.TURNS, 2))).tolist()
    )
    assert wrong / 2000 <= 0.05


def test_of_equals_the_smaller_change_is_the_challenger() -> None:
    config = load_config("CartPole-v1:ppo")
    twice, four_times = (candidates.resized(config, "gymnasium/sync", factor) for factor in (2.0, 4.0))
    assert twice and four_times
    assert trials._challenger(config, {four_times: 100.0, twice: 97.0}) is twice
    assert trials._challenger(config, {four_times: 100.0, twice: 80.0}) is four_times


def booked() -> Clock:
    clock = Clock()
    clock.seconds |= {
        ("run",): 0.5,
        ("run", "epoch"): 1.0,
        ("run", "epoch", "step"): 4.0,
        ("run", "epoch", "act"): 1.5,
        ("run", "epoch", "act", "compile"): 0.5,
        ("run", "epoch", "update"): 2.0,
        ("run", "epoch", "update", "transfer"): 0.25,
        ("run", "evaluate", "act"): 0.75,
        ("run", "evaluate", "write"): 0.25,
        ("run", "evaluate"): 1.0,
    }
    return clock


def test_seconds_go_to_the_phase_they_belong_to() -> None:
    assert phase_seconds(booked()) == {
        "step": 4.0,
        "act": 1.5,
        "transfer": 0.25,
        "update": 2.0,
        "record": 1.0,
        "evaluate": 1.75,
        "write": 0.25,
        "compile": 0.5,
        "other": 0.5,
    }


def test_the_icicle_nests_without_overlap() -> None:
    tree = tree_of(booked())
    found = list(bars(tree))
    assert found[0].seconds == pytest.approx(sum(booked().seconds.values()))
    names = {(bar.name, bar.depth): bar.seconds for bar in found}
    assert names["collect", 1] == pytest.approx(7.0)
    assert names["learn", 1] == pytest.approx(2.25)
    for depth in {bar.depth for bar in found}:
        row = sorted((bar.start, bar.start + bar.seconds) for bar in found if bar.depth == depth)
        assert all(end <= start + 1e-9 for (_, end), (start, _) in itertools.pairwise(row))
    document = {"tree": tree, "seconds": tree["seconds"], "env_id": "E", "algo_id": "ppo", "engine": "e", "n_envs": 1}
    assert draw(document).startswith(b"\x89PNG")


@pytest.mark.parametrize("seconds", [0.5, 0.0, -1.0, float("nan"), float("inf")])
def test_too_short_to_measure(seconds: float) -> None:
    with pytest.raises(ConfigError, match="use at least 2"):
        profile("CartPole-v1:ppo", seconds=seconds)


def test_an_unknown_environment_is_told_before_anything_is_measured() -> None:
    with pytest.raises(NotFoundError, match="CartPol"):
        profile("CartPol-v1:ppo")


@pytest.mark.slow
def test_the_whole_profile_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    document = profile("CartPole-v1:ppo", {"eval_freq_epochs": 50}, seconds=2, out=tmp_path / "out", say=said.append)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out", "profile.json", "profile.md", "profile.png"]
    assert len(said) > 4
    assert [trial["is_current"] for trial in document["trials"]].count(True) == 1
    assert all(trial["steps_per_second"] > 0 for trial in document["trials"])
    assert "![" in (tmp_path / "out" / "profile.md").read_text()
    assert document["limit"]["text"] in to_markdown(document)
