"""Invariants of a sound update. A breach is told once, in the log and the live view; it means a bug, not bad luck."""

from __future__ import annotations

from collections.abc import Iterator


class Watch:
    def __init__(self) -> None:
        self._told: set[str] = set()

    def check(self, metrics: dict[str, float]) -> Iterator[str]:
        for key, breached, message in (
            (
                "train/metrics/ratio_deviation_first",
                lambda v: v > 1e-3,
                "the first minibatch's policy ratio is off 1 by {:.2g}: what acted is not what is trained",
            ),
            ("train/metrics/kl_divergence", lambda v: v < -1e-6, "the KL estimate is negative ({:.2g})"),
            (
                "train/data/duplicate_envs",
                lambda v: v > 0,
                "{:.0f} environments repeat another's stream: their seeds, or a deterministic policy, make them equal",
            ),
        ):
            value = metrics.get(key)
            if value is not None and key not in self._told and breached(value):
                self._told.add(key)
                yield f"{key}: {message.format(value)}"
