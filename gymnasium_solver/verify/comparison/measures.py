"""What runs are measured by, so that each is held to the same: reward, threshold, and the stretch of training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gymnasium_solver.metrics.clocks import Clock
from gymnasium_solver.statistics import interquartile_means
from gymnasium_solver.verify.comparison.runs import EVALUATION, FINAL, TRAINING, ComparedRun
from gymnasium_solver.verify.comparison.sides import Side

GRID = 60  # points of a curve over the seeds
BAND_RESAMPLES = 500
DEAD = "failed"  # a run that will get no better than it was


@dataclass(frozen=True)
class Measures:
    """Common to all runs that have data; a name is None where there is none that all of them recorded."""

    final: str | None
    curve: str | None
    threshold: float | None
    clock: Clock
    start: float  # steps between which all runs have a value of the curve
    end: float

    @property
    def reward(self) -> str:
        """What `final_reward` is, in words."""
        if self.final == FINAL or self.final is None:
            return f"{self.final or 'no common measure'}"
        return f"{self.final} after {self.end:,.0f} {self.clock.words}, which all runs reached"

    def holds(self, run: ComparedRun) -> bool:
        """Whether the last value of its curve stands for what would have followed: it stopped because it was good
        enough, by this very curve, or it broke."""
        if run.summary["status"] == DEAD:
            return True
        return run.ended_solved and self.threshold is not None and run.last(str(self.curve)) >= self.threshold


def common_measures(sides: Sequence[Side]) -> Measures:
    """A reward that only some of the runs recorded compares nothing, nor do values after different numbers of steps."""
    runs = [run for side in sides for run in side.runs if recorded_rewards(run)]

    def first(*names: str) -> str | None:
        return next((name for name in names if runs and all(run.curve(name)[1].size for run in runs)), None)

    thresholds = (run.summary["threshold"] for side in sides for run in side.runs)
    threshold = next((float(value) for value in thresholds if value is not None), None)
    curve, clock = first(EVALUATION, TRAINING), sides[0].runs[0].clock
    found = Measures(first(FINAL) or curve, curve, threshold, clock, 0.0, 0.0)
    if curve is None:
        return found
    start = max(float(run.curve(curve)[0][0]) for run in runs)
    furthest = max(run.trained for run in runs)
    end = min((run.trained for run in runs if not found.holds(run)), default=furthest)
    return replace(found, start=start, end=end)


def recorded_rewards(run: ComparedRun) -> list[str]:
    return [name for name in (FINAL, EVALUATION, TRAINING) if run.curve(name)[1].size]


def run_results(run: ComparedRun, measures: Measures) -> dict[str, Any]:
    """One run in numbers, NaN where one is not known."""
    reached = _steps_to_threshold(run, measures)
    own = run.summary["threshold"]
    is_ours = own is None or own == measures.threshold
    return {
        "run_id": run.run_id,
        "seed": run.seed,
        "status": run.summary["status"],
        run.clock.name: run.trained,
        "final_reward": _final_reward(run, measures),
        "solved": bool(run.summary["solved"]) if is_ours else math.isfinite(reached),
        "reached": math.isfinite(reached),
        "steps_to_threshold": reached,
        "seconds_to_threshold": run.seconds_at(reached) if not math.isnan(reached) else math.nan,
        "steps_per_second": run.pace,
        "area": _area(run, measures),
        "path": str(run.run.path),
    }


def _steps_to_threshold(run: ComparedRun, measures: Measures) -> float:
    """Infinite if it was not reached; unknown where the run stopped early, solved by another measure than this."""
    if measures.threshold is None or measures.curve is None or not recorded_rewards(run):
        return math.nan
    steps = run.steps_to(measures.threshold, measures.curve)
    stopped_early = run.ended_solved and run.trained < (run.clock.budget_of(run.config) or math.inf)
    return math.nan if math.isinf(steps) and stopped_early else steps


def _final_reward(run: ComparedRun, measures: Measures) -> float:
    if measures.final is None or measures.final == FINAL:
        return run.last(FINAL)
    return float(_on_grid(run, measures, np.array([max(measures.start, measures.end)]))[0])


def _area(run: ComparedRun, measures: Measures) -> float:
    """Mean reward over the stretch that all runs share: the area under the learning curve for each step of it."""
    if measures.end <= measures.start:
        return math.nan
    return float(np.mean(_on_grid(run, measures, np.linspace(measures.start, measures.end, 4 * GRID))))


def _on_grid(run: ComparedRun, measures: Measures, grid: np.ndarray) -> np.ndarray:
    """Its curve at these steps; NaN before its first point, and after its end unless the last value holds."""
    steps, values = run.curve(str(measures.curve))
    if not steps.size:
        return np.full(grid.size, np.nan)
    beyond = values[-1] if measures.holds(run) else np.nan
    found = np.interp(grid, steps, values, left=np.nan)
    return np.where(grid > max(steps[-1], run.trained), beyond, found)


def side_curve(side: Side, measures: Measures, end: float) -> dict[str, list[float]]:
    """Interquartile mean over the seeds with its bootstrap interval, where all of them have a value."""
    grid = np.linspace(0, end, GRID)
    rows = [_on_grid(run, measures, grid) for run in side.runs if run.curve(str(measures.curve))[0].size]
    table = np.array(rows).reshape(-1, GRID)
    known = ~np.isnan(table).any(axis=0)
    grid, by_point = grid[known], table[:, known].T  # [point, seed]
    if not by_point.size:
        return {"steps": [], "iqm": [], "low": [], "high": []}
    drawn = np.random.default_rng(0).integers(len(rows), size=(BAND_RESAMPLES, len(rows)))
    low, high = np.quantile(interquartile_means(by_point[:, drawn]), (0.025, 0.975), axis=1)
    middle = interquartile_means(by_point)
    return {"steps": grid.tolist(), "iqm": middle.tolist(), "low": low.tolist(), "high": high.tolist()}
