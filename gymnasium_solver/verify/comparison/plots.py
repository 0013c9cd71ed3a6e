"""A comparison in pictures: one colour a side. Matplotlib is imported when there is something to draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.runs.svg import BLUE, GREEN, GREY, INK, ORANGE
from gymnasium_solver.verify.comparison.course import PHASES
from gymnasium_solver.verify.pictures import png, style

COLOURS = (BLUE, ORANGE, "#8b5fbf", "#c0504d", "#2a9d9d", GREY, "#b08d3c", "#d46fa5")
COLUMNS = 2  # panels side by side
LOG_FROM = 5  # times from the smallest to the largest gradient norm: a scale of decades

Document = Mapping[str, Any]


def draw(document: Document) -> dict[str, bytes]:
    """Picture name → PNG, for the pictures that have anything to show."""
    found = {}
    if any(side["curve"]["steps"] for side in document["sides"]):
        found["curves.png"] = _picture({"return": _curves}, document, height=4.4)
    if document["schedules"]:
        found["schedules.png"] = _picture(dict.fromkeys(document["schedules"], _schedule), document)
    if parts := dict.fromkeys(part for by_part in document["gradients"].values() for part in by_part):
        found["gradients.png"] = _picture(dict.fromkeys(parts, _gradients), document)
    terms = ("policy", "value", "entropy")
    if shown := [term for term in terms if any(any(sizes) for sizes in _sizes(document, term).values())]:
        found["losses.png"] = _picture(dict.fromkeys(shown, _losses), document)
    return found


def _picture(panels: Mapping[str, Any], document: Document, height: float = 2.8) -> bytes:
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(9, height * rows), dpi=110, facecolor="white", layout="constrained")
    named: dict[str, Any] = {}  # a side may be missing from any one panel
    for place, (title, fill) in enumerate(panels.items()):
        axis = figure.add_subplot(rows, columns, place + 1)
        fill(axis, document, title)
        style(axis, title)
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    figure.legend(list(named.values()), list(named), frameon=False, fontsize=8, loc="outside upper left", ncols=3)
    return png(figure)


def _coloured(document: Document) -> dict[str, tuple[str, str]]:
    """Label → (colour, what the legend says)."""
    return {
        side["label"]: (COLOURS[place % len(COLOURS)], f"{side['label']}: {side['name']}")
        for place, side in enumerate(document["sides"])
    }


def _steps_below(axis: Any, document: Document) -> None:
    from matplotlib.ticker import EngFormatter

    axis.set_xlabel(CLOCKS[document["measures"]["clock"]].axis, color=INK, fontsize=9)
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.margins(x=0.01)


def _curves(axis: Any, document: Document, _: str) -> None:
    colours = _coloured(document)
    for side in document["sides"]:
        curve, (colour, name) = side["curve"], colours[side["label"]]
        if curve["steps"]:
            seeds = "1 seed" if len(side["runs"]) == 1 else f"{len(side['runs'])} seeds"
            axis.fill_between(curve["steps"], curve["low"], curve["high"], color=colour, alpha=0.15, linewidth=0)
            axis.plot(curve["steps"], curve["iqm"], color=colour, linewidth=1.8, label=f"{name} ({seeds})")
    if (threshold := document["measures"]["threshold"]) is not None:
        axis.axhline(threshold, color=GREEN, linestyle=(0, (5, 3)), linewidth=1.4, label=f"threshold {threshold:g}")
    axis.set_ylabel(f"{document['measures']['curve']}\nIQM over seeds, 95 % interval", color=INK, fontsize=8)
    _steps_below(axis, document)


def _schedule(axis: Any, document: Document, name: str) -> None:
    for label, (colour, words) in _coloured(document).items():
        if course := document["schedules"][name].get(label):
            axis.plot(course["steps"], course["values"], color=colour, linewidth=1.6, label=words)
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    _steps_below(axis, document)


def _gradients(axis: Any, document: Document, part: str) -> None:
    """Median and 10 to 90 % in each third of training, sides beside one another."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    colours = _coloured(document)
    for place, (label, (colour, words)) in enumerate(colours.items()):
        phases = document["gradients"][label].get(part, {})
        shift = 0.5 * (place - (len(colours) - 1) / 2) / len(colours)
        at = [position + shift for position, phase in enumerate(PHASES) if phase in phases]
        rows = [phases[phase] for phase in PHASES if phase in phases]
        middles = [row["median"] for row in rows]
        spans = [
            [max(0.0, row["median"] - row["low"]) for row in rows],
            [max(0.0, row["high"] - row["median"]) for row in rows],
        ]
        if rows:
            axis.errorbar(at, middles, yerr=spans, fmt="o", color=colour, markersize=5, capsize=3, label=words)
    low, high = axis.dataLim.y0, axis.dataLim.y1
    if 0 < LOG_FROM * low < high:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    _phases_below(axis)


def _losses(axis: Any, document: Document, term: str) -> None:
    colours, sizes = _coloured(document), _sizes(document, term)
    width = 0.8 / len(colours)
    for place, (label, (colour, words)) in enumerate(colours.items()):
        at = [position + width * (place - (len(colours) - 1) / 2) for position in range(len(PHASES))]
        axis.bar(at, sizes[label], width=0.9 * width, color=colour, label=words)
    axis.set_ylabel("size × coefficient", color=INK, fontsize=8)
    _phases_below(axis)


def _sizes(document: Document, term: str) -> dict[str, list[float]]:
    """Label → size of the term in each phase, 0 where it was not recorded."""
    return {
        label: [phases.get(phase, {}).get(term, {}).get("size", 0.0) for phase in PHASES]
        for label, phases in document["losses"].items()
    }


def _phases_below(axis: Any) -> None:
    axis.set_xticks(range(len(PHASES)), [f"{phase} third" for phase in PHASES])
    axis.set_xlim(-0.6, len(PHASES) - 0.4)
