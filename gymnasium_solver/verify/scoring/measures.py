"""The figures of a score card, each with its interval and held against its target.

Intervals are bootstraps: over episodes of one seed, or over seeds and the episodes within them where there are several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gymnasium_solver.plain import plain
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import steps_to_threshold
from gymnasium_solver.statistics import FEWEST, LEVEL, RESAMPLES, bootstrap_interval, wilson

MOST_EPISODES, LEAST_SUCCESS, MOST_SPREAD, LEAST_TRANSFER, LEAST_KEPT = 10_000, 0.9, 0.1, 0.8, 0.8
TAIL = (1 - LEVEL) / 2
NO_BETTER = "the policy is not shown to be better than random actions on its own task, so there is nothing to keep"

Verdict = Literal["pass", "fail", "not measured", "no target"]


@dataclass(frozen=True)
class Target:
    text: str
    meets: Callable[[float], bool]


EPISODES_TARGET = Target(f"under {MOST_EPISODES:,} episodes", lambda value: value < MOST_EPISODES)
SUCCESS_TARGET = Target(f"over {LEAST_SUCCESS:.0%}", lambda value: value > LEAST_SUCCESS)
SPREAD_TARGET = Target(f"under {MOST_SPREAD:.0%}", lambda value: value < MOST_SPREAD)
TRANSFER_TARGET = Target(f"at least {LEAST_TRANSFER:.0%}", lambda value: value >= LEAST_TRANSFER)
KEPT_TARGET = Target(f"at least {LEAST_KEPT:.0%}", lambda value: value >= LEAST_KEPT)


@dataclass(frozen=True)
class Measure:
    """One figure; `certain` is False where its interval reaches over the target, None where there is no interval."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    target: str = ""
    verdict: Verdict = "no target"
    certain: bool | None = None
    note: str = ""
    per_seed: Mapping[int, float | None] = field(default_factory=dict)
    tasks: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Plays:
    """Returns of one seed's policy, an array of episodes each."""

    seed: int
    home: np.ndarray
    noisy: np.ndarray
    success: np.ndarray | None  # 1 or 0 an episode, where the environment tells
    tasks: Mapping[str, np.ndarray]


def efficiency(runs: Mapping[int, Run], threshold: float | None) -> list[Measure]:
    """The median over seeds; a seed that never got there counts as infinite."""
    if threshold is None:
        unknown = "no threshold is known: set reward_threshold"
        return [
            _not_measured("episodes to solve", EPISODES_TARGET, unknown),
            Measure("frames to solve", None, note=unknown),
        ]
    frames = {seed: _reached(run, threshold) for seed, run in runs.items()}
    episodes = {seed: _episodes_at(run, frames[seed]) for seed, run in runs.items()}
    solved = sum(value is not None for value in frames.values())
    note = f"solved in {solved} of {len(runs)} seeds"
    return [
        _median("episodes to solve", "episodes", episodes, EPISODES_TARGET, note),
        _median("frames to solve", "env steps", frames, None, note),
    ]


def _median(name: str, unit: str, found: Mapping[int, float | None], target: Target | None, note: str) -> Measure:
    values = np.array([math.inf if value is None else value for value in found.values()])
    middle: Callable[[np.ndarray], np.ndarray] = lambda drawn: np.quantile(drawn, 0.5, axis=-1, method="higher")  # noqa: E731
    interval = bootstrap_interval(values, statistic=middle) if len(values) >= FEWEST else None
    return _judged(name, float(middle(values)), interval, target, note, unit=unit, per_seed=found)


def _reached(run: Run, threshold: float) -> float | None:
    """Env steps at the first evaluation at the threshold, of a run that counts as solved."""
    steps = steps_to_threshold(run, threshold) if run.summary()["solved"] else None
    return None if steps is None else float(steps)


def _episodes_at(run: Run, env_steps: float | None) -> float | None:
    steps, episodes = run.metrics.series("train/cnt/episodes")
    if env_steps is None or not episodes.size:
        return None
    return float(episodes[min(int(np.searchsorted(steps, env_steps)), len(episodes) - 1)])


def success(plays: list[Plays], threshold: float | None) -> Measure:
    name = "success rate"
    told = [play.success for play in plays if play.success is not None]
    if told:
        flags, note = told, "an episode succeeds if the environment says so (is_success)"
    elif threshold is not None:
        flags = [(play.home >= threshold).astype(float) for play in plays]
        note = f"an episode succeeds if its return is at least the threshold, {threshold:g}"
    else:
        unknown = "unknown: the environment has neither a threshold nor is_success; set reward_threshold"
        return _not_measured(name, SUCCESS_TARGET, unknown)
    per_seed = {play.seed: float(flag.mean()) for play, flag in zip(plays, flags, strict=True)}
    low, high = _quantiles(_resampled(flags))
    # Where all succeed, resampling knows no failure; the binomial bound does.
    fewest, most = wilson(float(np.concatenate(flags).mean()), sum(map(len, flags)))
    interval = min(low, fewest), max(high, most)
    return _judged(name, _mean(flags), interval, SUCCESS_TARGET, note, per_seed=per_seed)


def mean_return(plays: list[Plays], threshold: float | None) -> Measure:
    homes = [play.home for play in plays]
    note = "" if threshold is None else f"the threshold, a mean over episodes, is {threshold:g}"
    return _judged("mean return", _mean(homes), _quantiles(_resampled(homes)), None, note, per_seed=_by_seed(plays))


def spread(plays: list[Plays]) -> Measure:
    """Coefficient of variation over seeds: standard deviation of their mean returns by the size of the mean."""
    name, means = "spread over seeds", np.array(list(_by_seed(plays).values()))
    seeds = "one seed" if len(means) == 1 else f"{len(means)} seeds"
    if len(means) < FEWEST:
        note = f"only {seeds}, {FEWEST} are needed; train more with gsolve train --seeds {FEWEST}"
        return _not_measured(name, SPREAD_TARGET, note)
    if means.mean() == 0:
        return _not_measured(name, SPREAD_TARGET, "the mean return is 0, so a relative spread is not defined")
    from scipy.special import chdtri

    value, freedom = float(means.std(ddof=1) / abs(means.mean())), len(means) - 1
    low, high = (value * math.sqrt(freedom / float(chdtri(freedom, share))) for share in (TAIL, 1 - TAIL))
    note = f"standard deviation over {seeds} relative to their mean; the interval assumes a normal distribution"
    return _judged(name, value, (low, high), SPREAD_TARGET, note)


def transfer(plays: list[Plays], chance: Mapping[str, np.ndarray], threshold: float | None = None) -> Measure:
    """`chance`: returns of random actions on each task; "" is home."""
    name, names = "transfer to similar tasks", [task for task in chance if task]
    if not names:
        note = "no similar task is known for this environment; give --transfer ENV or --transfer ENV:name=value"
        return _not_measured(name, TRANSFER_TARGET, note)
    tasks, draws = [], []
    for task in names:
        there = [play.tasks[task] for play in plays]
        found = _kept(plays, there, chance[""], chance[task])
        if found is None:
            return _not_measured(name, TRANSFER_TARGET, NO_BETTER)
        low, high = _quantiles(found[1])
        returns = {"return": _mean(there), "random_return": float(chance[task].mean())}
        reached = {"success_rate": None if threshold is None else _share_at(there, threshold)}
        tasks.append({"task": task, "kept": found[0], "low": low, "high": high, **returns, **reached})
        draws.append(found[1])
    value, interval = float(np.mean([task["kept"] for task in tasks])), _quantiles(np.mean(draws, axis=0))
    note = f"performance kept, mean over {len(names)} task{'s' if len(names) > 1 else ''}"
    return _judged(name, value, interval, TRANSFER_TARGET, note, tasks=tasks)


def robustness(
    plays: list[Plays], chance: Mapping[str, np.ndarray], noise: float, threshold: float | None = None
) -> Measure:
    name, noisy = f"kept at {noise:.0%} observation noise", [play.noisy for play in plays]
    found = _kept(plays, noisy, chance[""], chance[""])
    if found is None:
        return _not_measured(name, KEPT_TARGET, NO_BETTER)
    homes = [play.home for play in plays]
    note = f"return {_mean(noisy):.4g} with noise, {_mean(homes):.4g} without, {chance[''].mean():.4g} at random"
    if threshold is not None:
        reached, before = _share_at(noisy, threshold), _share_at(homes, threshold)
        note += f"; {reached:.0%} of the episodes at the threshold, {before:.0%} without"
    return _judged(name, found[0], _quantiles(found[1]), KEPT_TARGET, note)


def training_time(runs: Mapping[int, Run]) -> Measure:
    found = {seed: run.summary()["duration_s"] for seed, run in runs.items()}
    known = [value for value in found.values() if value is not None]
    if not known:
        return Measure("training time", None, note="not on record")
    note = "median over seeds, on the machine that trained them, evaluations included"
    return _judged("training time", float(np.median(known)), None, None, note, unit="s", per_seed=found)


# --- statistics -----------------------------------------------------------------------------------------------------


def _kept(
    plays: list[Plays], there: list[np.ndarray], chance_home: np.ndarray, chance_there: np.ndarray
) -> tuple[float, np.ndarray] | None:
    """Gain over random actions there, as a share of the gain at home, and that of resamples; None without a gain."""
    homes = [play.home for play in plays]
    gains = _resampled(homes) - _resampled([chance_home], salt=1)
    if np.quantile(gains, TAIL) <= 0:
        return None
    gains_there = _resampled(there, salt=2) - _resampled([chance_there], salt=1 if chance_there is chance_home else 3)
    kept = (_mean(there) - chance_there.mean()) / (_mean(homes) - chance_home.mean())
    return float(kept), gains_there / np.maximum(gains, 1e-12)


def _resampled(groups: list[np.ndarray], salt: int = 0) -> np.ndarray:
    """Means [R] of resampled seeds (groups) and of resampled episodes within them. The same seeds are drawn whatever
    the salt, so that two means of the same seeds vary together."""
    episodes, seeds = np.random.default_rng((1, salt)), np.random.default_rng(0)
    means = [group[episodes.integers(len(group), size=(RESAMPLES, len(group)))].mean(axis=1) for group in groups]
    drawn = seeds.integers(len(groups), size=(len(groups), RESAMPLES))
    return np.take_along_axis(np.stack(means), drawn, axis=0).mean(axis=0)


def _quantiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, (TAIL, 1 - TAIL))
    return float(low), float(high)


def _mean(groups: list[np.ndarray]) -> float:
    """Over seeds, each of which counts the same."""
    return float(np.mean([group.mean() for group in groups]))


def _share_at(groups: list[np.ndarray], threshold: float) -> float:
    return _mean([group >= threshold for group in groups])


def _by_seed(plays: list[Plays]) -> dict[int, float | None]:
    return {play.seed: float(play.home.mean()) for play in plays}


def _judged(
    name: str, value: float, interval: tuple[float, float] | None, target: Target | None, note: str, **more: Any
) -> Measure:
    """Infinite numbers, of seeds that never got there, are None in the result."""
    if target is not None:
        met = target.meets(value)
        certain = None if interval is None else all(target.meets(bound) == met for bound in interval)
        more |= {"target": target.text, "verdict": "pass" if met else "fail", "certain": certain}
    low, high = interval or (math.nan, math.nan)
    return Measure(name, plain(value), plain(low), plain(high), note=note, **more)


def _not_measured(name: str, target: Target, note: str) -> Measure:
    return Measure(name, None, target=target.text, verdict="not measured", note=note)
