"""What a sweep may change: a YAML file of fields with ranges or choices, or a usual space for the algorithm.

policy_lr: {low: 1e-4, high: 1e-2, log: true}
n_epochs: {low: 2, high: 20, step: 2}
batch_size: [64, 128, 256]
hidden_dims: {choices: [[64, 64], [256, 256]]}
ent_coef: {start: {low: 0, high: 0.05}, end: 0}      # of a schedule
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from gymnasium_solver.config.cards import card_of, find_card
from gymnasium_solver.config.explaining import near
from gymnasium_solver.config.files import read_yaml
from gymnasium_solver.config.load import build_config, with_overrides
from gymnasium_solver.config.schedules import number
from gymnasium_solver.config.schema import RunConfig
from gymnasium_solver.errors import ConfigError

# What is searched for stays the same for every trial, and seeds are replicates.
FIXED = {
    "env_id": "give it as ENV:VARIANT",
    "algo_id": "give it as ENV:VARIANT",
    "seed": "every trial has the same seeds; see --seeds",
    "reward_threshold": "set it for all trials with -s reward_threshold=…",
    "stop_when_solved": "set it for all trials with -s stop_when_solved=…",
}
RANGE = {"low", "high", "log", "step"}
MOST_GRID_POINTS = 10_000


@dataclass(frozen=True)
class Parameter:
    """A config field, dotted inside a schedule, and the values it may take: `choices`, or from `low` to `high`."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    whole: bool = False
    fixed: tuple[tuple[str, Any], ...] = ()  # the rest of the schedule

    def distribution(self) -> Any:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution([_stored(choice) for choice in self.choices])
        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def value(self, suggested: Any) -> Any:
        """What Optuna stored, as the config takes it; a number in four digits, so that people can copy it."""
        if self.choices:
            return next(choice for choice in self.choices if _stored(choice) == suggested)
        return int(suggested) if self.whole else float(f"{suggested:.4g}")

    def stored(self, value: Any) -> Any:
        """The other way round."""
        return _stored(value) if self.choices else value

    def contains(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def grid(self) -> list[Any]:
        if self.choices:
            return [_stored(choice) for choice in self.choices]
        if self.step is None:
            raise ConfigError(f"--sampler grid: {self.name} has no step; give it one, or a list of choices")
        count = math.floor((self.high - self.low) / self.step + 1e-9) + 1
        points = [self.low + index * self.step for index in range(count)]
        return [int(point) for point in points] if self.whole else points

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Parameter:
        fixed = tuple((name, value) for name, value in stored["fixed"])
        return cls(**{**stored, "choices": tuple(stored["choices"]), "fixed": fixed})


def _stored(choice: Any) -> Any:
    """Optuna keeps plain values; a list or a mapping is kept as its text."""
    return choice if choice is None or isinstance(choice, bool | int | float | str) else json.dumps(choice)


def read_space(path: Path, base: Mapping[str, Any]) -> list[Parameter]:
    """The parameters in the file, each checked against the schema of the config that is searched around."""
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise ConfigError(
            f"{path} has no fields; write one per line, e.g. policy_lr: {{low: 1e-4, high: 1e-2, log: true}}"
        )
    schema = card_of(base["algo_id"]).config
    space: list[Parameter] = []
    for name, entry in content.items():
        if name in FIXED:
            raise ConfigError(f"{path}: {name} is not searched; {FIXED[name]}")
        if name not in schema.model_fields:
            hint = near(name, schema.model_fields) or f"; gsolve config shows the fields of {base['algo_id']}"
            raise ConfigError(f"{path}: {name}: {base['algo_id']} has no such field{hint}")
        space += _parameters(str(name), entry, (), schema, path)
    for parameter in space:
        _require_valid(parameter, base, path)
    return space


def _parameters(
    name: str, entry: Any, fixed: Sequence[tuple[str, Any]], schema: type[RunConfig], path: Path
) -> Iterator[Parameter]:
    if isinstance(entry, Mapping) and set(entry) == {"choices"}:
        entry = entry["choices"]
    if isinstance(entry, list):
        if not entry:
            raise ConfigError(f"{path}: {name}: the list of choices is empty; name at least one value")
        yield Parameter(name, choices=tuple(_number(choice) for choice in entry), fixed=tuple(fixed))
    elif isinstance(entry, Mapping) and RANGE & set(entry):
        yield _range(name, entry, fixed, schema, path)
    elif isinstance(entry, Mapping) and "." not in name and any(isinstance(x, list | Mapping) for x in entry.values()):
        rest = [(f"{name}.{key}", _number(x)) for key, x in entry.items() if not isinstance(x, list | Mapping)]
        for key, inner in entry.items():
            if isinstance(inner, list | Mapping):
                yield from _parameters(f"{name}.{key}", inner, rest, schema, path)
    else:
        raise ConfigError(
            f"{path}: {name}: {entry!r} is neither a range nor a choice; write {{low: …, high: …}} or a list, "
            f"and a value for all trials as -s {name}=…"
        )


def _range(
    name: str, entry: Mapping[str, Any], fixed: Sequence[tuple[str, Any]], schema: type[RunConfig], path: Path
) -> Parameter:
    unknown = set(entry) - RANGE
    if unknown or not {"low", "high"} <= set(entry):
        wrong = f"{min(unknown)} is not known" if unknown else "both are needed"
        raise ConfigError(f"{path}: {name}: a range is {{low, high, log, step}}; {wrong}")
    low, high, step = (_number(entry.get(key)) for key in ("low", "high", "step"))
    for key, value in (("low", low), ("high", high), ("step", step)):
        if (value is None and key != "step") or isinstance(value, str | bool | list | Mapping):
            raise ConfigError(
                f"{path}: {name}: {key} {value!r} is not a number; for values of another kind give a list"
            )
    log = bool(entry.get("log", False))
    if low > high:
        raise ConfigError(f"{path}: {name}: low {low:g} is above high {high:g}; swap them")
    if log and low <= 0:
        raise ConfigError(f"{path}: {name}: a log range has no zero; use low: {high / 1000:g}, or log: false")
    if step is not None and (log or step <= 0):
        raise ConfigError(f"{path}: {name}: step {step:g} needs log: false and has to be above 0")
    kinds = _kinds(schema.model_fields[name.partition(".")[0]].annotation) if "." not in name else {float}
    are_whole = all(float(x).is_integer() for x in (low, high, step or 1))
    whole = int in kinds and are_whole and (float not in kinds or low > 1)
    return Parameter(name, (), low, high, log, step, whole, tuple(fixed))


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation: {int}, {float, Schedule}, …"""
    inner = get_args(annotation)
    return set().union(*map(_kinds, inner)) if inner else {annotation}


def _number(value: Any) -> Any:
    """YAML 1.1 reads a bare 3e-4 as a string."""
    return value if isinstance(value, bool) else number(value)


def _require_valid(parameter: Parameter, base: Mapping[str, Any], path: Path) -> None:
    """A bound that the field can never have is an error of the file; what only some combinations rule out is not."""
    for value in parameter.choices or (parameter.low, parameter.high):
        try:
            build_config(repaired(applied(base, [parameter], {parameter.name: value})), parameter.name)
        except ConfigError as error:
            reason = str(error).removeprefix(f"{parameter.name}: ")
            if reason.startswith(parameter.name.partition(".")[0]):
                raise ConfigError(f"{path}: {reason}") from None


def applied(base: Mapping[str, Any], space: Sequence[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """The base config with these values of the parameters."""
    changes: dict[str, Any] = {}
    for parameter in space:
        changes |= dict(parameter.fixed)
    return with_overrides(base, changes | dict(values))


def repaired(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The nearest config whose sizes fit: a batch that divides the rollout, whole gradient steps per update."""
    fixed = dict(fields)
    card = find_card(fixed.get("algo_id"))
    if card is not None and card.splits_rollouts and fixed["batch_size"] > 1:
        rollout = fixed["n_envs"] * fixed["n_steps"]
        divisors = [size for size in range(2, rollout + 1) if rollout % size == 0]
        fixed["batch_size"] = min(divisors, key=lambda size: abs(math.log(size / fixed["batch_size"])), default=rollout)
    if "update_to_data" in fixed and "train_freq" in fixed:
        steps = fixed["n_envs"] * fixed["train_freq"]
        fixed["update_to_data"] = max(1, round(fixed["update_to_data"] * steps)) / steps
        fixed["n_steps"] = max(1, round(fixed["n_steps"] / fixed["train_freq"])) * fixed["train_freq"]
    return fixed


def grid_points(space: Sequence[Parameter]) -> list[dict[str, Any]]:
    axes = [parameter.grid() for parameter in space]
    if (count := math.prod(map(len, axes))) > MOST_GRID_POINTS:
        raise ConfigError(f"--sampler grid: the space has {count:,} points; use fewer choices, or --sampler tpe")
    return [dict(zip((p.name for p in space), point, strict=True)) for point in itertools.product(*axes)]
