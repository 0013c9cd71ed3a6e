"""The profile as an icicle: a bar for the whole training, below it its parts, below those theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gymnasium_solver.runs.svg import INK
from gymnasium_solver.verify.pictures import png

# In the order in which parts stand side by side.
COLOURS = {
    "training": "#e6e9ed",
    "collect": "#cfe0f1",
    "learn": "#f8e0c0",
    "step": "#2f6fb0",
    "act": "#5b93cc",
    "update": "#e08a1e",
    "bonus": "#d9b36a",
    "record": "#8fa3b8",
    "replay": "#6f8799",
    "evaluate": "#3a9a5b",
    "write": "#b5a642",
    "transfer": "#a05fb4",
    "compile": "#c0504d",
    "other": "#c5ccd4",
}
GROUPS = ("training", "collect", "learn")
SEEN = 1e-3  # of the width, below which a bar needs no name
CHARACTERS = 130  # of a label that fill the width of the picture


class Bar(NamedTuple):
    name: str
    depth: int
    start: float  # seconds
    seconds: float


def bars(node: Mapping[str, Any], depth: int = 0, start: float = 0.0) -> Iterator[Bar]:
    yield Bar(node["name"], depth, start, node["seconds"])
    order = list(COLOURS)
    for child in sorted(node["children"], key=lambda child: order.index(child["name"])):
        yield from bars(child, depth + 1, start)
        start += child["seconds"]


def draw(document: Mapping[str, Any]) -> bytes:
    from matplotlib.figure import Figure

    found, seconds = list(bars(document["tree"])), document["seconds"]
    depth = 1 + max(bar.depth for bar in found)
    height = 1.3 + 0.5 * depth
    figure = Figure(figsize=(11, height), dpi=110, facecolor="white")
    axes = figure.add_axes((0.015, 0.85 / height, 0.97, 0.5 * depth / height))
    drawn = {}
    for bar in found:
        drawn[bar.name] = axes.barh(
            -bar.depth, bar.seconds, left=bar.start, height=0.96, color=COLOURS[bar.name], edgecolor="white",
            linewidth=min(1.2, 200 * bar.seconds / seconds),
        )  # fmt: skip
        axes.text(
            bar.start + bar.seconds / 2, -bar.depth, _label(bar, seconds), ha="center", va="center", fontsize=8.5,
            color=INK if bar.name in (*GROUPS, "other") else "white",
        )  # fmt: skip
    seen = {bar.name for bar in found if bar.seconds > SEEN * seconds}
    shown = [name for name in COLOURS if name in seen and name not in GROUPS]
    axes.legend(
        [drawn[name] for name in shown], shown, ncols=len(shown), frameon=False, fontsize=8.5, labelcolor=INK,
        loc="upper left", bbox_to_anchor=(-0.01, -0.28 / (0.5 * depth)), handlelength=1.0, columnspacing=1.4,
    )  # fmt: skip
    title = f"{document['env_id']} {document['algo_id']}, {document['engine']}, {document['n_envs']} environments"
    axes.set_title(title, loc="left", fontsize=10, color=INK, fontweight="bold")
    axes.set_xlim(0, seconds)
    axes.set_ylim(0.5 - depth, 0.5)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter("{x:g} s")
    axes.tick_params(colors=INK, labelsize=8, length=3)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    return png(figure)


def _label(bar: Bar, whole: float) -> str:
    """As much as fits."""
    share = bar.seconds / whole
    for text in (f"{bar.name} {100 * share:.1f} %, {bar.seconds:.2f} s", f"{bar.name} {100 * share:.0f} %", bar.name):
        if len(text) + 1 <= share * CHARACTERS:
            return text
    return ""
