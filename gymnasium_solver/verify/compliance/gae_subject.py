"""A user's GAE function as the checks see it: advantages (and returns) of a rollout, whatever shapes it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gymnasium_solver.verify.compliance.functions import Function, Subject, backends, describe, refuse, to_numpy
from gymnasium_solver.verify.compliance.samples import Rollout, rollouts

Array = np.ndarray


class Layout(NamedTuple):
    name: str
    rows: Callable[[Array], Array]  # [T, N] → as the function takes it; also the way back
    last: Callable[[Array], Array]  # [N] → the value after the last row
    time_axis: int
    single: bool = False  # one environment a call


LAYOUTS = (
    Layout("[T, N]", lambda x: x, lambda x: x, 0),
    Layout("[T, N], last value [1, N]", lambda x: x, lambda x: x[None], 0),
    Layout("[N, T]", lambda x: x.T, lambda x: x, 1),
    Layout("[N, T], last value [N, 1]", lambda x: x.T, lambda x: x[:, None], 1),
    Layout("[T]", lambda x: x[:, 0], lambda x: x[0], 0, True),
    Layout("[T], last value [1]", lambda x: x[:, 0], lambda x: x, 0, True),
)


class Estimate(NamedTuple):
    advantages: Array  # [T, N]
    returns: Array | None


@dataclass(frozen=True)
class GaeSubject:
    subject: Subject
    layout: Layout
    boolean: bool  # dones as booleans, not as 0.0 and 1.0

    def takes(self, name: str) -> bool:
        return name in self.subject.parameters

    @property
    def knows_truncation(self) -> bool:
        return sum(map(self.takes, ("terminated", "truncated", "dones"))) >= 2

    def rollouts(self) -> list[Rollout]:
        return rollouts(truncation=self.knows_truncation)

    def estimate(self, rollout: Rollout) -> Estimate:
        if not self.layout.single:
            return self._call(rollout)
        columns = [self._call(rollout.env(index)) for index in range(rollout.rewards.shape[1])]
        returns = [column.returns for column in columns if column.returns is not None]
        return Estimate(
            np.concatenate([column.advantages for column in columns], axis=1),
            np.concatenate(returns, axis=1) if returns else None,
        )

    def _call(self, rollout: Rollout) -> Estimate:
        return self._unpacked(self.subject(self.arguments(rollout)), rollout.rewards.shape)

    def arguments(self, rollout: Rollout) -> dict[str, Any]:
        rows, last = self.layout.rows, self.layout.last

        def flags(x: Array) -> Array:
            return x.astype(bool) if self.boolean else x

        starts = np.concatenate([np.zeros_like(rollout.done[:1]), rollout.done[:-1]])
        # With the flag after the last row given apart, the others tell which rows begin an episode.
        dones = starts if self.takes("last_done") else rollout.done
        values = rollout.values
        if not self.takes("last_value") and not self.takes("next_values"):
            values = np.concatenate([values, rollout.last_value[None]])
        return {
            "rewards": rows(rollout.rewards),
            "values": rows(values),
            "next_values": rows(rollout.next_values),
            "last_value": np.array(last(rollout.last_value)),
            "dones": rows(flags(dones)),
            "masks": rows(1 - dones),
            "episode_starts": rows(flags(starts)),
            "terminated": rows(flags(rollout.terminated)),
            "truncated": rows(flags(rollout.truncated)),
            "last_done": np.array(last(flags(rollout.done[-1]))),
            "discounts": rows(rollout.gamma * (1 - rollout.done)),
            "gamma": rollout.gamma,
            "gae_lambda": rollout.gae_lambda,
        }

    def _unpacked(self, output: Any, shape: tuple[int, ...]) -> Estimate:
        if isinstance(output, Mapping):
            named = {str(name).lower(): value for name, value in output.items()}
            parts = [next((v for n, v in named.items() if n.startswith(start)), None) for start in ("adv", "ret")]
        elif isinstance(output, tuple) or (isinstance(output, list) and len(output) == 2 != shape[0]):
            parts = [*output[:2], None][:2]
        else:
            parts = [output, None]
        arrays = [None if part is None else self._rows_of(to_numpy(part), shape) for part in parts]
        if arrays[0] is None:
            raise ValueError("it returns no advantages")
        return Estimate(arrays[0], arrays[1])

    def _rows_of(self, array: Array, shape: tuple[int, ...]) -> Array:
        wanted = self.layout.rows(np.zeros(shape)).shape
        if array.shape != wanted:
            raise ValueError(f"it returns shape {array.shape} for rewards of shape {wanted}")
        return array[:, None] if self.layout.single else self.layout.rows(array)


def settle(
    function: Function, parameters: Mapping[str, str], framework: str | None, is_right: Callable[[GaeSubject], bool]
) -> GaeSubject:
    """The first library, shape and kind of flags with which the function is right; else with which it runs at all."""
    tried, runs = [], None
    for backend in backends(function, framework):
        for boolean in (False, True):
            for layout in LAYOUTS:
                candidate = GaeSubject(Subject(function, parameters, backend), layout, boolean)
                try:
                    right = is_right(candidate)
                except Exception as error:  # anything may happen in someone else's function
                    tried.append(f"{backend.name} arrays {layout.name}: {describe(error)}")
                    continue
                if right:
                    return candidate
                runs = runs or candidate
        if runs is not None:  # another library would not make it right
            return runs
    raise refuse(function, tried[:2])
