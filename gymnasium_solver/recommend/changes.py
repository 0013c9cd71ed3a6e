"""What answers a cause: config fields and their new values, computed from the run's own.

Where a setting is outside of its usual range, it goes back to that of a configuration known to work (the shipped one of
this environment, else the defaults); inside of it, it moves by a factor from where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.config.on_policy import nearest_divisor
from gymnasium_solver.diagnose.questions.settings import FAR
from gymnasium_solver.diagnose.readings import Readings
from gymnasium_solver.metrics.clocks import CLOCKS

Change = dict[str, Any]
MOST_STEPS_FACTOR = 4.0
ENOUGH_UPDATES = 50
USUAL_LIMIT = 1000  # steps of an episode that has no end of its own
TUNED = (
    *("policy_lr", "gamma", "n_envs", "n_steps", "batch_size", "n_epochs", "gae_lambda", "clip_range", "ent_coef"),
    *("vf_coef", "max_grad_norm", "hidden_dims", "normalize_obs", "normalize_reward", "log_std_init", "baseline"),
    *("train_freq", "update_to_data", "learning_starts", "buffer_size", "tau", "target_update_interval", "epsilon"),
    *("noise_std", "target_entropy", "double"),
)


def change_for(cause: str, readings: Readings) -> Change:
    """Empty where no setting helps: then the environment or the code has to change."""
    make = CHANGES.get(cause)
    proposed = make(readings) if make else {}
    known = readings.reference
    return {
        name: plain(value)
        for name, value in proposed.items()
        if name in known and (name not in readings.config or plain(readings.config[name]) != plain(value))
    }


def known_to_work(readings: Readings) -> Change:
    """What to set where nothing is known of the run's settings: all that is tuned, from the reference."""
    return {name: value for name in TUNED if (value := readings.reference.get(name)) is not None}


def reset(readings: Readings) -> Change:
    """Everything back to the configuration known to work, but what is trained and for how long."""
    kept = {"env_id", "algo_id", "seed", "reward_threshold", "env_kwargs", "engine", "vectorization"}
    kept |= {clock.budget for clock in CLOCKS.values()}
    kept |= {"stop_when_solved", "eval_freq_epochs", "eval_episodes", "checkpoint_freq_epochs", "eval_deterministic"}
    return {
        name: plain(value)
        for name, value in readings.reference.items()
        if name not in kept and name in readings.config and plain(readings.config[name]) != plain(value)
    }  # fmt: skip


def plain(value: Any) -> Any:
    """As config.json has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True)
    if isinstance(value, Mapping):
        from gymnasium_solver.config.schedules import Schedule

        return Schedule.model_validate(dict(value)).model_dump(by_alias=True) if "start" in value else dict(value)
    return list(value) if isinstance(value, tuple) else value


# --- how values move -------------------------------------------------------------------------------------------------


def _reference(r: Readings, name: str, otherwise: Any) -> Any:
    value = r.reference.get(name)
    return otherwise if value is None else plain(value)


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, Mapping):
        return {**value, **{end: _rounded(value[end] * factor) for end in ("start", "end") if end in value}}
    return _rounded(value * factor)


def _rounded(value: float) -> float:
    """Two digits: more would claim to be known."""
    if value == 0:
        return 0.0
    digits = 1 - math.floor(math.log10(abs(value)))
    return round(value, digits)


def _rate(r: Readings, factor: float) -> Any:
    """The learning rate: the reference where it is out of range in the direction to be corrected, else scaled."""
    current, reference = r.number("policy_lr"), _reference(r, "policy_lr", 1e-3)
    if current is None:
        return reference
    low, high = r.usual("policy_lr")
    top = reference["start"] if isinstance(reference, Mapping) else reference
    outside = (low is not None and current < low) if factor > 1 else (high is not None and current > high)
    if outside or (factor > 1) == (top > current * factor):
        return reference
    return _scaled(r.config["policy_lr"], factor)


def _slower(r: Readings) -> Change:
    change: Change = {"policy_lr": _rate(r, 1 / 5)}
    value_rate = r.number("value_lr")
    high = r.usual("policy_lr")[1]
    if value_rate is not None and high is not None and value_rate > high:
        change["value_lr"] = None
    return change


def _faster(r: Readings) -> Change:
    return {"policy_lr": _rate(r, 5.0)}


def _to(**fields: Any) -> Callable[[Readings], Change]:
    """Fields to the reference's values; the value given here where it has none."""
    return lambda r: {name: _reference(r, name, otherwise) for name, otherwise in fields.items()}


def _set(**fields: Any) -> Callable[[Readings], Change]:
    return lambda r: dict(fields)


def _batch(r: Readings) -> Change:
    """What a measured noise scale that is far off suggests, else the reference's; as near as the rollout allows."""
    ratio, measured = r.noise_ratio, r.noise_scale.get("set")
    if ratio is not None and not 1 / FAR <= ratio <= FAR and isinstance(measured, Mapping) and "batch_size" in measured:
        return {"batch_size": measured["batch_size"]}
    wanted = _reference(r, "batch_size", 256)
    rollout = r.rollout
    if not _splits_rollouts(r) or not rollout or wanted <= 1:
        return {"batch_size": wanted}
    whole = int(rollout)
    return {"batch_size": nearest_divisor(whole, wanted)}


def _splits_rollouts(r: Readings) -> bool:
    return r.card is not None and r.card.splits_rollouts


def _more_updates(r: Readings) -> Change:
    if r.has("n_epochs"):
        return {"n_epochs": _reference(r, "n_epochs", 10), **_batch(r)}
    return {"update_to_data": _reference(r, "update_to_data", 0.5)}


def _rollout(r: Readings) -> Change:
    n_envs = int(r.number("n_envs") or 8)
    wanted = steps = int(_reference(r, "n_steps", 128))
    if r.planned_env_steps:  # some fifty updates at least
        steps = max(1, min(steps, int(r.planned_env_steps / (ENOUGH_UPDATES * n_envs))))
    least = r.usual("rollout")[0] or 1
    whole_episodes = r.has("returns") and (r.number("n_steps") or 0.0) <= wanted
    if steps < wanted and (steps * n_envs < least or whole_episodes):  # the budget has no room for rollouts that work
        budget = ENOUGH_UPDATES * n_envs * wanted
        return {"n_steps": wanted, "max_env_steps": int(float(f"{budget:.2g}"))}
    change: Change = {"n_steps": steps}
    minibatch = r.minibatch
    if _splits_rollouts(r) and minibatch and (n_envs * steps) % int(minibatch):
        whole = n_envs * steps
        change["batch_size"] = nearest_divisor(whole, minibatch)
    return change


def more_steps(r: Readings) -> Change:
    """As many as the present pace needs, with half as many again, four times the budget at most; and twice what the
    shipped configuration needs at least."""
    planned, curve, threshold = r.planned, r.returns, r.threshold
    if not planned:
        return {}
    factor = 2.0
    if curve is not None and threshold is not None:
        gained, _certainty = curve.trend()
        pace = gained / (0.3 * max(r.steps, 1.0))
        if pace > 0:
            factor = 1 + 1.5 * (threshold - curve.late) / pace / planned
    usual = r.usual_steps or 0.0
    steps = max(planned * min(max(factor, 1.5), MOST_STEPS_FACTOR), 2 * usual)
    return {r.clock.budget: int(float(f"{steps:.2g}"))}


def _more_entropy(r: Readings) -> Change:
    current = r.number("ent_coef") or 0.0
    change: Change = {"ent_coef": _rounded(max(3 * current, _number(_reference(r, "ent_coef", 0.01)), 0.01))}
    high = r.usual("policy_lr")[1]
    rate = r.number("policy_lr")
    if rate is not None and high is not None and rate > high / 4:
        change["policy_lr"] = _rate(r, 1 / 5)
    return change


def _less_entropy(r: Readings) -> Change:
    reference, current = _number(_reference(r, "ent_coef", 0.0)), r.number("ent_coef")
    return {"ent_coef": reference if current is None or reference < current / 5 else _rounded(current / 10)}


def _number(value: Any) -> float:
    if isinstance(value, Mapping):
        return float(value.get("start", 0.0))
    return float(value) if isinstance(value, int | float) else 0.0


def _explore(r: Readings) -> Change:
    if r.has("epsilon"):
        return {"epsilon": _reference(r, "epsilon", {"start": 1.0, "end": 0.05, "to": 0.2})}
    if r.has("target_entropy"):
        return {"ent_coef": "auto", "ent_coef_init": _reference(r, "ent_coef_init", 1.0), "target_entropy": "auto"}
    if r.has("noise_std"):
        return {"noise_std": _reference(r, "noise_std", 0.2)}
    return {"log_std_init": _reference(r, "log_std_init", 0.0)}


def _targets(r: Readings) -> Change:
    change: Change = {"tau": _reference(r, "tau", 0.005)}
    if r.has("target_update_interval"):
        change["target_update_interval"] = r.reference.get("target_update_interval")
    return change


def _start_sooner(r: Readings) -> Change:
    planned = r.planned or 100_000
    return {"learning_starts": int(min(_number(_reference(r, "learning_starts", 1000)), planned / 20))}


def _without_wrappers(r: Readings) -> Change:
    return {"env_wrappers": []} if r.config.get("env_wrappers") else {}


def _see_more(r: Readings) -> Change:
    if found := _without_wrappers(r):
        return found
    return {} if r.has("tabular") else {"frame_stack": 4}


def _normalized(field: str) -> Callable[[Readings], Change]:
    return lambda r: {} if r.has("tabular") else {field: True}


def _bonus(r: Readings) -> Change:
    return {"bonus": "count" if r.has("epsilon") else "rnd", "bonus_coef": 0.5}


def _unsaturated(r: Readings) -> Change:
    return {"normalize_obs": True, **_slower(r)}


def _seldom_evaluated(r: Readings) -> Change:
    every = r.number("eval_freq_epochs")
    return {"eval_freq_epochs": int(every * 4)} if every else {"eval_episodes": 10}


def _more_environments(r: Readings) -> Change:
    n_envs = r.number("n_envs")
    return {"n_envs": int(n_envs * 2)} if n_envs and not r.has("tabular") else {}


def _named_by_the_error(r: Readings) -> Change:
    """Where the error itself says which setting helps."""
    return {"max_episode_steps": USUAL_LIMIT} if "set max_episode_steps" in str(r.record.get("error")) else {}


CHANGES: Mapping[str, Callable[[Readings], Change]] = {
    "learning-rate-too-low": _faster,
    "learning-rate-too-high": _slower,
    "learning-rate-decays-too-soon": _to(policy_lr=1e-3),
    "gradient-clip-too-tight": _to(max_grad_norm=0.5),
    "clip-range-too-small": _to(clip_range=0.2),
    "entropy-bonus-too-high": _less_entropy,
    "premature-entropy-collapse": _more_entropy,
    "discount-too-low": _to(gamma=0.99),
    "gae-lambda-unsuited": _to(gae_lambda=0.95),
    "too-many-update-epochs": _to(n_epochs=10),
    "batch-too-small": _batch,
    "batch-too-large": _batch,
    "rollout-too-short": _rollout,
    "rollout-too-long": _rollout,
    "too-few-updates": _more_updates,
    "learning-starts-too-late": _start_sooner,
    "exploration-too-high": _explore,
    "exploration-too-low": _explore,
    "target-network-stale": _targets,
    "target-network-missing": _targets,
    "temperature-too-high": _explore,
    "value-loss-swamps-policy": _set(vf_coef=0.5, shared_network=False),
    "value-function-underweighted": _set(vf_coef=0.5),
    "value-clip-too-tight": _set(clip_range_vf=None),
    "training-too-short": more_steps,
    "replay-too-small": _to(buffer_size=100_000),
    "plasticity-loss": _to(update_to_data=1.0),
    "target-kl-too-tight": _to(target_kl=None),
    "reinforce-variance": _set(baseline="value"),
    "q-overestimation": _set(double=True),
    "network-too-small": _to(hidden_dims=(64, 64)),
    "images-without-cnn": _set(network="auto"),
    "dead-units": _slower,
    "constant-observation": _without_wrappers,
    "partial-observability": _see_more,
    "observation-scale": _normalized("normalize_obs"),
    "observation-noise": _see_more,
    "reward-scale": _normalized("normalize_reward"),
    "constant-reward": _without_wrappers,
    "reward-sign-flipped": _without_wrappers,
    "sparse-reward": _bonus,
    "actions-have-no-effect": _without_wrappers,
    "action-scaling": _set(rescale_actions=True),
    "action-saturation": _unsaturated,
    "time-limit-too-short": _to(max_episode_steps=None),
    "environment-error": _named_by_the_error,
    "slow-environment": _more_environments,
    "evaluation-dominates": _seldom_evaluated,
    "non-finite-values": lambda r: {**_slower(r), "max_grad_norm": 0.5},
    "q-value-divergence": lambda r: {**_slower(r), "layer_norm": True},
}
