"""The clock of a run: what its budget, its schedules and the x axis of its curves count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Clock(NamedTuple):
    name: str  # also of the count in status.json and in summaries
    unit: str  # "1,000 steps"
    words: str  # where other steps might be meant
    axis: str  # below a curve
    pace: str | None  # the column that has its units per second since the start

    @property
    def column(self) -> str:
        return f"train/cnt/{self.name}"

    @property
    def budget(self) -> str:
        """The config field that ends the run."""
        return f"max_{self.name}"

    def budget_of(self, *records: Mapping[str, Any]) -> float | None:
        """By the first of these (config, status) that has a number above 0."""
        found = (record.get(self.budget) for record in records)
        return next((n for n in found if isinstance(n, int | float) and n > 0), None)


ENV_STEPS = Clock("env_steps", "steps", "env steps", "environment steps", "train/sys/fps_total")
UPDATES = Clock("updates", "updates", "updates", "updates", None)
CLOCKS = {clock.name: clock for clock in (ENV_STEPS, UPDATES)}


def clock_of(config: Mapping[str, Any]) -> Clock:
    """Updates where they alone end the run, because there is no environment; else env steps."""
    return UPDATES if UPDATES.budget_of(config) and not ENV_STEPS.budget_of(config) else ENV_STEPS
