"""A user's loss function as the checks see it: a number and its gradient for a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance.functions import (
    Backend,
    Function,
    Subject,
    backends,
    describe,
    refuse,
    to_numpy,
)
from gymnasium_solver.verify.compliance.samples import LossBatch, loss_batch

Array = np.ndarray

_LOSS_KEYS = ("loss", "total_loss", "total", "policy_loss", "pg_loss", "actor_loss", "objective")


@dataclass(frozen=True)
class LossSubject:
    subject: Subject
    entropy_is_mean: bool = False  # it wants one number, not one a row

    @property
    def backend(self) -> Backend:
        return self.subject.backend

    def takes(self, *names: str) -> bool:
        return all(name in self.subject.parameters for name in names)

    @property
    def makes_advantages(self) -> bool:
        """It subtracts values from returns itself."""
        return not self.takes("advantages")

    def prepared(self, batch: LossBatch) -> LossBatch:
        return replace(batch, returns=batch.values + batch.advantages) if self.makes_advantages else batch

    def policy_only(self, batch: LossBatch) -> LossBatch:
        """Value loss and entropy bonus add nothing: by their weights or, where those are fixed, by themselves."""
        quiet = replace(self.prepared(batch), vf_coef=0.0, ent_coef=0.0, entropy=np.zeros_like(batch.entropy))
        return quiet if self.makes_advantages else replace(quiet, values=batch.returns, old_values=batch.returns)

    def output(self, batch: LossBatch, live: Mapping[str, Any] | None = None) -> Any:
        live = dict(live or {})
        names = ("log_prob", "old_log_prob", "advantages", "values", "old_values", "returns")
        given: dict[str, Any] = {name: getattr(batch, name) for name in names}
        given["entropy"] = np.array(batch.entropy.mean()) if self.entropy_is_mean else batch.entropy
        given["weight"] = np.ones_like(batch.advantages)
        given |= {name: getattr(batch, name) for name in ("clip_range", "clip_range_vf", "vf_coef", "ent_coef")}
        given |= live
        if self.takes("ratio") or self.takes("log_ratio"):
            new, old = (self._own(given[name]) for name in ("log_prob", "old_log_prob"))
            given |= {"log_ratio": new - old, "ratio": self.backend.exp(new - old)}
        return self.subject(given)

    def _own(self, value: Any) -> Any:
        return self.backend.array(value) if isinstance(value, np.ndarray) else value

    def value(self, batch: LossBatch) -> float:
        return float(_scalar(self.output(batch)))

    def gradient(self, batch: LossBatch, by: str = "log_prob") -> Array:
        def scalar(x: Any) -> Any:
            return _scalar(self.output(batch, {by: x}))

        return self.backend.gradient(scalar, getattr(batch, by))

    def is_per_row(self, batch: LossBatch) -> bool:
        return to_numpy(_loss_part(self.output(batch))).size > 1

    def named_numbers(self, batch: LossBatch) -> dict[str, float]:
        """What it reports beside the loss, where it has names."""
        output = self.output(batch)
        parts = output if isinstance(output, tuple) else (output,)
        found = {}
        for part in parts:
            if isinstance(part, Mapping):
                for name, value in part.items():
                    if np.size(value) == 1:
                        found[str(name)] = float(value)
        return found


def _loss_part(output: Any) -> Any:
    if isinstance(output, Mapping):
        for key in _LOSS_KEYS:
            if key in output:
                return output[key]
        raise ConfigError(
            f"validate: it returns a dict without {' or '.join(_LOSS_KEYS)}: {', '.join(map(str, output))}"
        )
    if isinstance(output, (tuple, list)):
        return _loss_part(output[0])
    return getattr(output, "loss", output)


def _scalar(output: Any) -> Any:
    part = _loss_part(output)
    return part.mean() if getattr(part, "ndim", 0) else part


def settle(function: Function, parameters: Mapping[str, str], framework: str | None) -> LossSubject:
    """The first library whose arrays the function takes."""
    if "advantages" not in parameters and not {"values", "returns", "vf_coef"} <= set(parameters):
        raise ConfigError("validate: a loss without advantages has to take values, returns and vf_coef")
    if "values" in parameters and "returns" not in parameters:
        raise ConfigError("validate: it takes values but no returns; say which parameter it is by --map returns=THEIRS")
    tried = []
    for backend in backends(function, framework):
        for entropy_is_mean in (False, True):
            candidate = LossSubject(Subject(function, parameters, backend), entropy_is_mean)
            try:
                per_row = candidate.is_per_row(loss_batch())
                candidate.value(loss_batch())
            except ConfigError:
                raise
            except Exception as error:  # anything may happen in someone else's function
                tried.append(f"{backend.name} arrays: {describe(error)}")
                continue
            if not per_row or not candidate.takes("entropy") or entropy_is_mean:
                return candidate
    raise refuse(function, tried)
