"""The space of a sweep that names none: the fields of each algorithm that are tuned first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.verify.sweeping.space import Parameter

GAMMAS = [0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
LAMBDAS = [0.8, 0.9, 0.95, 0.98, 1.0]
BATCHES = [128, 256, 512]
# A factor around the base value, choices that the base value joins, or a range that reaches at least as far as it.
LEARNING: dict[str, Any] = {"policy_lr": 10, "gamma": GAMMAS}
ENTROPY = {"ent_coef": (0.0, 0.02)}
NOISY_REPLAY = {**LEARNING, "batch_size": BATCHES, "tau": 4, "noise_std": (0.0, 0.5)}
TABLE = {**LEARNING, "epsilon.to": (0.05, 0.9)}
USUAL: dict[str, dict[str, Any]] = {
    "ppo": {
        **LEARNING,
        **ENTROPY,
        "gae_lambda": LAMBDAS,
        "clip_range": [0.1, 0.2, 0.3],
        "n_epochs": [4, 10, 20],
        "batch_size": [32, 64, *BATCHES],
    },
    "a2c": {**LEARNING, **ENTROPY, "gae_lambda": LAMBDAS, "n_steps": [5, 8, 16, 32]},
    "reinforce": {**LEARNING, **ENTROPY},
    "dqn": {
        **LEARNING,
        "batch_size": [32, 64, *BATCHES],
        "update_to_data": [0.25, 0.5, 1.0],
        "target_update_interval": 10,
    },
    "ddpg": NOISY_REPLAY,
    "td3": NOISY_REPLAY,
    "sac": {**LEARNING, "batch_size": BATCHES, "tau": 4, "update_to_data": [0.25, 0.5, 1.0]},
    "q_learning": TABLE,
    "sarsa": TABLE,
}


def usual_space(base: Mapping[str, Any]) -> list[Parameter]:
    """The fields that are tuned first, around the base config; a schedule by its start."""
    space = []
    for name, usual in USUAL[base["algo_id"]].items():
        head, _, key = name.partition(".")
        known: Any = base.get(head)
        if isinstance(known, Mapping):
            name, known = f"{head}.{key or 'start'}", known.get(key or "start")
        elif key:
            continue
        if not isinstance(known, int | float):  # unset, or left to the algorithm
            continue
        if isinstance(usual, list):
            space.append(Parameter(name, choices=tuple(sorted({*usual, known}))))
        elif isinstance(usual, tuple):
            space.append(Parameter(name, low=usual[0], high=max(usual[1], known)))
        elif known > 0:
            whole = isinstance(known, int)
            high = known * usual
            if head == "tau" or USUAL[base["algo_id"]] is TABLE:
                high = min(high, 1.0)  # a share
            low = max(1, round(known / usual)) if whole else known / usual
            space.append(Parameter(name, low=low, high=high, log=True, whole=whole))
    return space
