"""What a checkpoint keeps beside the networks that act: target networks, statistics, the replay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gymnasium_solver.diagnose.checkpoints.finding import Finding, between, number
from gymnasium_solver.diagnose.checkpoints.layers import Arrays, is_replay, is_target, part_of
from gymnasium_solver.plain import listed

_CONSTANT = 1e-8  # variance of an observation that does not change
_ROWS = 2048  # of a replay, looked at


def twins(arrays: Arrays) -> dict[str, str]:
    """Target tensors and the online ones they follow."""
    found = {}
    for name in filter(is_target, arrays):
        if name.startswith("target/"):
            rest = name.removeprefix("target/")
            candidates = [f"params/{rest}", f"params/critic/{rest}"]
        else:
            candidates = [re.sub(r"_target(?=[._]|$)|(?<![a-z])target[._]", "", name)]
            candidates += [re.sub(r"(?<![a-z])target_", prefix, name) for prefix in ("q_", "online_")]
        online = next((c for c in candidates if c in arrays and c != name), None)
        if online and arrays[online].shape == arrays[name].shape:
            found[name] = online
    return found


def target_findings(
    arrays: Arrays, earlier: Arrays | None, meta: Mapping[str, Any], gradient_steps: float | None
) -> Iterator[Finding]:
    pairs = twins(arrays)
    if not pairs or gradient_steps == 0:
        return
    config = meta.get("config") or {}
    if config.get("reset_interval") is not None:  # a fresh start makes them equal
        return
    interval = number(config.get("target_update_interval")) or 1.0
    copied = interval > 1  # now and then as a whole, else a share at every step
    if all(np.array_equal(arrays[target], arrays[online]) for target, online in pairs.items()):
        yield Finding(
            "target-equals-online",
            "medium" if copied else "high",
            f"all {len(pairs)} tensors of the target network equal those of the online one",
            tuple(sorted({part_of(name) for name in pairs})),
            0.0,
            "values are learnt towards themselves: there is no target network, and Q-values may run away"
            + ("; or it was copied at exactly this step" if copied else ""),
            "make the target a separate copy, with tau of about 0.005 or an interval of 500 to 10000 steps",
        )
    if earlier is None or not all(name in earlier for pair in pairs.items() for name in pair):
        return
    online_moved = any(not np.array_equal(arrays[name], earlier[name]) for name in pairs.values())
    stood = all(np.array_equal(arrays[name], earlier[name]) for name in pairs)
    since = between(meta, "env_steps")
    due = not copied or (since is not None and since >= 2 * interval)
    if stood and online_moved and due:
        yield Finding(
            "target-never-moved",
            "high",
            "the target network has not changed since the earlier checkpoint, while the online one has",
            tuple(sorted({part_of(name) for name in pairs})),
            0.0,
            "values are learnt towards those of an old network and cannot propagate more than one step",
            "update the target: tau above 0, or an interval shorter than the run",
        )


def statistics_findings(arrays: Arrays, env_steps: float | None) -> Iterator[Finding]:
    parts = {leaf: arrays.get(f"obs_statistics/{leaf}") for leaf in ("mean", "var", "count")}
    mean, var, count = parts["mean"], parts["var"], parts["count"]
    if mean is None or var is None:
        return
    kind, where = "observation-statistics-degenerate", ("obs_statistics",)
    broken = int((~np.isfinite(mean) | ~np.isfinite(var) | (var < 0)).sum())
    if broken:
        yield Finding(
            kind,
            "critical",
            f"{broken} of {var.size} dimensions of the observation statistics are not finite or have negative variance",
            where,
            broken,
            "normalised observations are NaN or wrong, and so is everything computed from them",
            "look for NaN or infinity in the environment's observations; continue from an earlier checkpoint",
        )
        return
    seen = float(count.reshape(())) if count is not None and count.size == 1 else None
    if seen == 0 and env_steps:
        yield Finding(
            kind,
            "high",
            f"the observation statistics were never updated in {env_steps:,.0f} env steps",
            where,
            0.0,
            "observations are not normalised although the policy expects them to be",
            "update the statistics in training, and save and load them with the policy",
        )
        return
    if seen is not None and env_steps and seen < 0.5 * env_steps:
        yield Finding(
            "observation-statistics-behind",
            "medium",
            f"the observation statistics cover only {seen:,.0f} of {env_steps:,.0f} env steps",
            where,
            seen / env_steps,
            "they were reset or not restored: the policy sees different numbers from those it was trained on",
            "save and restore the statistics together with the policy",
        )
    still = np.flatnonzero(var.reshape(-1) < _CONSTANT)
    if still.size:
        share = still.size / var.size
        yield Finding(
            kind,
            "high" if share == 1 else "info",  # most of a picture's or a memory's dimensions may rightly stand still
            f"{still.size} of {var.size} observation dimensions never change: {listed(map(str, still.tolist()), 8)}",
            where,
            share,
            "they carry no information, and normalising turns the smallest later change of one into a huge number",
            "fix the environment if they should change; otherwise leave them out",
        )


def replay_findings(arrays: Arrays) -> Iterator[Finding]:
    """Rewards and observations of a replay; of a large one, rows all over it."""
    broken = {}
    for name, array in arrays.items():
        if is_replay(name) and array.dtype.kind == "f" and array.ndim:
            rows = array[:: max(1, len(array) // _ROWS)]
            if count := int(rows.size - np.isfinite(rows).sum()):
                broken[name] = count
    if broken:
        yield Finding(
            "non-finite-replay",
            "critical",
            "NaN or infinity in the replay: " + listed((f"{name} ({count} seen)" for name, count in broken.items()), 3),
            tuple(broken),
            sum(broken.values()),
            "every minibatch that draws such a row makes the networks NaN",
            "fix the environment that produced these numbers, and start with a fresh replay",
        )
