"""The cases: a reference with one thing wrong (or changed without harm), and the cause that is to be named.

Whether a fault bites is measured (`run.py admit`), not declared: one that does not belongs to the harmless suite, where
a critical finding is a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym

from faults import wrappers
from faults.environments import wrapped
from faults.references import REFERENCES, Reference
from gymnasium_solver.config.schema import Config

Split = Literal["calibration", "test", "both"]
SEEDS: dict[str, tuple[int, ...]] = {"calibration": (0, 1, 2), "test": (100, 101, 102), "fresh": (200, 201, 202)}
# Cases of the test split, one per line, chosen before the engine that is judged by them was written.
HELD_OUT = Path(__file__).parent / "held_out.txt"
UNDO = "undo"  # no change of the config can help: what is broken has to be fixed itself


@dataclass(frozen=True)
class Case:
    name: str
    reference: Reference
    cause: str | None = None  # None: nothing is wrong
    accepts: tuple[str, ...] = ()  # further causes that count as the same class
    overrides: Mapping[str, Any] = field(default_factory=dict)
    wrapper: Callable[[gym.Env], gym.Env] | None = None
    patch: str | None = None  # a name in patches.PATCHES
    reward_factor: float | None = 1.0  # rewards are so many times the true ones; None: they say nothing of the task
    hidden_config: bool = False  # diagnosed without its hyperparameters
    fix: tuple[str, ...] | Literal["undo"] = ()  # fields whose change is the accepted repair
    split: Split = "calibration"

    @property
    def causes(self) -> tuple[str, ...]:
        return (self.cause, *self.accepts) if self.cause else ()

    def config(self, seed: int, changes: Mapping[str, Any] | None = None) -> Config:
        return self.reference.config({**self.overrides, **(changes or {})}, seed)

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Within the block, environments and functions have the fault."""
        from faults.patches import PATCHES

        with ExitStack() as stack:
            if self.wrapper is not None:
                stack.enter_context(wrapped(self.reference.env_id, self.wrapper))
            if self.patch is not None:
                stack.enter_context(PATCHES[self.patch]())
            yield

    def score(self, reward: float) -> float:
        return self.reference.score(reward / (self.reward_factor or 1.0))


def clean(reference: str) -> Case:
    return Case(f"{reference}.clean", REFERENCES[reference], split="both")


def harmless(
    name: str, *, patch: str | None = None, wrapper: Any = None, factor: float = 1.0, **overrides: Any
) -> Case:
    """A change that is not expected to hurt."""
    reference = REFERENCES[name.partition(".")[0]]
    return Case(name, reference, overrides=overrides, patch=patch, wrapper=wrapper, reward_factor=factor)


def by_config(name: str, cause: str, *accepts: str, hidden: bool = False, **overrides: Any) -> Case:
    reference = REFERENCES[name.partition(".")[0]]
    return Case(name, reference, cause, accepts, overrides, hidden_config=hidden, fix=tuple(overrides))


def by_environment(
    name: str,
    cause: str,
    *accepts: str,
    wrapper: Callable[[gym.Env], gym.Env],
    fix: tuple[str, ...] | Literal["undo"] = "undo",
    factor: float | None = 1.0,
    **overrides: Any,
) -> Case:
    reference = REFERENCES[name.partition(".")[0]]
    return Case(name, reference, cause, accepts, overrides, wrapper=wrapper, reward_factor=factor, fix=fix)


def by_code(name: str, cause: str, *accepts: str, patch: str, **overrides: Any) -> Case:
    return Case(name, REFERENCES[name.partition(".")[0]], cause, accepts, overrides, patch=patch, fix="undo")


def rewards_times(name: str, factor: float) -> Case:
    """Rewards of another size; the threshold is on the same scale, as it would be for whoever made the environment."""
    threshold = REFERENCES[name.partition(".")[0]].threshold * factor
    return by_environment(
        name,
        "reward-scale",
        "value-loss-swamps-policy",
        wrapper=partial(wrappers.ScaledReward, factor=factor),
        fix=("normalize_reward", "vf_coef", "max_grad_norm", "env_wrappers", "policy_lr"),
        factor=factor,
        reward_threshold=threshold,
    )


def observations_times(name: str, factor: float) -> Case:
    scale = partial(wrappers.ScaledObservation, factor=factor)
    return by_environment(name, "observation-scale", wrapper=scale, fix=("normalize_obs", "env_wrappers"))


def all_cases() -> dict[str, Case]:
    from faults.catalogue import FAULTS, HARMLESS

    held_out = set(HELD_OUT.read_text(encoding="utf-8").split())
    planted = [replace(case, split="test" if case.name in held_out else "calibration") for case in FAULTS + HARMLESS]
    return {case.name: case for case in [*(clean(name) for name in REFERENCES), *planted]}
