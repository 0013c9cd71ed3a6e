"""Invariants of a sound update. A breach is reported once, in the log and the live view: it means a bug."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

Metrics = dict[str, float]


class Invariant(NamedTuple):
    metric: str
    is_breached: Callable[[Metrics, int], bool]  # metrics of an update, number of environments
    message: str


def _draws_actions(m: Metrics) -> bool:
    """Whether actions are random; if not, equal environments go equal ways, whatever their seeds."""
    drawn = (m.get(f"train/hp/{name}", 1.0) > 0 for name in ("epsilon", "noise_std"))
    return all(drawn) and "train/hp/ucb_coef" not in m


INVARIANTS = (
    Invariant(
        "train/metrics/ratio_deviation_first",
        lambda m, _: m["train/metrics/ratio_deviation_first"] > 1e-3,
        "the first minibatch's policy ratio is off 1 by {:.2g}: what acted is not what is trained",
    ),
    Invariant(
        "train/metrics/kl_divergence",
        lambda m, _: m["train/metrics/kl_divergence"] < -1e-6,
        "the KL estimate is negative ({:.2g}): a bug in the estimator or in action masks",
    ),
    Invariant(
        "train/data/duplicate_envs",
        # Some equal streams are coincidence in small discrete worlds; all of them, while observations vary, are not.
        lambda m, n: (
            n > 1 and m["train/data/duplicate_envs"] == n - 1 and m["train/data/obs_std"] > 0 and _draws_actions(m)
        ),
        "all environments show the same stream: they share a seed, or ignore their actions",
    ),
)


class Finding(Protocol):
    """Something that has become certain about a training."""

    @property
    def cause(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...


class Monitor(Protocol):
    """Is shown every row of metrics. Diagnosis lies to the right of training, so it is handed in."""

    def observe(self, row: Mapping[str, float]) -> Sequence[Finding]: ...


MakeMonitor = Callable[[Mapping[str, object], Mapping[str, object], float | None], Monitor]  # config, spaces, threshold


class Watch:
    def __init__(self, n_envs: int) -> None:
        self._n_envs = n_envs
        self._reported: set[str] = set()

    def check(self, metrics: Metrics) -> Iterator[str]:
        for metric, is_breached, message in INVARIANTS:
            if metric in metrics and metric not in self._reported and is_breached(metrics, self._n_envs):
                self._reported.add(metric)
                yield f"{metric}: {message.format(metrics[metric])}"
