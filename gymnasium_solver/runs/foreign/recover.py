"""Our config fields from the settings of a foreign run and, where these are silent, from its curves."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import ValidationError

from gymnasium_solver.config.cards import all_cards, find_card
from gymnasium_solver.config.parameter_names import PARAMETERS
from gymnasium_solver.runs.foreign.series import Series
from gymnasium_solver.runs.foreign.tables import as_number

ALGORITHMS = {
    "ppo": ("ppo", "appo", "rpo"),
    "a2c": ("a2c", "a3c", "a2cpolicy"),
    "dqn": ("dqn", "c51", "qrdqn", "rainbow"),
    "sac": ("sac", "discrete_sac"),
    "td3": ("td3",),
    "ddpg": ("ddpg",),
    "reinforce": ("reinforce", "vpg"),
}
LINEAR_WITHIN = 0.02  # of the start value: a curve this close to a line is one


def algorithm_named(*texts: object) -> str | None:
    """The algorithm that a name (of an experiment, a script, a directory) speaks of; the first that does counts."""
    for text in texts:
        words = re.split(r"[^a-z0-9]+", str(text or "").lower())
        for algo_id, names in ALGORITHMS.items():
            if any(name in words for name in names):
                return algo_id
    return None


def algorithm_seen(settings: Mapping[str, Any], names: Mapping[str, object]) -> str | None:
    """By what only one algorithm logs, or has as a setting."""
    module = str(settings.get("policy_class/__module__", ""))
    if found := re.search(r"\.(dqn|sac|td3|ppo|a2c)\.policies", module):
        delayed = settings.get("policy_delay"), settings.get("target_policy_noise")
        return "ddpg" if found[1] == "td3" and delayed[0] == 1 and not delayed[1] else found[1]
    if {"clip_range", "clip_coef", "clip_param", "eps_clip"} & set(settings):
        return "ppo"
    seen = {name.rsplit("/", 1)[-1] for name in names} | {name for name in names if "/loss/" in name}
    seen |= {name for name in names if name == "update/clip_loss/mean"}
    if seen & {"clip_fraction", "clipfrac", "policy_gradient_loss", "update/loss/clip", "update/clip_loss/mean"}:
        return "ppo"
    if seen & {"exploration_rate", "td_loss"}:
        return "dqn"
    if "critic_loss" in seen or "qf_loss" in seen or "critic1_loss" in seen:
        return "sac" if seen & {"ent_coef", "alpha", "alpha_value", "alpha_loss"} else "td3"
    if "entropy_loss" in seen and "policy_loss" in seen:
        return "a2c"
    return None


def is_off_policy(algo_id: str | None) -> bool:
    card = find_card(algo_id)
    return card is not None and card.family == "replay"


@dataclass
class _Fields:
    """Our fields, and which setting of theirs each comes from."""

    config: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    def put(self, ours: str, value: Any, theirs: str) -> None:
        self.config[ours], self.origin[ours] = value, theirs

    def put_epsilon(self, start: Any, end: Any, share: Any) -> None:
        """Of the DQN of both libraries that have it, which is the plain one."""
        self.put("epsilon", {"start": start, "end": end, "to": share}, "exploration_fraction")
        self.config["double"] = False


def fields(library: str, algo_id: str | None, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Our fields that the settings tell, and which setting each comes from."""
    found = _Fields()
    tables = [PARAMETERS[library]] if library in PARAMETERS else list(PARAMETERS.values())
    for ours, theirs_names in ((ours, names) for table in tables for ours, names in table.items()):
        for theirs in theirs_names if ours not in found.config else ():
            value = settings.get(theirs)
            if value is not None and (not isinstance(value, dict) or "start" in value):
                found.put(ours, _tidy(value), theirs)
                break
    off_policy = is_off_policy(algo_id)
    if library == "sb3":
        _sb3(found, settings, algo_id, off_policy)
    elif library == "cleanrl":
        _cleanrl(found, settings, algo_id, off_policy)
    elif library == "rllib":
        _rllib(found, settings, off_policy)
    elif library == "tianshou" and not off_policy:
        _n_steps(found, settings, "collection_step_num_env_steps", "step_per_collect")
    return found.config, found.origin


def schedule_of(series: Series, max_env_steps: float) -> Any:
    """The value that was in force, or the line it followed; None if it was neither."""
    series = series.finite().in_order()
    if not len(series):
        return None
    steps, values = series.steps, series.values
    size = float(np.abs(values).max())
    if np.ptp(values) <= 1e-6 * size:
        return float(values[0])
    if len(values) < 4:
        return None
    slope, start = np.polyfit(steps, values, 1)
    if np.abs(start + slope * steps - values).max() > LINEAR_WITHIN * size:
        return None
    end = start + slope * max(max_env_steps, float(steps[-1]))
    end = 0.0 if abs(end) < LINEAR_WITHIN * abs(start) else end
    return {"start": _round(float(start)), "end": _round(float(end)), "schedule": "linear"}


def _round(value: float) -> float:
    """People write 0.001; a line through logged values says 0.001003."""
    short = float(f"{value:.2g}")
    return short if abs(short - value) <= 0.005 * abs(value) else float(f"{value:.4g}")


def threshold_of(env_id: str | None) -> float | None:
    """What counts as solved here: of the configuration that is shipped, else as Gymnasium registers it."""
    if not env_id:
        return None
    import gymnasium

    from gymnasium_solver.config.load import SHIPPED

    shipped = SHIPPED / f"{env_id.replace('/', '-')}.yaml"
    if shipped.is_file() and (found := re.search(r"^reward_threshold:\s*(\S+)", shipped.read_text(), re.MULTILINE)):
        return float(found[1])
    known = gymnasium.registry.get(env_id)
    return None if known is None or known.reward_threshold is None else float(known.reward_threshold)


def admissible(config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Without the fields that our schema does not have or whose values it refuses; and their names."""
    card = find_card(config.get("algo_id"))
    if card is None:
        known = {name for card in all_cards() for name in card.config.model_fields}
        return {name: value for name, value in config.items() if name in known}, []
    schema = card.config
    kept = {name: value for name, value in config.items() if name in schema.model_fields}
    refused: list[str] = []
    try:
        schema.model_validate({**kept, "env_id": kept.get("env_id") or "unknown"})
    except ValidationError as error:
        # Errors of several fields together name none: the values are what the run had, so they stay.
        refused = [str(problem["loc"][0]) for problem in error.errors() if problem["loc"]]
    protected = ("env_id", "algo_id")
    return {name: x for name, x in kept.items() if name not in refused or name in protected}, [
        f"config: {name} ({config[name]} is outside what is allowed here)" for name in refused if name in kept
    ]


def _sb3(found: _Fields, settings: Mapping[str, Any], algo_id: str | None, off_policy: bool) -> None:
    config = found.config
    if off_policy and "n_steps" in config:  # there: rewards summed before bootstrapping
        found.put("n_step", config.pop("n_steps"), found.origin.pop("n_steps"))
    if not config.get("use_sde"):
        for name in ("use_sde", "sde_sample_freq"):
            config.pop(name, None), found.origin.pop(name, None)
    per_round, every = settings.get("gradient_steps"), settings.get("train_freq")
    if per_round == -1:
        found.put("update_to_data", 1.0, "gradient_steps")
    elif isinstance(per_round, int) and isinstance(every, int) and every > 0:
        found.put("update_to_data", per_round / (every * int(config.get("n_envs") or 1)), "gradient_steps")
    if algo_id == "dqn" and "exploration_final_eps" in settings:
        start, share = settings.get("exploration_initial_eps", 1.0), settings.get("exploration_fraction", 0.1)
        found.put_epsilon(start, settings["exploration_final_eps"], share)
    arch = settings.get("policy_kwargs/net_arch") or settings.get("policy_kwargs/net_arch/pi")
    if isinstance(arch, list) and all(isinstance(x, int) for x in arch) and arch:
        found.put("hidden_dims", arch, "policy_kwargs.net_arch")
    elif "policy_class/__module__" in settings and algo_id and "policy_kwargs/net_arch" not in settings:
        sizes = {"sac": [256, 256], "td3": [400, 300], "ddpg": [400, 300]}
        found.put("hidden_dims", sizes.get(algo_id, [64, 64]), "default of the library")
    if named := re.search(r"activation\.(\w+)'", str(settings.get("policy_kwargs/activation_fn", ""))):
        found.put("activation", named[1].lower(), "policy_kwargs.activation_fn")
    for name, theirs in (("normalize_obs", "norm_obs"), ("normalize_reward", "norm_reward")):
        switch = theirs if theirs in settings else "normalize"  # VecNormalize; the zoo has one switch for both
        if isinstance(settings.get(switch), bool):
            found.put(name, settings[switch], switch)


def _cleanrl(found: _Fields, settings: Mapping[str, Any], algo_id: str | None, off_policy: bool) -> None:
    config = found.config
    if settings.get("anneal_lr") is True and "policy_lr" in config:
        config["policy_lr"] = {"start": config["policy_lr"], "end": 0.0, "schedule": "linear"}
    if not off_policy:
        rollout, parts = _product(config, "n_envs", "n_steps"), settings.get("num_minibatches")
        minibatch = settings.get("minibatch_size")
        config.pop("batch_size", None)
        if minibatch:
            found.put("batch_size", minibatch, "minibatch_size")
        elif rollout and isinstance(parts, int) and parts > 0:
            found.put("batch_size", rollout // parts, "num_minibatches")
        if settings.get("clip_vloss") is True and "clip_range" in config:
            found.put("clip_range_vf", config["clip_range"], "clip_vloss")
        return
    every = int(settings.get("train_frequency") or 1) * int(config.get("n_envs") or 1)
    found.put("update_to_data", 1.0 / every, "train_frequency")
    if "start_e" in settings and "end_e" in settings:
        found.put_epsilon(settings["start_e"], settings["end_e"], settings.get("exploration_fraction", 1.0))
    if algo_id == "sac" and settings.get("autotune") is not True and "alpha" in settings:
        found.put("ent_coef", settings["alpha"], "alpha")


def _rllib(found: _Fields, settings: Mapping[str, Any], off_policy: bool) -> None:
    config = found.config
    workers = _first(settings, "num_env_runners", "num_workers", "num_rollout_workers")
    each = _first(settings, "num_envs_per_env_runner", "num_envs_per_worker")
    if each is not None:
        found.put("n_envs", max(1, int(workers or 0)) * int(each), "num_envs_per_env_runner")
    if off_policy:
        if (size := _first(settings, "train_batch_size_per_learner", "train_batch_size")) is not None:
            found.put("batch_size", size, "train_batch_size")
    else:
        _n_steps(found, settings, "train_batch_size_per_learner", "train_batch_size")
    for name in ("policy_lr", "ent_coef"):
        points = config.get(name)
        if isinstance(points, list):  # [[step, value], …]
            try:
                (_, start), *_, (last, end) = points
                config[name] = {"start": start, "end": end, "schedule": "linear", "to": last}
            except (TypeError, ValueError):
                config.pop(name)
    if settings.get("observation_filter") == "MeanStdFilter":
        found.put("normalize_obs", True, "observation_filter")


def _n_steps(found: _Fields, settings: Mapping[str, Any], *names: str) -> None:
    rollout = _first(settings, *names)
    if rollout is not None:
        theirs = next(name for name in names if settings.get(name) is not None)
        found.put("n_steps", max(1, int(rollout) // int(found.config.get("n_envs") or 1)), theirs)


def _first(settings: Mapping[str, Any], *names: str) -> float | None:
    return next((x for name in names if (x := as_number(settings.get(name))) is not None), None)


def _product(config: Mapping[str, Any], *names: str) -> int | None:
    values = [x for name in names if isinstance(x := config.get(name), int)]
    return math.prod(values) if len(values) == len(names) else None


def _tidy(value: Any) -> Any:
    """`1e6` in text is a number; 5000.0 is a count."""
    number = as_number(value) if isinstance(value, str) else value
    value = value if number is None else number
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) >= 2 else value
