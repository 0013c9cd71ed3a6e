"""What a difference between two configurations means, in a sentence, by what was measured in their runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import all_cards, find_card
from gymnasium_solver.config.schedules import largest
from gymnasium_solver.metrics.clocks import ENV_STEPS, UPDATES
from gymnasium_solver.plain import number
from gymnasium_solver.verify.comparison.sides import Side
from gymnasium_solver.verify.comparison.wording import compared

KL = ("median KL", "train/metrics/kl_divergence", 0.0)
CLIPPED_RATIOS = ("share of clipped ratios", "train/metrics/clip_fraction", 0.0)
ENTROPY = ("relative entropy in the last third", "train/metrics/entropy_relative", 2 / 3)
EXPLAINED = ("explained variance in the last third", "train/metrics/explained_variance", 2 / 3)
CLIPPED_STEPS = ("share of clipped gradient steps", "train/metrics/grad_clip_fraction", 0.0)
UPDATE_SIZE = ("relative size of an update", "train/metrics/update_norm_ratio", 0.0)
TD_ERROR = ("TD error in the last third", "train/metrics/td_error", 2 / 3)
TARGET_DISTANCE = ("distance of the target network", "train/metrics/target_distance", 0.0)
PACE = ("steps per second", "train/sys/fps", 0.0)
LENGTH = "train/roll/ep_len_mean"

# Fields that mean the same whatever the algorithm; of the others a difference says nothing between two.
ACROSS_ALGORITHMS = (
    "algo_id", "gamma", "max_env_steps", "normalize_obs", "engine", "reward_threshold", "stop_when_solved",
    "eval_freq_epochs", "eval_episodes", "env_kwargs", "env_wrappers", "max_episode_steps", "frame_skip", "frame_stack",
    "bonus", "bonus_coef", "max_updates",
)  # fmt: skip

Reading = tuple[str, str, float]  # what it is called, its metric, the share of training from which it is taken


def assess(field: str, baseline: Side, other: Side) -> str | None:
    """What it means that `other` has another value of the field than `baseline`; None where nothing can be said of it
    because the algorithm is another one too."""
    if baseline.algo_id != other.algo_id and field not in ACROSS_ALGORITHMS:
        return None
    before, after = baseline.config.get(field), other.config.get(field)
    if field in SENTENCES:
        text, readings = SENTENCES[field](baseline, other)
    else:
        text, readings = TABLE.get(field) or (_described(field), [])
    seen = [words for reading in readings if (words := _measured(reading, baseline, other))]
    decay = _decay(before, after)
    return "; ".join([text + decay, *seen])


def derived(side: Side) -> dict[str, float]:
    """Quantities that several fields make together; NaN where a field is not known."""
    return {
        "rollout (n_envs × n_steps)": rollout(side),
        "transitions per gradient step": minibatch(side),
        "gradient steps per 1,000 env steps": gradient_steps(side),
        "horizon 1/(1 − gamma)": horizon(side),
        "mean episode length, last third": _median(side, LENGTH, 2 / 3),
    }


def _has(side: Side, trait: str) -> bool:
    card = find_card(side.algo_id)
    return card is not None and trait in card.traits


def rollout(side: Side) -> float:
    return _number(side, "n_envs") * _number(side, "n_steps") if _has(side, "on_policy") else math.nan


def minibatch(side: Side) -> float:
    size = _number(side, "batch_size")
    if math.isnan(size):
        return rollout(side)
    return size * rollout(side) if size <= 1 else size


def gradient_steps(side: Side) -> float:
    """As counted in the runs, else as the settings make it; unknown where there are no env steps."""
    if side.runs[0].clock is not ENV_STEPS:
        return math.nan
    counted = [run.last(UPDATES.column) / run.trained for run in side.runs if run.trained]
    counted = [value for value in counted if math.isfinite(value)]
    if counted:
        return 1000 * float(np.median(counted))
    if _has(side, "n_epochs"):
        return 1000 * _number(side, "n_epochs") / minibatch(side)
    return 1000 * _number(side, "update_to_data")


def horizon(side: Side) -> float:
    gamma = _number(side, "gamma")
    return 1 / (1 - gamma) if gamma < 1 else (math.inf if gamma == 1 else math.nan)


def _learning_rate(baseline: Side, other: Side, field: str = "policy_lr") -> tuple[str, list[Reading]]:
    ratio = _ratio(field, baseline, other)
    if ratio is None:
        return "a different learning rate", [KL, UPDATE_SIZE]
    if ratio == 1:
        return "the same peak value", [KL, UPDATE_SIZE]
    size = "larger steps, faster and less stable" if ratio > 1 else "smaller steps, slower and more stable"
    return f"{compared('learning rate', ratio)}: {size}", [KL, UPDATE_SIZE]


def _data(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    before, after = rollout(baseline), rollout(other)
    text = _updates(baseline, other)
    if not math.isnan(before + after) and before != after:
        text = f"an update learns from {number(after)} transitions, not {number(before)}; {text}"
    return text, [PACE]


def _batch(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    before, after = minibatch(baseline), minibatch(other)
    text = _updates(baseline, other)
    if not math.isnan(before + after) and before != after:
        noise = "less" if after > before else "more"
        text = f"a gradient from {number(after)} transitions, not {number(before)}, has {noise} noise; {text}"
    return text, [KL]


def _reuse(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    return f"how often the same data is reused: {_updates(baseline, other)}", [KL, CLIPPED_RATIOS, TD_ERROR]


def _updates(baseline: Side, other: Side) -> str:
    before, after = gradient_steps(baseline), gradient_steps(other)
    if math.isnan(before + after):
        return "the number of gradient steps may change with it"
    if math.isclose(before, after, rel_tol=0.02):
        return f"gradient steps stay at {number(after)} per 1,000 env steps"
    return f"{number(after)} gradient steps per 1,000 env steps against {number(before)}"


def _discount(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    text = f"looks {number(horizon(other))} steps ahead instead of {number(horizon(baseline))}"
    length = np.nanmax([_median(side, LENGTH, 2 / 3) for side in (baseline, other)] + [0.0])
    if length:
        text += f", while episodes last up to {number(float(length))} steps"
    return text, [EXPLAINED]


def _trace(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    before, after = (_number(side, "gae_lambda") for side in (baseline, other))
    leans = "more on observed rewards (less bias, more variance)"
    if after < before:
        leans = "more on the value function (more bias, less variance)"
    return f"advantages lean {leans}", [EXPLAINED]


def _entropy_bonus(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    before, after = (_number(side, "ent_coef") for side in (baseline, other))
    if math.isnan(before + after):
        return "a different way of weighting entropy", [ENTROPY, ("temperature", "train/metrics/alpha", 0.0)]
    return ("explores longer" if after > before else "commits sooner"), [ENTROPY]


def _network(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    before, after = (_weights(side.config.get("hidden_dims")) for side in (baseline, other))
    if not before or not after:
        return "a different network", [EXPLAINED, PACE]
    text = "as many weights between hidden units, arranged differently"
    if before != after:
        text = compared("weights between hidden units", after / before)
    return text, [EXPLAINED, ("dead units", "train/metrics/dead_units", 2 / 3), PACE]


def _weights(dims: Any) -> int:
    """Between hidden layers; what inputs and outputs add is not in the config."""
    if not isinstance(dims, list | tuple) or not dims or not all(isinstance(size, int) for size in dims):
        return 0
    return sum(a * b for a, b in pairwise(dims)) or dims[0]


def _budget(baseline: Side, other: Side) -> tuple[str, list[Reading]]:
    ratio = _ratio(baseline.runs[0].clock.budget, baseline, other)
    size = compared("budget", ratio) if ratio else "a different budget"
    return f"{size}: an unequal comparison, and schedules stretch with it", []


SENTENCES: dict[str, Callable[[Side, Side], tuple[str, list[Reading]]]] = {
    "policy_lr": _learning_rate,
    "value_lr": lambda baseline, other: (_learning_rate(baseline, other, "value_lr")[0], [EXPLAINED, TD_ERROR]),
    "n_envs": _data,
    "n_steps": _data,
    "batch_size": _batch,
    "n_epochs": _reuse,
    "update_to_data": _reuse,
    "train_freq": _reuse,
    "gamma": _discount,
    "gae_lambda": _trace,
    "ent_coef": _entropy_bonus,
    "hidden_dims": _network,
    "max_env_steps": _budget,
    "max_updates": _budget,
}
TABLE: dict[str, tuple[str, list[Reading]]] = {
    "algo_id": ("a different algorithm: only results and metrics that both record can be compared", []),
    "clip_range": ("how far an update may move the policy", [KL, CLIPPED_RATIOS]),
    "clip_range_vf": ("how far an update may move the values, in units of reward", [EXPLAINED]),
    "target_kl": ("stops an update early", [KL, ("share of planned steps made", "train/metrics/epochs_done", 0.0)]),
    "vf_coef": ("weight of the value loss; it matters where policy and value share a trunk", [EXPLAINED]),
    "max_grad_norm": ("bounds the size of a gradient step", [CLIPPED_STEPS]),
    "optimizer": ("a different update rule: learning rates are not comparable", [UPDATE_SIZE]),
    "activation": ("a different network", [EXPLAINED, ("dead units", "train/metrics/dead_units", 2 / 3)]),
    "shared_network": ("whether policy and value share layers, and so pull at the same weights", [EXPLAINED]),
    "normalize_obs": (
        "whether inputs are scaled alike", [("std of raw observations", "train/data/obs_std", 0.0), EXPLAINED],
    ),
    "normalize_reward": (
        "scale of the value targets", [("std of value targets", "train/data/return_std", 0.0), EXPLAINED],
    ),
    "normalize_advantages": ("scale of the policy gradient", [KL]),
    "epsilon": ("share of random actions", []),
    "noise_std": ("action noise in training", []),
    "tau": ("how fast the target network follows", [TARGET_DISTANCE, TD_ERROR]),
    "target_update_interval": ("how fast the target network follows", [TARGET_DISTANCE, TD_ERROR]),
    "buffer_size": ("how old replayed experience gets", [("age of replayed steps", "train/data/replay_age", 2 / 3)]),
    "learning_starts": ("env steps before anything is learnt", []),
    "n_step": ("rewards summed before bootstrapping: more of them mean less bias, more variance", [TD_ERROR]),
    "bonus": ("a reward for novelty in training", []),
    "bonus_coef": ("weight of the exploration bonus", []),
    "engine": ("what steps the environments: affects speed, not learning", [PACE]),
    "precision": ("numerical precision of the networks: speed against accuracy", [PACE]),
    "reward_threshold": ("a different goal: what counts as solved is not the same", []),
    "stop_when_solved": ("whether training continues after the goal", []),
    "eval_freq_epochs": ("how finely steps to threshold are measured, not how it learns", []),
    "eval_episodes": ("how precisely rewards are measured, not how it learns", []),
    "env_kwargs": ("a different task: rewards are not comparable", []),
    "env_wrappers": ("a different task, unless the wrapper leaves rewards and episode ends alone", []),
    "max_episode_steps": ("a different time limit: returns are not comparable", []),
    "frame_skip": ("decides less often, and each step is longer", []),
}  # fmt: skip


def _described(field: str) -> str:
    schemas = [card.config for card in all_cards()]
    described = (s.model_fields[field].description for s in schemas if field in s.model_fields)
    return f"{next(described, None) or 'a different value'}; only the results show its effect"


def _decay(before: Any, after: Any) -> str:
    """Where one is scheduled and the other is not."""
    scheduled = [isinstance(value, Mapping) and value.get("end") != value.get("start") for value in (before, after)]
    if scheduled == [False, True]:
        return f", moving to {after.get('end') or 0:g} over training"
    return ", constant instead of moving" if scheduled == [True, False] else ""


def _measured(reading: Reading, baseline: Side, other: Side) -> str:
    name, metric, start = reading
    before, after = _median(baseline, metric, start), _median(other, metric, start)
    return "" if math.isnan(before + after) else f"{name} {number(after)} against {number(before)}"


def _median(side: Side, metric: str, start: float) -> float:
    found = [value for run in side.runs if (value := run.median(metric, start)) is not None]
    return float(np.median(found)) if found else math.nan


def _number(side: Side, field: str) -> float:
    """The largest value of a schedule; NaN where it is no number."""
    value = largest(side.config.get(field))
    return math.nan if value is None else value


def _ratio(field: str, baseline: Side, other: Side) -> float | None:
    before, after = _number(baseline, field), _number(other, field)
    return after / before if before > 0 and after > 0 else None
