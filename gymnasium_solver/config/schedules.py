"""Values that change over training, written where the plain value would stand.

    policy_lr: 0.001
    policy_lr: {start: 0.001, end: 0, schedule: cosine, warmup: 0.05}
    ent_coef:  {start: 0.01, end: 0.001, schedule: exponential, from: 0.2, to: 0.8}

`from`, `to` and `warmup` are fractions of training or, when greater than 1, counted on the config's clock: env steps,
or updates where there are no environments. `clock: env_steps` says which is meant, and is refused under the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

Clock = Literal["env_steps", "updates"]
ScheduleKind = Literal["linear", "cosine", "logarithmic", "exponential", "constant"]


def number(value: Any) -> Any:
    """YAML 1.1 reads a bare `3e-4` as a string; turn what looks like a number into one. True is no number."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is not a number")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def largest(value: Any) -> float | None:
    """A field as one number, as it is written in a config.json: of a schedule its larger end; None if it is none."""
    if isinstance(value, Mapping):
        value = max((x for x in (value.get("start"), value.get("end")) if isinstance(x, int | float)), default=None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


Number = Annotated[float, BeforeValidator(number)]


class Schedule(BaseModel):
    """A value moving from `start` to `end` between `from` and `to`, after rising from zero during `warmup`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    start: Number
    end: Number = 0.0
    schedule: ScheduleKind = "linear"
    warmup: Annotated[Number, Field(ge=0)] = 0.0
    from_: Annotated[Number, Field(ge=0, alias="from")] = 0.0
    to: Annotated[Number, Field(gt=0)] = 1.0
    clock: Clock | None = None

    @model_serializer(mode="wrap")
    def _as_written(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in plain(self).items() if name != "clock" or value is not None}

    @model_validator(mode="after")
    def _consistent(self) -> Schedule:
        if self.schedule == "exponential" and self.start * self.end <= 0:
            raise ValueError(
                f"an exponential schedule multiplies, so start ({self.start:g}) and end ({self.end:g}) must both be "
                f"nonzero with the same sign; try end: {self.start / 100:g}, or schedule: cosine"
            )
        if (self.from_ > 1) == (self.to > 1) and self.to <= self.from_:
            raise ValueError(f"`to` ({self.to:g}) must come after `from` ({self.from_:g})")
        return self

    def at(self, done: float, total: float) -> float:
        """The value in force after `done` of `total`, on the config's clock."""
        progress = done / total
        begin, finish, warmup = (_fraction(x, total) for x in (self.from_, self.to, self.warmup))
        x = min(max((progress - begin) / max(finish - begin, 1e-12), 0.0), 1.0)
        value = self._shape(x)
        return value * progress / warmup if progress < warmup else value

    def require_fit(self, clock: Clock, total: float) -> None:
        """`from` and `to` may be a fraction and a count: only the whole of training tells which is first."""
        unit = clock.replace("_", " ")
        if self.clock not in (None, clock):
            raise ValueError(
                f"its schedule counts {self.clock}, and this algorithm trains for max_{clock}; give `from`, `to` and "
                f"`warmup` in {unit} or as fractions, and leave `clock` out"
            )
        begin, finish = (_fraction(x, total) for x in (self.from_, self.to))
        if finish <= begin:
            raise ValueError(
                f"`to` ({self.to:g}) must come after `from` ({self.from_:g}) in training of {total:g} {unit}"
            )
        if self.from_ > 1 and self.from_ >= total:
            raise ValueError(
                f"`from` ({self.from_:g}) is past the end of training (max_{clock} {total:g}), so the value never "
                f"changes; count it in {unit}, or give a fraction of training"
            )

    def _shape(self, x: float) -> float:
        if self.schedule == "constant":
            return self.start
        if self.schedule == "exponential":
            return self.start * (self.end / self.start) ** x
        if self.schedule == "cosine":
            x = (1 - math.cos(math.pi * x)) / 2
        elif self.schedule == "logarithmic":  # fast at first, slow later
            x = math.log1p(9 * x) / math.log(10)
        return self.start + (self.end - self.start) * x


def _fraction(point: float, total: float) -> float:
    return point / total if point > 1 else point


def within(low: float, high: float = math.inf, *, low_open: bool = False) -> AfterValidator:
    """Bounds of a number, or of both ends of a schedule."""

    def check(value: float | Schedule) -> float | Schedule:
        # A schedule may end at an open bound: it only gets there when training is over.
        points = ((value.start, low_open), (value.end, False)) if isinstance(value, Schedule) else ((value, low_open),)
        for point, is_open in points:
            if point < low or (is_open and point == low) or point > high:
                limit = f" and <= {high:g}" if math.isfinite(high) else ""
                nearest = "" if is_open else f"; the nearest valid value is {min(max(point, low), high):g}"
                raise ValueError(f"must be {'>' if is_open else '>='} {low:g}{limit}, got {point:g}{nearest}")
        return value

    return AfterValidator(check)


def value_at(value: float | Schedule | None, done: float, total: float) -> float | None:
    """The number in force for a field that may be plain, scheduled or unset."""
    return value.at(done, total) if isinstance(value, Schedule) else value
