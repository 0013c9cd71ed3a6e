"""How fast other numbers of environments and other engines are here: short trainings, one after another.

One window of each candidate finds a challenger. It then takes turns with the current settings, and only those turns
decide: what was picked for being fast once must be fast again, and whatever slows the machine meanwhile slows both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.load import to_dict
from gymnasium_solver.config.schema import Config, OffPolicyConfig
from gymnasium_solver.errors import SolverError
from gymnasium_solver.metrics.clocks import ENV_STEPS, UPDATES
from gymnasium_solver.verify.profiling.candidates import (
    Candidate,
    engines,
    env_steps_between_updates,
    resized,
    shortest_change,
    with_engine,
)
from gymnasium_solver.verify.profiling.measure import NEVER, Measured, Row, lasting, run_until

TURNS = 5  # that one of two equals wins all of them has odds of 1 in 32
WORTH = 1.05  # times as fast, at least, to be worth a change
BUDGET = 6.0  # times the seconds of the profile, for all trials
SCREENING, OVERTIME = 0.5, 1.5  # of the budget, at most: for one window each, and until the last turn begins
SAME = 0.95  # of the best pace, at which the smaller change is the better challenger
CLOSE = 0.7  # of the fastest engine's pace, at which another may overtake it with more environments


@dataclass(frozen=True)
class Window:
    steps_per_second: float
    gradient_steps: float  # for each env step


Run = Callable[[Candidate], float]  # its steps per second


def compare(
    config: Config, measured: Measured, directory: Path, seconds: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """`trials`, `final`, `recommendation`, `verdict`, `notes` of the document."""
    begun, length = time.perf_counter(), window_seconds(seconds)
    notes: list[str] = []
    untried = 0
    current = Candidate(measured.engine, config, {})
    screened: dict[Candidate, Window] = {}

    def time_left(share: float = 1.0) -> bool:
        return time.perf_counter() - begun < share * BUDGET * seconds

    def run(candidate: Candidate) -> float:
        """Steps per second, 0 where it does not run."""
        nonlocal untried
        if not time_left(SCREENING):
            untried += 1
            return 0.0
        try:
            window = screened[candidate] = throughput(candidate.config, directory, length)
        except SolverError as error:
            notes.append(f"{candidate.name}: {error}")
            return 0.0
        say(f"{candidate.name}: {window.steps_per_second:,.0f} steps/s")
        return window.steps_per_second

    say(f"short trials, {length:g} s each, within {BUDGET * seconds:.0f} s")
    for engine in engines(config, measured.engine, measured.vector_step_seconds, notes):
        run(current if engine == current.engine else with_engine(config, engine))
    speeds = {candidate.engine: window.steps_per_second for candidate, window in screened.items()}
    for engine in sorted(speeds, key=lambda engine: -speeds[engine])[:2]:
        if speeds[engine] > CLOSE * max(speeds.values()):
            _climb(config, engine, speeds[engine], run)
    if untried:
        notes.append(f"{untried} candidates were not tried for lack of time; a larger --seconds allows more")
    rivals = [candidate for candidate in screened if candidate is not current]
    if current not in screened or not rivals:
        why = "the time was too short for a trial" if untried else "there is nothing else to try here"
        return _document(current, None, screened, [], notes) | {"verdict": f"no verdict: {why}"}
    challenger = _challenger(config, {candidate: screened[candidate].steps_per_second for candidate in rivals})
    say(f"{TURNS} turns of the current settings against {challenger.name}")
    turns: list[tuple[float, float]] = []
    while len(turns) < TURNS and time_left(OVERTIME):
        order = (current, challenger) if len(turns) % 2 == 0 else (challenger, current)
        try:
            pace = {candidate: throughput(candidate.config, directory, length).steps_per_second for candidate in order}
        except SolverError as error:
            notes.append(f"the turns ended early: {error}")
            break
        turns.append((pace[current], pace[challenger]))
    return _document(current, challenger, screened, turns, notes) | _judged(
        current, challenger, screened, turns, seconds
    )


def window_seconds(seconds: float) -> float:
    return min(max(seconds / 10, 0.5), 3.0)


def _challenger(config: Config, pace: Mapping[Candidate, float]) -> Candidate:
    """The fastest; of those as good as equal, the one nearest to the current number of environments."""
    best = max(pace.values())
    equals = [candidate for candidate in pace if pace[candidate] >= SAME * best]
    return min(equals, key=lambda c: (abs(np.log2(c.config.n_envs / config.n_envs)), -pace[c]))


def throughput(config: Config, directory: Path, seconds: float) -> Window:
    """Of a training under way: from the end of its first epoch that learnt, when all is compiled, without evaluations
    and checkpoints."""
    marks: list[tuple[float, float, float]] = []
    without = {"eval_freq_epochs": NEVER, "checkpoint_freq_epochs": NEVER, "eval_deterministic": False}

    def on_row(row: Row) -> None:
        if row[UPDATES.column] > 0:
            marks.append((time.perf_counter(), row[ENV_STEPS.column], row[UPDATES.column]))

    def is_enough() -> bool:
        return len(marks) > 1 and marks[-1][0] - marks[0][0] >= seconds

    run_until(lasting(config, **without), directory, on_row, is_enough)
    spent, steps, learnt = (last - first for first, last in zip(marks[0], marks[-1], strict=True))
    return Window(steps / spent, learnt / steps)


def _climb(config: Config, engine: str, best: float, run: Run) -> None:
    """More environments while that helps, forgiving one step that does not; fewer only where more did not help."""
    for direction, patience in ((2.0, 2), (0.5, 1)):
        factor, misses, before = direction, 0, best
        while misses < patience and (candidate := resized(config, engine, factor)):
            speed = run(candidate)
            misses = 0 if speed > WORTH * best else misses + 1
            factor, best = factor * direction, max(best, speed)
        if best > before:
            return


def _document(
    current: Candidate,
    challenger: Candidate | None,
    screened: Mapping[Candidate, Window],
    turns: Sequence[tuple[float, float]],
    notes: list[str],
) -> dict[str, Any]:
    trials = [
        {
            "engine": candidate.engine,
            "n_envs": candidate.config.n_envs,
            "n_steps": candidate.config.n_steps,
            "steps_per_second": window.steps_per_second,
            "updates_per_1000_steps": 1000 / env_steps_between_updates(candidate.config),
            "gradient_steps_per_1000_steps": 1000 * window.gradient_steps,
            "is_current": candidate is current,
        }
        for candidate, window in screened.items()
    ]
    final = None
    if challenger is not None and turns:
        gains = [then / now for now, then in turns]
        final = {
            "current": {"name": current.name, "steps_per_second": [now for now, _ in turns]},
            "challenger": {"name": challenger.name, "steps_per_second": [then for _, then in turns]},
            "gain": {"low": min(gains), "mid": float(np.median(gains)), "high": max(gains)},
        }
    return {"trials": trials, "final": final, "recommendation": None, "notes": notes}


def _judged(
    current: Candidate,
    challenger: Candidate,
    screened: Mapping[Candidate, Window],
    turns: Sequence[tuple[float, float]],
    seconds: float,
) -> dict[str, Any]:
    """`verdict`, and `recommendation` where there is one: only a gain that every turn showed."""
    if len(turns) < TURNS:
        enough = seconds * TURNS / max(1, len(turns))
        return {"verdict": f"no verdict: only {len(turns)} of {TURNS} turns fitted in; try --seconds {enough:.0f}"}
    gains = [then / now for now, then in turns]
    gain = float(np.median(gains))
    if gain < WORTH:
        shown = f"{min(gains):.2f} to {max(gains):.2f} times from turn to turn"
        return {"verdict": f"nothing to gain: the current settings are within 5 % of the best ({shown})"}
    if min(gains) <= 1:
        shown = f"{gain:.2f} times as fast, but {min(gains):.2f} to {max(gains):.2f} from turn to turn"
        return {"verdict": f"nothing certain to gain: {challenger.name} is {shown}"}
    recommended = _recommendation(current, challenger, screened)
    verdict = f"{challenger.name}: {gain:.2f} times the steps per second ({min(gains):.2f} to {max(gains):.2f})"
    return {"verdict": verdict, "recommendation": recommended}


def _recommendation(current: Candidate, challenger: Candidate, screened: Mapping[Candidate, Window]) -> dict[str, Any]:
    from gymnasium_solver.diagnose.readings import Readings
    from gymnasium_solver.recommend.recommendations import as_command, as_yaml

    change = shortest_change(current.config, challenger)
    readings = Readings(current.config.env_id, "", to_dict(current.config), {})
    return {
        "set": change,
        "yaml": as_yaml(change, readings),
        "cli": as_command(change, readings),
        "effect_on_learning": effect_on_learning(
            current.config, challenger.config, screened[current], screened[challenger]
        ),
    }


def effect_on_learning(before: Config, after: Config, learnt_before: Window, learnt_after: Window) -> str:
    old, new = env_steps_between_updates(before), env_steps_between_updates(after)
    if old == new:
        parts = [f"as many updates per env step as before (one per {new:,})"]
    else:
        parts = [f"one update per {new:,} env steps instead of {old:,}"]
    grads_before, grads_after = learnt_before.gradient_steps, learnt_after.gradient_steps
    if abs(grads_after / grads_before - 1) > 0.02:
        parts.append(f"{grads_after / grads_before:.2g} times the gradient steps per env step")
    if not isinstance(after, OffPolicyConfig) and before.n_steps != after.n_steps:
        ahead = "a shorter" if after.n_steps < before.n_steps else "a longer"
        parts.append(
            f"a rollout holds {after.n_steps} steps of each environment instead of {before.n_steps}, so actions are "
            f"judged over {ahead} stretch"
        )
    if before.n_envs == after.n_envs:
        parts.append("the environments follow the same rules, with different random streams")
    return "; ".join(parts)
