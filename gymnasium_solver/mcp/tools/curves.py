"""How a run went: `get_run_metrics get_run_logs`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from gymnasium_solver.api.curves import between, curve, in_order
from gymnasium_solver.api.metrics import describe
from gymnasium_solver.errors import NotFoundError
from gymnasium_solver.mcp.answers import CHARACTERS, LINE, Answer, last_lines
from gymnasium_solver.mcp.arguments import RunId
from gymnasium_solver.mcp.place import Place
from gymnasium_solver.mcp.toolbox import Toolbox

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

SHOWN = (
    *("val/roll/ep_rew_mean", "train/roll/ep_rew_mean", "train/metrics/kl_divergence", "train/metrics/clip_fraction"),
    *("train/metrics/explained_variance", "train/metrics/entropy", "train/loss/value", "train/metrics/grad_norm/all"),
    *("train/metrics/q_mean", "train/metrics/td_error"),
)
MOST_METRICS, MOST_POINTS, MOST_LINES = 20, 1000, 2000
OF_A_CURVE, OF_A_POINT = 500, 26  # characters


class Curve(BaseModel):
    steps: list[float] = Field(description="On the run's clock.")
    values: list[float]
    total: int = Field(description="Values recorded; more than are shown if downsampled.")
    downsampled: bool
    last: float
    lowest: tuple[float, float] = Field(description="(step, value) over all values, not only those shown.")
    highest: tuple[float, float]
    unit: str | None
    healthy: tuple[float | None, float | None] | None = Field(description="Healthy range, where one is known.")
    meaning: str | None


class Metrics(Answer):
    run_id: str
    status: str
    clock: str = Field(description="What steps count: env_steps, or updates where there is no environment.")
    series: dict[str, Curve]
    empty: list[str] = Field(description="Asked for, but without a value yet.")


class Log(Answer):
    run_id: str
    lines: list[str] = Field(description="The last lines, oldest first.")
    total: int


def register(tools: Toolbox, place: Place) -> None:
    @tools.reads
    def get_run_metrics(
        run_id: RunId,
        metric_names: Annotated[
            list[str] | None,
            Field(description="Metrics, or patterns such as train/metrics/* [the ones that tell most].", max_length=50),
        ] = None,
        max_points: Annotated[int, Field(description="Points of a curve.", ge=2, le=MOST_POINTS)] = 50,
        from_step: Annotated[float | None, Field(description="Only from this step of the run's clock on.")] = None,
        to_step: Annotated[float | None, Field(description="Only up to this step.")] = None,
    ) -> Metrics:
        """Curves of a run over env steps or updates, thinned to real values with their peaks, and healthy ranges. Use
        it to look at what a diagnosis points to; narrow from_step and to_step to see an anomaly in full. Names:
        get_run_info."""
        with place.reading(run_id) as run:
            names = _resolved(run, metric_names)
            shown, left_out = names[:MOST_METRICS], names[MOST_METRICS:]
            run.metrics.load(shown)
            points = min(max_points, _points_that_fit(len(shown)))
            curves = {name: _curve(run, name, points, from_step, to_step) for name in shown}
            series = {name: curve for name, curve in curves.items() if curve is not None}
            thinned = sum(curve.downsampled for curve in series.values())
            cut = []
            if thinned:
                more = "raise max_points, or " if max_points == points < MOST_POINTS else ""
                more = "ask for fewer metrics, or " if points < max_points and len(shown) > 1 else more
                cut = [f"{thinned} curves downsampled to {points} points: {more}narrow from_step and to_step"]
            if left_out:
                cut.append(f"{len(left_out)} metrics left out, name them: {', '.join(left_out[:10])}")
            return Metrics(
                run_id=run.run_id,
                status=run.summary()["status"],
                clock=run.clock.name,
                series=series,
                empty=[name for name in shown if name not in series],
                truncated=cut,
            )

    @tools.reads
    def get_run_logs(
        run_id: RunId,
        lines: Annotated[int, Field(description="How many of the last lines.", ge=1, le=MOST_LINES)] = 100,
        search: Annotated[str, Field(description="Only lines that contain this, e.g. WARNING.")] = "",
    ) -> Log:
        """The last lines of a run's log: engine, warnings, the end, the traceback of a failure. Use it when a run
        failed or crashed. Next: diagnose_run."""
        with place.reading(run_id) as run:
            found = [line for line in run.log_lines() if search.lower() in line.lower()]
            shown = last_lines(found, lines)
            cut = []
            if len(shown) < len(found):
                more = "raise lines, or " if len(shown) == lines < MOST_LINES else ""
                cut.append(f"the last {len(shown)} of {len(found)} lines: {more}search for a word")
            if any(len(line) > LINE for line in found[len(found) - len(shown) :]):
                cut.append(f"lines cut after {LINE} characters")
            return Log(run_id=run.run_id, lines=shown, total=len(found), truncated=cut)


def _resolved(run: Run, asked: Sequence[str] | None) -> list[str]:
    """Names of the run's metrics; one that it does not have is an error that names the nearest."""
    known = run.metrics.names
    if asked is None:
        return [name for name in SHOWN if name in known]
    found: dict[str, None] = {}
    for name in asked:
        matching = [name] if name in known else [one for one in known if fnmatchcase(one, name)]
        if not matching:
            near = difflib.get_close_matches(name, known, 3, cutoff=0.4)
            hint = f"the nearest are {', '.join(near)}" if near else f"it has {len(known)} others"
            raise NotFoundError(f"run {run.run_id} has no metric {name!r}; {hint}; get_run_info lists all names")
        found |= dict.fromkeys(matching)
    return list(found)


def _points_that_fit(curves: int) -> int:
    """Of each, so that all of them make one answer."""
    return (CHARACTERS // max(curves, 1) - OF_A_CURVE) // OF_A_POINT


def _curve(run: Run, name: str, points: int, start: float | None, end: float | None) -> Curve | None:
    steps, values = between(*in_order(*run.metrics.series(name)), start, end)
    if not values.size:
        return None
    low, high = int(values.argmin()), int(values.argmax())
    return Curve(
        **curve(steps, values, points),
        last=float(values[-1]),
        lowest=(float(steps[low]), float(values[low])),
        highest=(float(steps[high]), float(values[high])),
        **describe(name),
    )
