"""A sweep as pictures: how it went, what mattered, and where in each range the good trials are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gymnasium_solver.runs.svg import BLUE, GREEN, GREY, INK, ORANGE
from gymnasium_solver.verify.objective import UNITS
from gymnasium_solver.verify.pictures import png, style
from gymnasium_solver.verify.sweeping.space import Parameter
from gymnasium_solver.verify.sweeping.studies import Study

Rows = Sequence[Mapping[str, Any]]
COLUMNS = 3
PRUNED: dict[str, Any] = {"s": 18, "color": "#d08c8c", "marker": "x", "linewidths": 1.0, "label": "pruned"}


def draw(study: Study, document: Mapping[str, Any]) -> dict[str, bytes]:
    """File name → PNG, as far as there is something to show."""
    complete, pruned = (
        [row for row in document["trials"] if row["outcome"] == outcome] for outcome in ("complete", "pruned")
    )
    if not complete:
        return {}
    values = [row["value"] for row in complete]
    worst = min(values) if document["objective"] == "return" else max(values)  # where those without a value are drawn
    drawn = {"history.png": _figure(1, 1, partial(_history, document, complete, pruned, worst))}
    if document["importance"]:
        drawn["importance.png"] = _figure(1, 1, partial(_importance, document["importance"]))
    columns = min(COLUMNS, len(study.space))
    fill = partial(_slices, study.space, complete, pruned, worst, document["best"]["number"])
    return drawn | {"parameters.png": _figure(math.ceil(len(study.space) / columns), columns, fill)}


def _history(document: Mapping[str, Any], complete: Rows, pruned: Rows, worst: float, axes: Sequence[Any]) -> None:
    (axis,) = axes
    numbers, values = [row["number"] for row in complete], [row["value"] for row in complete]
    choose = max if document["objective"] == "return" else min
    axis.scatter(numbers, values, s=18, color=GREY, label="trial", zorder=3)
    if pruned:
        axis.scatter([row["number"] for row in pruned], [worst] * len(pruned), **PRUNED)
    reached = [choose(values[: index + 1]) for index in range(len(values))]
    axis.step(numbers, reached, where="post", color=BLUE, linewidth=1.6, label="best so far")
    if document["base"] is not None:
        axis.axhline(document["base"]["value"], color=ORANGE, linestyle=(0, (5, 3)), label="the unchanged config")
    _style(axis, UNITS[document["objective"]], "trial")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(frameon=False, fontsize=9)


def _importance(importance: Mapping[str, float], axes: Sequence[Any]) -> None:
    (axis,) = axes
    names = list(importance)[::-1]
    axis.barh(names, [importance[name] for name in names], color=BLUE, height=0.6)
    _style(axis, "what mattered", "share in separating the better half of the trials from the rest")


def _slices(
    space: Sequence[Parameter], complete: Rows, pruned: Rows, worst: float, best: int, axes: Sequence[Any]
) -> None:
    for axis, parameter in zip(axes, space, strict=False):
        places, cut = ([row["params"][parameter.name] for row in rows] for rows in (complete, pruned))
        if parameter.choices:
            choices = list(parameter.distribution().choices)
            places, cut = ([choices.index(place) for place in drawn] for drawn in (places, cut))
            axis.set_xticks(range(len(choices)), [str(choice) for choice in choices])
            axis.set_xlim(-0.5, len(choices) - 0.5)
        elif parameter.log:
            axis.set_xscale("log")
        axis.scatter(cut, [worst] * len(cut), **PRUNED)
        colours = [GREEN if row["number"] == best else GREY for row in complete]
        sizes = [44 if row["number"] == best else 16 for row in complete]
        axis.scatter(places, [row["value"] for row in complete], s=sizes, color=colours, zorder=3)
        _style(axis, parameter.name, "")
    for axis in axes[len(space) :]:
        axis.set_visible(False)


def _figure(rows: int, columns: int, fill: Callable[[Sequence[Any]], None]) -> bytes:
    from matplotlib.figure import Figure

    height = 3.6 if rows == columns == 1 else 2.4 * rows
    figure = Figure(figsize=(9, height), dpi=110, facecolor="white", layout="constrained")
    fill([figure.add_subplot(rows, columns, place + 1) for place in range(rows * columns)])
    return png(figure)


def _style(axis: Any, title: str, below: str) -> None:
    from matplotlib.ticker import EngFormatter

    if axis.get_ylim()[1] > 2000:
        axis.yaxis.set_major_formatter(EngFormatter(sep=""))
    style(axis, title)
    axis.set_xlabel(below, color=INK, fontsize=9)
