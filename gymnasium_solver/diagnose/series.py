"""What a curve says: level, trend, change points, spikes, plateau, oscillation, collapse. Free of the curve's scale."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gymnasium_solver.plain import number

POINTS = 400  # a longer series is averaged down to this many
LATE = 0.3  # share of the steps that counts as the end of a run
EARLY = 0.1
FEW = 11  # points; fewer have no trend that could be told from noise
SURE = 3.0  # standard errors of a trend that is taken for one


@dataclass(frozen=True)
class Series:
    """Values over the clock of the run, without gaps; at least one point."""

    steps: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, steps: np.ndarray, values: np.ndarray) -> Series | None:
        known = np.isfinite(steps) & np.isfinite(values)
        return cls(steps[known], values[known]) if known.any() else None

    @cached_property
    def thin(self) -> Series:
        """Means of equal runs of points, at most POINTS of them."""
        if len(self.values) <= POINTS:
            return self
        edges = np.linspace(0, len(self.values), POINTS + 1).astype(int)
        counts = np.diff(edges)
        return Series(self.steps[edges[1:] - 1], np.add.reduceat(self.values, edges[:-1]) / counts)

    def part(self, start: float, stop: float) -> np.ndarray:
        """Values between two fractions of the steps, at least the point next to them."""
        low, high = self.steps[0], self.steps[-1]
        begin, end = low + start * (high - low), low + stop * (high - low)
        inside = self.values[(self.steps >= begin) & (self.steps <= end)]
        return inside if inside.size else self.values[[int(np.argmin(np.abs(self.steps - (begin + end) / 2)))]]

    @cached_property
    def early(self) -> float:
        return float(np.median(self.part(0.0, EARLY)))

    @cached_property
    def late(self) -> float:
        return float(np.median(self.part(1 - LATE, 1.0)))

    @cached_property
    def low(self) -> float:
        return float(self.values.min())

    @cached_property
    def high(self) -> float:
        return float(self.values.max())

    @property
    def last(self) -> float:
        return float(self.values[-1])

    @cached_property
    def noise(self) -> float:
        """Standard deviation from point to point, whatever the trend: by the median, so that jumps do not count."""
        values = self.thin.values
        if len(values) < 3:
            return 0.0
        return float(1.4826 * np.median(np.abs(np.diff(values))) / np.sqrt(2))

    @cached_property
    def smooth(self) -> np.ndarray:
        """Of the thinned series: running mean over a twentieth of it."""
        values = self.thin.values
        width = max(1, len(values) // 20)
        padded = np.concatenate([np.full(width // 2, values[0]), values, np.full(width - 1 - width // 2, values[-1])])
        return np.convolve(padded, np.full(width, 1 / width), "valid")

    def trend(self, share: float = LATE) -> tuple[float, float]:
        """(change over the last `share` of the steps, its size in standard errors), autocorrelation allowed for."""
        thin = self.thin
        begin = thin.steps[-1] - share * (thin.steps[-1] - thin.steps[0])
        inside = thin.steps >= begin
        x, y = thin.steps[inside], thin.values[inside]
        if len(x) < 4 or np.ptp(x) == 0:
            return 0.0, 0.0
        centred = x - x.mean()
        slope = float(centred @ y / (centred @ centred))
        residuals = y - y.mean() - slope * centred
        spread = float(np.sqrt(residuals @ residuals / (len(x) - 2)))
        correlation = float(np.clip(residuals[1:] @ residuals[:-1] / max(residuals @ residuals, 1e-30), 0.0, 0.95))
        error = spread / np.sqrt(centred @ centred) * np.sqrt((1 + correlation) / (1 - correlation))
        change = slope * float(np.ptp(x))
        tiny = 1e-9 * max(1.0, abs(float(np.abs(y).max())))
        return change, change / max(error * float(np.ptp(x)), tiny)

    @cached_property
    def is_rising(self) -> bool:
        """At the end of the run, beyond doubt and not by next to nothing."""
        change, certainty = self.trend()
        return certainty >= SURE and change > 0.05 * max(float(np.ptp(self.smooth)), 1e-12)

    @cached_property
    def change_point(self) -> tuple[float, float, float] | None:
        """(step, level before, level after) of the split into two levels that explains most; None if it explains less
        than three quarters of the variance."""
        thin = self.thin
        n = len(thin.values)
        total = float(((thin.values - thin.values.mean()) ** 2).sum())
        if n < 8 or total <= 0:
            return None
        counts = np.arange(1, n)
        sums = np.cumsum(thin.values)[:-1]
        before, after = sums / counts, (thin.values.sum() - sums) / (n - counts)
        explained = counts * (n - counts) / n * (before - after) ** 2
        best = int(np.argmax(explained))
        if explained[best] < 0.75 * total or min(best + 1, n - best - 1) < 2:
            return None
        return float(thin.steps[best + 1]), float(before[best]), float(after[best])

    @cached_property
    def spikes(self) -> np.ndarray:
        """Steps of single points far off their neighbours."""
        values = self.values
        if len(values) < 7 or self.noise == 0:
            return np.empty(0)
        around = np.median(np.lib.stride_tricks.sliding_window_view(values, 7), axis=1)
        middle = values[3:-3]
        scale = 1.4826 * np.median(np.abs(middle - around)) + 1e-3 * float(np.abs(around).mean()) + 1e-30
        return self.steps[3:-3][np.abs(middle - around) > 10 * scale]

    @cached_property
    def collapse(self) -> tuple[float, float, float] | None:
        """(step, best level, level it fell to) where more than half of what was gained is lost again by the end."""
        smooth, steps = self.smooth, self.thin.steps
        top = int(np.argmax(smooth))
        best, late = float(smooth[top]), self.late
        gained = best - self.early
        if gained <= max(4 * self.noise, 1e-9) or best - late < 0.5 * gained or top >= len(smooth) - 2:
            return None
        below = np.flatnonzero(smooth[top:] < best - 0.5 * gained)
        return (float(steps[top + below[0]]), best, late) if below.size else None

    @cached_property
    def oscillation(self) -> float:
        """Largest swings back and forth in the second half, as a share of the whole range; 0 for a steady curve."""
        smooth = self.smooth[len(self.smooth) // 2 :]
        whole = float(np.ptp(self.smooth))
        if len(smooth) < 6 or whole <= 0:
            return 0.0
        turns = np.flatnonzero(np.diff(np.sign(np.diff(smooth))) != 0) + 1
        heights = np.abs(np.diff(smooth[np.concatenate([[0], turns, [len(smooth) - 1]])]))
        swings = np.sort(heights)[::-1][1:3]  # one large move is a trend; it takes a second one back
        return float(swings.mean() / whole) if swings.size else 0.0

    def shape(self, *, is_return: bool = False, unit: str = "steps") -> str:
        """The course of the curve in words; only a return can collapse, anything else falls."""
        if len(self.values) < 4:
            return f"only {len(self.values)} point{'s' if len(self.values) > 1 else ''}"
        if self.collapse:
            step, best, late = self.collapse
            if best - float(self.smooth[0]) < 0.2 * (best - late):  # it was at its best when it began
                return f"fell from {number(best)} to {number(late)}"
            if is_return:
                return f"collapsed at {step:,.0f} {unit} from {number(best)} to {number(late)}"
            return f"rose to {number(best)}, fell to {number(late)}"
        if np.ptp(self.values) <= 1e-9 * max(1.0, abs(self.high)):
            return f"constant at {number(self.last)}"
        if len(self.values) < FEW:
            return self._few_points()
        change, certainty = self.trend()
        whole = float(np.ptp(self.smooth))
        if whole < 0.005 * abs(self.late) or whole < 3 * self.noise:
            return f"steady around {number(self.late)}"
        if abs(certainty) >= SURE and abs(change) > 0.05 * whole:
            return f"still {'rising' if change > 0 else 'falling'} at {number(self.late)}"
        if self.oscillation > 0.4:
            return f"oscillating between {number(float(self.smooth.min()))} and {number(float(self.smooth.max()))}"
        return f"levelled off at {number(self.late)}"

    def _few_points(self) -> str:
        first, last = float(self.values[0]), self.last
        if self.high - self.low < 0.05 * max(abs(self.high), abs(self.low)):
            return f"steady around {number(float(np.median(self.values)))}"
        beyond = self.low < min(first, last) or self.high > max(first, last)
        between = f", between {number(self.low)} and {number(self.high)}" if beyond else ""
        return f"{len(self.values)} points, from {number(first)} to {number(last)}{between}"
