"""How the pictures of experiments look. Matplotlib, without pyplot: its global state and windows have no place here."""

from __future__ import annotations

import io
from typing import Any

from gymnasium_solver.runs.svg import EDGE, GRID, INK


def style(axis: Any, title: str) -> None:
    axis.set_title(title, loc="left", fontsize=10, color=INK, fontweight="bold", pad=5)
    axis.grid(True, color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color(EDGE)
    axis.tick_params(which="both", colors=INK, labelsize=8, length=3, color=EDGE)


def png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()
