"""What a card says of an algorithm: everything that differs by algorithm, but how it learns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from gymnasium_solver.config.base import RunConfig

ActionKind = Literal["discrete", "multi_discrete", "box"]
ACTION_KINDS: Mapping[ActionKind, str] = {
    "discrete": "discrete",
    "multi_discrete": "several discrete",
    "box": "continuous",
}
Range = tuple[float | None, float | None]  # of usual values; None: no bound


class Look(NamedTuple):
    """What the spaces of an environment look like, as far as defaults depend on it."""

    image: bool = False
    continuous: bool = False  # Box actions
    limit: int | None = None  # steps of the longest episode


class Around(NamedTuple):
    """A search around the base config's value, by a factor either way."""

    factor: float
    most: float = math.inf


# Around the base value, choices that it joins, or a range that reaches at least as far as it.
Search = Around | list[float] | tuple[float, float]


class Actions(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...


class Spaces(Protocol):
    """The part of an environment's description that decides whether an algorithm can serve it."""

    @property
    def obs_shape(self) -> tuple[int, ...]: ...
    @property
    def obs_sizes(self) -> tuple[int, ...]: ...
    @property
    def action(self) -> Actions: ...


_MISSING: Any = None  # what `register` refuses


@dataclass(frozen=True, kw_only=True)
class Card:
    """`register` refuses a card that lacks a part; parts after `probe` may be left out."""

    algo_id: str = _MISSING
    title: str = _MISSING  # what it is, in one sentence
    family: str = _MISSING  # on_policy, replay, tabular
    config: type[RunConfig] = _MISSING
    make: str = _MISSING  # "module:function" that makes the algorithm of (config, spaces)
    feed: str = _MISSING  # how experience becomes its batches: rollout, replay, or "module:factory"
    actions: tuple[ActionKind, ...] = _MISSING  # that it serves
    instead: Mapping[str, str] = _MISSING  # by kind of actions that it does not serve: what does
    defaults: Callable[[Look], dict[str, Any]] = _MISSING  # for an environment without a file
    usual: Mapping[str, Range] = _MISSING  # settings as they usually are; outside of it a setting is suspect
    search: Mapping[str, Search] = _MISSING  # what a sweep that names no space tunes
    probe: Mapping[str, Any] = _MISSING  # settings that solve the probe environments within seconds

    is_squashed: bool = False  # acts in [-1, 1], which is scaled to the bounds of a Box: it must have some
    needs_discrete_observations: bool = False
    requires: Callable[[Any, Spaces], None] | None = None  # raises ConfigError for what is special about it
    tried: Mapping[str, int] = field(default_factory=dict)  # place among what `solve` begins with, by kind of task
    quick: tuple[str, ...] = ()  # environments on which `regress quick` trains it
    signature: tuple[tuple[str, ...], ...] = ()  # metrics that together only its runs have; any of these sets
    order: int = 100  # place in lists

    @cached_property
    def traits(self) -> frozenset[str]:
        """What can be asked of it: its family, its config fields, and whether its actions are squashed."""
        squashed = {"squashed"} if self.is_squashed else set()
        return frozenset({self.family, *squashed, *self.config.model_fields})

    @property
    def splits_rollouts(self) -> bool:
        """Whether minibatches must divide a rollout."""
        return self.feed == "rollout" and "batch_size" in self.traits
