"""What all runs of an environment say together: the best configurations, the settings that separate good runs from bad
ones, and whether it gets better over time."""

from __future__ import annotations

import contextlib
import difflib
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import yaml

from gymnasium_solver.config.load import load_config, shipped, to_dict
from gymnasium_solver.diagnose.history import NOT_SETTINGS, Configuration, PastRun, common_threshold, configurations
from gymnasium_solver.diagnose.over_time import Metric, over_time, result
from gymnasium_solver.diagnose.readings import baselines
from gymnasium_solver.diagnose.separation import FEWEST, are_enough, separate
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError
from gymnasium_solver.metrics.returns import possible_returns
from gymnasium_solver.runs.reader import Run, default_runs_dir, list_runs
from gymnasium_solver.statistics import Bounds, interquartile_mean, iqm_interval, wilson

SHOWN = 5  # configurations
FEW_SEEDS, MORE_SEEDS = 3, 5  # with fewer than the first, training again is over as many as the second


def insights(env_id: str, metric: str = "frames", runs_dir: Path | None = None) -> dict[str, Any]:
    """`runs`, `configurations`, `best`, `separating`, `over_time` of an environment.

    `metric` is what good means: frames or seconds to the threshold, or the return at the end.
    """
    if metric not in get_args(Metric):
        raise ConfigError(f"--metric {metric!r} is not one of {', '.join(get_args(Metric))}")
    runs = _runs_of(env_id, runs_dir)
    threshold = common_threshold(runs)
    if threshold is None:
        threshold = baselines().get(env_id, {}).get("threshold")
    chosen: Metric = metric if threshold is not None else "return"  # type: ignore[assignment]
    clocks = list(dict.fromkeys(run.clock for run in runs))
    if chosen == "frames" and len(clocks) > 1:
        counts = " and in ".join(clock.words for clock in clocks)
        raise ConfigError(
            f"runs of {env_id} are counted in {counts}, which do not mix; use --metric seconds or --metric return"
        )
    past = [PastRun(run, threshold) for run in runs]
    groups = configurations(past)
    return {
        "env_id": env_id,
        "threshold": threshold,
        "metric": chosen,
        "clock": clocks[0].name if len(clocks) == 1 else None,
        "runs": {
            "all": len(past),
            "solved": sum(run.solved is True for run in past),
            "failed": sum(run.solved is False for run in past),
            "unfinished": sum(not run.is_decided for run in past),
            "repeated": sum(run.is_decided for run in past) - sum(len(group.runs) for group in groups),
        },
        "configurations": len(groups),
        "best": _best(groups, chosen, env_id),
        "separating": _separating(groups, chosen),
        "over_time": over_time(groups, chosen),
    }


def _runs_of(env_id: str, runs_dir: Path | None) -> list[Run]:
    """Newest first."""
    every = list_runs(runs_dir)
    found = [run for run in every if run.config.get("env_id") == env_id]
    if found:
        return found
    directory = default_runs_dir(runs_dir)
    if not every:
        raise NotFoundError(f"{directory} has no runs yet; start some with: gsolve train {env_id}:ppo --seeds 5")
    known = Counter(str(run.config.get("env_id")) for run in every)
    near = difflib.get_close_matches(env_id, known, n=1, cutoff=0.0)[0]
    raise NotFoundError(
        f"{directory} has no run of {env_id!r}; the closest name with runs is {near} ({known[near]} of them): "
        f"gsolve insights {shlex.quote(near)}"
    )


# The best configurations


def _best(groups: Sequence[Configuration], metric: Metric, env_id: str) -> list[dict[str, Any]]:
    """By solved share, then by the metric, then by the reward at the end; or by the reward if that is the metric.

    Where one solved the task, those that never did are not among the best.
    """
    if metric != "return":
        groups = [group for group in groups if group.solved] or groups

    def first_keys(group: Configuration) -> tuple[float, ...]:
        if metric == "return":
            return (-_middle(run.reward for run in group.runs), -group.share)
        return (-group.share, _middle(result(run, metric) for run in group.runs))

    # Rewards settle ties only: of a thousand runs those that cannot be among the first are not read for it.
    keys = {id(group): tuple(math.inf if math.isnan(key) else key for key in first_keys(group)) for group in groups}
    ranked = sorted(groups, key=lambda group: keys[id(group)])
    last = keys[id(ranked[min(SHOWN, len(ranked)) - 1])] if ranked else ()
    chosen = [group for group in ranked if keys[id(group)] <= last]
    chosen.sort(key=lambda group: (keys[id(group)], -_known(_middle(run.reward for run in group.runs))))
    variants = _variants(env_id, [group.algo for group in chosen[:SHOWN]])
    return [_described(group, metric, variants) for group in chosen[:SHOWN]]


def _middle(values: Iterable[float]) -> float:
    """Interquartile mean of those that got there."""
    return interquartile_mean([value for value in values if math.isfinite(value)])


def _described(group: Configuration, metric: Metric, variants: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    ref, differs = _closest(group.config, variants)
    is_judged = group.runs[0].threshold is not None
    reached = [result(run, metric) for run in group.runs]
    return {
        "algo_id": group.algo,
        "seeds": len(group.runs),
        "solved": group.solved if is_judged else None,
        "solved_share": group.share if is_judged else None,
        "solved_interval": wilson(group.share, len(group.runs)) if is_judged else None,
        **({} if metric == "return" else {f"{metric}_to_threshold": _spread(reached, (0.0, math.inf))}),
        "final_reward": _spread([run.reward for run in group.runs], possible_returns(group.config)),
        "variant": ref,
        "differs": differs,
        "command": _command(ref, differs, group) if ref else None,
        "one_seed": len(group.runs) == 1,
        "runs": [run.run_id for run in group.runs],
    }


def _spread(values: Iterable[float], possible: Bounds) -> dict[str, Any]:
    finite = [value for value in values if math.isfinite(value)]
    return {
        "iqm": interquartile_mean(finite),
        "interval": iqm_interval(finite, possible=possible),
        "seeds": len(finite),
    }


def _variants(env_id: str, algos: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Configurations there are for the environment, whole: those in files, for other algorithms the defaults."""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(SolverError):  # a broken file of the user's costs the commands, nothing else
        for name in dict.fromkeys(variant for env, variant, _ in shipped(env_id) if env == env_id):
            found[f"{env_id}:{name}"] = to_dict(load_config(f"{env_id}:{name}"))
    known = {variant["algo_id"] for variant in found.values()}
    for algo in dict.fromkeys(algos):
        if algo not in known:
            with contextlib.suppress(SolverError, ImportError):
                found[f"{env_id}:{algo}"] = to_dict(load_config(f"{env_id}:{algo}"))
    return found


def _closest(config: Mapping[str, Any], variants: Mapping[str, Mapping[str, Any]]) -> tuple[str | None, dict[str, Any]]:
    """The variant of the same algorithm with the fewest fields to change, and these; None if there is no variant."""
    candidates = [
        (ref, {name: value for name, value in config.items() if name not in NOT_SETTINGS and usual.get(name) != value})
        for ref, usual in variants.items()
        if usual["algo_id"] == config.get("algo_id")
    ]
    if candidates:
        return min(candidates, key=lambda candidate: len(candidate[1]))
    return None, {name: value for name, value in config.items() if name not in NOT_SETTINGS}


def _command(ref: str, differs: Mapping[str, Any], group: Configuration) -> str | None:
    """Trains it again; None if it cannot be trained here."""
    overrides = [f"{name}={_written(value)}" for name, value in differs.items()]
    try:
        load_config(ref, overrides)
    except SolverError:
        return None
    settings = [f"-s {shlex.quote(override)}" for override in overrides]
    seeds = [f"--seeds {MORE_SEEDS}"] if len(group.runs) < FEW_SEEDS else []
    return " ".join(["gsolve train", shlex.quote(ref), *settings, *seeds])


def _written(value: Any) -> str:
    """YAML in one line."""
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1000).removesuffix("...\n").strip()


# What separates


def _separating(groups: Sequence[Configuration], metric: Metric) -> dict[str, Any]:
    good, meaning, bad_meaning = _good(groups, metric)
    above = int((good >= 0.5).sum())
    counts = {meaning: above, bad_meaning: len(good) - above}
    found: dict[str, Any] = {"good": meaning, "bad": bad_meaning, "configurations": counts, "needed": FEWEST}
    if not are_enough(good):
        missing = " and ".join(f"{FEWEST - count} more {word}" for word, count in counts.items() if count < FEWEST)
        return found | {
            "status": "not enough runs",
            "why": f"{above} {meaning}, {len(good) - above} {bad_meaning} of {len(good)} configurations; a test needs "
            f"{FEWEST} of each, so {missing}",
            "fields": [],
        }
    seen = separate([group.settings for group in groups], good)
    fields = [
        {
            "field": entry.names[0],
            "always_with": entry.names[1:],
            "better": entry.better,
            "worse": entry.worse,
            "shares": entry.shares,
            "configurations": entry.sizes,
            "difference": entry.shares[0] - entry.shares[1],
            "interval": entry.interval,
            "p_value": entry.p_value,
            "not_apart_from": entry.not_apart_from,
        }
        for entry in seen.found
    ]
    return found | {
        "status": "found" if fields else "none found",
        "why": f"{len(seen.tested)} settings tested over {len(groups)} configurations, p-values corrected (Holm)",
        "fields": fields,
        "tested": [list(names) for names in seen.tested],
        "untested": seen.untested,
        "only_by_algorithm": seen.only_by_algorithm,
    }


def _good(groups: Sequence[Configuration], metric: Metric) -> tuple[np.ndarray, str, str]:
    """Share of each configuration's runs that did well, and what that means."""
    if metric != "return":
        return np.array([group.share for group in groups]), "solved", "failed"
    rewards = [[_known(run.reward) for run in group.runs] for group in groups]
    middle = float(np.median([reward for group in rewards for reward in group])) if rewards else 0.0
    at_least = np.array([np.mean(np.array(group) >= middle) for group in rewards])
    above = np.array([np.mean(np.array(group) > middle) for group in rewards])
    if not len(groups) or abs(at_least.mean() - 0.5) <= abs(above.mean() - 0.5):  # many may have the median itself
        return at_least, f"{middle:g} or more", "less"
    return above, f"more than {middle:g}", "not more"


def _known(reward: float) -> float:
    """Where not a single episode finished it is worse than any."""
    return -math.inf if math.isnan(reward) else reward
