"""Short trainings with the change that answers each suspect, against the run as it was.

A change that clearly helps confirms its cause, one that changes nothing speaks against it. Where a bug or the
environment is suspected too, the settings known to work are tried as well: if they help, it is neither.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.diagnose.engine import Diagnosis
from gymnasium_solver.diagnose.inference import Ranked
from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.readings import TRAINING, Readings
from gymnasium_solver.errors import EnvironmentFault, SolverError
from gymnasium_solver.recommend.changes import change_for, reset
from gymnasium_solver.verify.probing.probe import CONFIRMED, HINTED, UNLIKELY, Outcome, Probe, Say, Trial
from gymnasium_solver.verify.probing.short_training import Curve, Terms, train_seeds

MOST_TRIALS = 3
MOST_SECONDS = 120.0
STARTING_SECONDS = 2.0  # of a training: building and compiling
SHARE_OF_BUDGET = 0.2  # of the run's steps, where nobody knows how many it takes
CLEARLY, HARDLY = 0.2, 0.05  # of the way from random to the threshold
SETTINGS = ("hyperparameter", "architecture")
KNOWN_TO_WORK = "the settings known to work"

Finding = Literal["helps", "changes nothing", "not settled", "no better than a part of it"]


# --- planning ---------------------------------------------------------------------------------------------------------


def plan(diagnosis: Diagnosis, config: Config, candidates: Sequence[Ranked], say: Say) -> list[Probe]:
    """One probe or none: its trials share the trainings of the run as it was."""
    performance = diagnosis.performance
    if performance.start is None or performance.threshold is None or performance.threshold <= performance.start:
        say("no training probe: without a threshold there is no telling whether a change helps")
        return []
    trials = _trials(diagnosis, config, candidates)
    if not trials:
        names = " or ".join(entry.cause.id for entry in candidates) or "something else"
        say(f"no training probe: no change of settings would show whether it is {names}")
        return []
    seeds = (config.seed, config.seed + 1)
    for count in range(len(trials), 0, -1):
        for budget in _budgets(diagnosis.readings, config):
            seconds = _seconds(diagnosis.readings, budget, (count + 1) * len(seeds))
            if seconds <= MOST_SECONDS:
                return [_probe(trials[:count], seeds, budget, seconds, candidates)]
    say(f"no training probe: it would take about {seconds:.0f} s, more than {MOST_SECONDS:.0f} s")
    return []


def _trials(diagnosis: Diagnosis, config: Config, candidates: Sequence[Ranked]) -> list[Trial]:
    """Causes that the same change answers share a trial. More steps alone are no experiment of a few seconds."""
    causes: dict[str, list[str]] = {}
    changes: dict[str, Mapping[str, Any]] = {}
    for entry in candidates:
        change = change_for(entry.cause.id, diagnosis.readings)
        if change and change.keys() != {"max_env_steps"} and _is_valid(config, change):
            key = json.dumps(change, sort_keys=True)
            changes[key] = change
            causes.setdefault(key, []).append(entry.cause.id)
    trials = [Trial(changes[key], tuple(names)) for key, names in causes.items()][:MOST_TRIALS]
    tried = {name for trial in trials for name in trial.causes}
    whole = reset(diagnosis.readings)
    # What no change answers is told from what settings cause by the settings known to work.
    unanswered = not candidates or any(entry.cause.id not in tried for entry in candidates)
    known = any(dict(trial.change) == whole for trial in trials)
    if unanswered and whole and not known and len(trials) < MOST_TRIALS and _is_valid(config, whole):
        trials.append(Trial(whole, ()))
    return trials


def _is_valid(config: Config, change: Mapping[str, Any]) -> bool:
    try:
        build_config({**to_dict(config), **change}, "probe")
    except SolverError:
        return False
    return True


def _budgets(readings: Readings, config: Config) -> list[int]:
    """What the shipped configuration needs; should that take too long, a fifth of the run's own budget."""
    fifth = max(int(SHARE_OF_BUDGET * config.max_env_steps), config.rollout)
    needed = readings.usual_steps
    if needed is None:
        return [fifth]
    needed = min(max(int(needed), config.rollout), config.max_env_steps)
    return [needed, fifth] if fifth < needed else [needed]


def _seconds(readings: Readings, budget: int, trainings: int) -> float:
    spent, steps = readings.record.get("elapsed_s"), readings.steps
    each = float(spent) / steps if spent and steps else 1e-3
    return trainings * (STARTING_SECONDS + budget * each)


def _probe(
    trials: Sequence[Trial], seeds: tuple[int, ...], budget: int, seconds: float, candidates: Sequence[Ranked]
) -> Probe:
    tried = [name for trial in trials for name in trial.causes]
    others = [entry.cause.id for entry in candidates if entry.cause.id not in tried]
    with_reset = any(not trial.causes for trial in trials)
    asked = " or ".join([*tried, *others]) if with_reset else " or ".join(tried)
    if not tried:
        asked = f"settings or {' or '.join(others)}" if others else "is it the settings"
    elif len(tried) == 1 and not (with_reset and others):
        asked = f"{asked} or something else"
    changes = "; ".join(_shown(trial) for trial in trials)
    causes = tuple([*tried, *others] if with_reset else tried)
    return Probe(
        "short-trainings", "training", f"{asked}? (tries {changes})", causes, seconds, tuple(trials), seeds, budget
    )


def _shown(trial: Trial) -> str:
    if not trial.causes:
        return KNOWN_TO_WORK
    return ", ".join(f"{name}: {_value(value)}" for name, value in trial.change.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and "start" in value:
        return f"{value['start']:g} → {value.get('end', 0):g}"
    return "null" if value is None else f"{value}"


# --- running ---------------------------------------------------------------------------------------------------------


def run(probe: Probe, diagnosis: Diagnosis, config: Config, say: Say) -> Outcome:
    limit = 2 * probe.seconds / ((len(probe.trials) + 1) * len(probe.seeds)) + 10
    try:
        with tempfile.TemporaryDirectory(prefix="gsolve-probe-") as directory:
            # A run that fails may touch the threshold and lose it again, so it is not stopped there.
            whole = Terms(probe.seeds, probe.budget, limit, Path(directory), until_solved=False)
            brief = replace(whole, until_solved=diagnosis.performance.verdict != "collapsed")
            say(f"training it unchanged, {len(probe.seeds)} seeds of {probe.budget:,} steps")
            as_it_was = train_seeds(config, {}, whole)
            again = _repeats(as_it_was[0], diagnosis)
            if again is not None:
                return _not_repeated(probe, diagnosis, again)
            trained = []
            for trial in probe.trials:
                say(f"training it with {_shown(trial)}")
                trained.append(train_seeds(config, trial.change, brief))
    except EnvironmentFault as error:
        return Outcome(probe.name, "the environment failed", str(error), {"environment-error": CONFIRMED})
    return _judge(probe, diagnosis, as_it_was, trained)


# --- judging ----------------------------------------------------------------------------------------------------------


def _score(curve: Curve, at: float, performance: Performance) -> float:
    """Share of the way from random to the threshold. What ended early, solved or diverged, keeps its last level."""
    level = curve.level(at)
    assert performance.start is not None and performance.threshold is not None
    return 0.0 if level is None else (level - performance.start) / (performance.threshold - performance.start)


def _repeats(curve: Curve, diagnosis: Diagnosis) -> str | None:
    """None if the training with the run's own seed went as the run did; else how it did better. By training
    episodes: they do not depend on when it is evaluated."""
    series = diagnosis.readings.series(TRAINING)
    if series is None:
        return None
    before = Curve(list(series.steps), list(series.values), [np.nan] * len(series.values))
    trained = replace(curve, evaluated=[np.nan] * len(curve.steps))
    was, now = (_score(part, curve.end, diagnosis.performance) for part in (before, trained))
    if now - was <= CLEARLY:
        return None
    return f"{now:.0%} of the way to the threshold after {curve.end:,.0f} steps, {was:.0%} in the run"


def _not_repeated(probe: Probe, diagnosis: Diagnosis, how: str) -> Outcome:
    odds = {entry.cause.id: UNLIKELY for entry in diagnosis.ranked if entry.cause.category in SETTINGS}
    verdict = (
        "trained again with its own settings and seed, it does well: the cause is code or an environment that has "
        "changed since or is not in its config, not a setting"
    )
    return Outcome(probe.name, verdict, how, odds)


def _judge(
    probe: Probe, diagnosis: Diagnosis, as_it_was: Sequence[Curve], trained: Sequence[Sequence[Curve]]
) -> Outcome:
    odds: dict[str, float] = {}
    verdicts, numbers = [], []
    weight = _weight(diagnosis.readings, probe.budget)
    all_gains = [_gains(curves, as_it_was, diagnosis.performance) for curves in trained]
    for trial, curves, gains in zip(probe.trials, trained, all_gains, strict=True):
        reached = np.mean([_score(curve, curve.end, diagnosis.performance) for curve in curves])
        gain = float(np.mean(gains))
        finding = _finding(gains)
        if finding == "helps" and any(
            _is_part(other, trial) and _finding(part) == "helps" and gain - float(np.mean(part)) < CLEARLY
            for other, part in zip(probe.trials, all_gains, strict=True)
        ):
            finding = "no better than a part of it"
        for cause, factor in _odds(trial, diagnosis, finding, weight).items():
            odds.setdefault(cause, factor)  # a trial of its own says more than the settings known to work
        verdicts.append(_verdict(trial, finding, weight))
        numbers.append(
            f"{_shown(trial)}: {reached:.0%} of the way to the threshold, {gain:+.0%} against the unchanged run"
        )
    ends = f"{probe.budget:,} steps, seeds {', '.join(map(str, probe.seeds))}"
    return Outcome(probe.name, "; ".join(verdicts), f"{'; '.join(numbers)} ({ends})", odds)


def _weight(readings: Readings, budget: int) -> float:
    """How much it means that nothing changed: little where a sound run would not have got far either."""
    needed = readings.usual_steps
    return min(1.0, budget / needed) if needed else 0.5


def _gains(curves: Sequence[Curve], as_it_was: Sequence[Curve], performance: Performance) -> list[float]:
    """Of each seed, at equal steps; what reached the threshold needs no more."""
    gains = []
    for curve, control in zip(curves, as_it_was, strict=True):
        at = control.end if curve.solved else min(curve.end, control.end)
        gains.append(_score(curve, at, performance) - _score(control, at, performance))
    return gains


def _finding(gains: Sequence[float]) -> Finding:
    gain = float(np.mean(gains))
    if gain > CLEARLY and min(gains) > 0:
        return "helps"
    return "changes nothing" if gain < HARDLY else "not settled"


def _is_part(one: Trial, whole: Trial) -> bool:
    return bool(one.causes) and one.change.items() <= whole.change.items() and one.change != whole.change


def _odds(trial: Trial, diagnosis: Diagnosis, finding: Finding, weight: float) -> dict[str, float]:
    if finding not in ("helps", "changes nothing"):
        return {}
    helps = finding == "helps"
    if trial.causes:
        return dict.fromkeys(trial.causes, CONFIRMED if helps else UNLIKELY**weight)
    settings = [entry.cause.id for entry in diagnosis.ranked if _resets(trial, entry, diagnosis)]
    others = [entry.cause.id for entry in diagnosis.ranked if entry.cause.category not in SETTINGS]
    up, down = (settings, others) if helps else (others, settings)
    return dict.fromkeys(up, HINTED**weight) | dict.fromkeys(down, UNLIKELY**weight)


def _resets(trial: Trial, entry: Ranked, diagnosis: Diagnosis) -> bool:
    """Whether the trial changes what this cause is about."""
    change = change_for(entry.cause.id, diagnosis.readings)
    return entry.cause.category in SETTINGS and bool(change.keys() & trial.change.keys())


def _verdict(trial: Trial, finding: Finding, weight: float) -> str:
    if not trial.causes:
        if finding == "helps":
            return f"with {KNOWN_TO_WORK} it learns: a setting is at fault"
        return f"{KNOWN_TO_WORK} change nothing: no setting is at fault" if finding == "changes nothing" else finding
    names = " or ".join(trial.causes)
    if finding == "helps":
        return f"{names} confirmed"
    if finding == "changes nothing":
        return f"{names} unlikely" if weight > 0.5 else f"{names}: no effect yet"
    return f"{names}: {finding}"
