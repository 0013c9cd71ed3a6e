"""How the run was configured: settings out of their usual range, switches, schedules, what settings mean together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gymnasium_solver.config.schedules import Schedule
from gymnasium_solver.config.usual import SOURCE
from gymnasium_solver.diagnose.performance import Performance
from gymnasium_solver.diagnose.questions.asking import Answer, Evidence, above, below, late_above
from gymnasium_solver.diagnose.readings import Readings

EPSILON, RATE = "train/hp/epsilon", "train/hp/policy_lr"


def _setting(r: Readings, name: str) -> float | None:
    """A setting, or a number that follows from several."""
    planned = r.planned_env_steps
    if name == "width":
        dims = r.config.get("hidden_dims")
        sizes = [size for size in dims if isinstance(size, int)] if isinstance(dims, list | tuple) else []
        return float(min(sizes)) if sizes else None
    if name == "minibatch":
        return r.minibatch
    if name == "rollout":
        return r.rollout
    if name == "updates":
        usual = r.usual_steps or 0.0  # a small budget is another matter
        return max(planned, usual) / r.rollout if planned and r.rollout else None
    if name == "learning_starts_share":
        starts = r.number("learning_starts")
        return starts / planned if planned and starts is not None else None
    if name == "target_share":
        interval = r.number("target_update_interval")
        return interval / planned if planned and interval else None
    if name == "epsilon_late":
        return _final(r.config.get("epsilon"))
    return r.number(name)


def _final(value: Any) -> float | None:
    """Where a schedule ends."""
    value = value.get("end", 0.0) if isinstance(value, Mapping) else value
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _unusual(name: str, side: str) -> Evidence:
    def test(r: Readings, _: Performance) -> Answer | None:
        bound = r.usual(name)[side == "high"]
        value = _setting(r, name) if bound is not None else None
        if value is None or bound is None:
            return None
        holds = value < bound if side == "low" else value > bound
        return Answer(holds, value, f"{'at least' if side == 'low' else 'at most'} {bound:g} ({SOURCE})")

    word = {"low": "lower", "high": "higher"}[side]
    return Evidence(f"{name}-{side}", f"{name} is {word} than usual", name, test, "config")


UNUSUAL = tuple(_unusual(name, side) for name, side in (
    ("policy_lr", "low"), ("policy_lr", "high"), ("max_grad_norm", "low"), ("clip_range", "low"),
    ("ent_coef", "high"), ("ent_coef", "low"), ("gamma", "low"), ("gae_lambda", "low"),
    ("n_epochs", "high"), ("minibatch", "low"), ("minibatch", "high"), ("rollout", "low"), ("rollout", "high"),
    ("updates", "low"), ("vf_coef", "high"), ("vf_coef", "low"), ("width", "low"), ("target_kl", "low"),
    ("learning_starts_share", "high"), ("epsilon_late", "high"), ("epsilon_late", "low"), ("tau", "high"),
    ("tau", "low"), ("target_share", "high"), ("target_update_interval", "low"), ("buffer_size", "low"),
    ("log_std_init", "low"), ("log_std_init", "high"), ("noise_std", "low"), ("noise_std", "high"),
    ("update_to_data", "low"), ("update_to_data", "high"),
))  # fmt: skip


FAR = 8.0  # times: a noise scale is good to a factor of two or three, and differs as much over a training
MEASURED = (
    Evidence(
        "noise-scale-above-batch",
        "the measured gradient noise scale is far above the minibatch",
        "noise scale in minibatches",
        lambda r, _: above(r.noise_ratio, FAR),
    ),
    Evidence(
        "noise-scale-below-batch",
        "the measured gradient noise scale is far below the minibatch",
        "noise scale in minibatches",
        lambda r, _: below(r.noise_ratio, 1 / FAR),
    ),
)


def _all_usual(r: Readings, p: Performance) -> Answer | None:
    settings = [answer for entry in UNUSUAL if (answer := entry.test(r, p)) is not None]
    unusual = sum(answer.holds for answer in settings)
    return Answer(not unusual, float(unusual), "no setting out of its range") if settings else None


def _configured(name: str, text: str, field: str, holds: Callable[[Any], bool], expected: str) -> Evidence:
    def test(r: Readings, _: Performance) -> Answer | None:
        if field not in r.config:
            return None
        value = r.config[field]
        number = float(value) if isinstance(value, int | float) else None
        return Answer(holds(value), number, expected)

    return Evidence(name, text, field, test, "config")


def _images_into_mlp(r: Readings, _: Performance) -> Answer | None:
    if not r.spaces or "network" not in r.config:
        return None
    return Answer(bool(r.spaces.get("is_image")) and r.config["network"] == "mlp", None, "auto or cnn")


def _budget_small(r: Readings, _: Performance) -> Answer | None:
    usual = r.usual_steps
    return below(r.planned / usual, 0.5) if usual and r.planned else None


def _limit_shorter(r: Readings, _: Performance) -> Answer | None:
    limit, usual = r.number("max_episode_steps"), r.reference.get("max_episode_steps")
    if "max_episode_steps" not in r.config or (limit is not None and not r.precedent):
        return None  # of a task that nothing has solved yet, nobody knows how long it takes
    shorter = limit is not None and (usual is None or limit < usual)
    return Answer(shorter, limit, "unset" if usual is None else f"at least {usual}")


def _horizon_short(r: Readings, _: Performance) -> Answer | None:
    """Where the reward lies further ahead than the discount looks."""
    gamma, length = r.number("gamma"), r.late("train/roll/ep_len_mean")
    if gamma is None or length is None:
        return None
    horizon = 1 / max(1 - gamma, 1e-9)
    return Answer(
        horizon < 0.1 * length and horizon < 20, horizon, f"at least a tenth of an episode ({0.1 * length:.0f} steps)"
    )


def _value_clip_binds(r: Readings, _: Performance) -> Answer | None:
    clip, spread = r.number("clip_range_vf"), r.late("train/data/return_std")
    if clip is None or spread is None:
        return None
    return Answer(clip < 0.05 * spread, clip, f"at least {0.05 * spread:.3g}, a twentieth of the spread of returns")


def _rate_gone(r: Readings, _: Performance) -> Answer | None:
    curve = r.series(RATE)
    if curve is None or curve.high <= 0 or len(curve.values) < 8:
        return None
    idle = float((curve.values < 0.02 * curve.high).mean())
    return Answer(idle > 0.35, idle, "at most 0.35 of the run with a learning rate near 0")


def _epsilon_none(r: Readings, _: Performance) -> Answer | None:
    curve = r.series(EPSILON)
    return None if curve is None else Answer(float(curve.values.max()) < 0.02, curve.high, "above 0.02 at first")


def _schedule_off(r: Readings, _: Performance) -> Answer | None:
    """Values in force against those configured, in the second half: a resumed run may have had another budget."""
    planned, rollout = r.planned, r.rollout if r.planned_env_steps else 0.0
    if not r.spaces or not planned or rollout is None:  # of another library: what was configured is partly guessed
        return None
    worst, compared = 0.0, False
    for name, curve in r.curves.items():
        value = r.config.get(name.removeprefix("train/hp/"))
        if not name.startswith("train/hp/") or value is None or isinstance(value, str) or len(curve.values) < 4:
            continue
        schedule = Schedule.model_validate(value) if isinstance(value, Mapping) else Schedule(start=value, end=value)
        late = curve.steps >= curve.steps[-1] / 2
        middle = (rollout or float(np.median(np.diff(curve.steps)))) / 2  # of what a row stands for
        expected = np.array([schedule.at(max(0.0, step - middle), planned) for step in curve.steps[late]])
        scale = max(float(np.abs(expected).max()), float(np.abs(curve.values).max()), 1e-12)
        worst = max(worst, float(np.median(np.abs(curve.values[late] - expected))) / scale)
        compared = True
    return Answer(worst > 0.1, worst, "within 0.1 of what is configured") if compared else None


QUESTIONS = (
    *UNUSUAL,
    *MEASURED,
    Evidence("settings-usual", "no setting is out of its usual range", "config", _all_usual, "config"),
    Evidence(
        "budget-small",
        "the budget is less than half of what the shipped configuration needs",
        "max_env_steps",
        _budget_small,
        "config",
    ),
    Evidence(
        "time-limit-set",
        "the time limit is shorter than that of a configuration known to work",
        "max_episode_steps",
        _limit_shorter,
        "config",
    ),
    Evidence("horizon-short", "the discount horizon is far shorter than an episode", "gamma", _horizon_short, "config"),
    Evidence(
        "value-clip-binds",
        "value clipping allows far less than the spread of returns",
        "clip_range_vf",
        _value_clip_binds,
        "config",
    ),
    Evidence(
        "schedule-off",
        "a value in force does not follow its configured schedule",
        "deviation as a share of its size",
        _schedule_off,
        invariant=True,
    ),
    Evidence("learning-rate-gone", "the learning rate is nearly 0 for much of the run", RATE, _rate_gone),
    late_above("epsilon-stays-high", "actions are mostly random until the end", EPSILON, 0.5),
    Evidence("epsilon-none", "no random actions are taken", EPSILON, _epsilon_none),
    _configured(
        "actions-not-rescaled", "Box actions are not rescaled", "rescale_actions", lambda v: v is False, "true"
    ),
    _configured(
        "observations-not-normalized",
        "observations are not normalised",
        "normalize_obs",
        lambda v: not v,
        "true where they are large",
    ),
    _configured(
        "rewards-not-normalized",
        "rewards are not normalised",
        "normalize_reward",
        lambda v: not v,
        "true where they are large",
    ),
    _configured("no-baseline", "returns are used without a baseline", "baseline", lambda v: v == "none", "value"),
    _configured("not-double", "targets take the maximum over a single network", "double", lambda v: v is False, "true"),
    Evidence("images-into-mlp", "images go into a network without convolutions", "network", _images_into_mlp, "config"),
)
