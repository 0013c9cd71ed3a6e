"""Curves as an SVG file. Every training ends with some, so this must not take the second that a plotting library takes
to import."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

BLUE, ORANGE, GREEN, GREY, INK = "#2f6fb0", "#e08a1e", "#3a9a5b", "#9aa3ad", "#39424e"
GRID, EDGE = "#e6e9ed", "#c5ccd4"

WIDTH, ONE_HEIGHT, PANEL_HEIGHT = 990, 460, 285  # pixels; of a panel on its own, and of one among others
ABOVE, BELOW, BELOW_NAMED, RIGHT, LEFT = 34, 30, 48, 16, 62  # of the curves; below them there may be the axis's name
LETTER = 6.2  # pixels of one at the size of labels: enough to place them
MOST_MARKED = 60  # points of a line that are shown as such
LARGEST = 1e100  # what is beyond is drawn there


class Line(NamedTuple):
    label: str
    x: np.ndarray
    y: np.ndarray
    colour: str = BLUE
    width: float = 1.4
    marked: bool = False


class Panel(NamedTuple):
    title: str
    lines: Sequence[Line]
    below: str = ""  # name of the x axis
    is_log: bool = False
    spread: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # x, low, high: an area behind the curves
    healthy: tuple[float | None, float | None] | None = None  # a range of values, as far as it is in sight
    level: tuple[str, float] | None = None  # a value across the whole panel, and its name


class Scale(NamedTuple):
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        return self.start + (_drawn(values, self.is_log) - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(pixel, label)."""
        if not self.is_log:
            step = _step(self.high - self.low, 10 if self.end - self.start > 500 else 6)
            values = np.arange(math.ceil(self.low / step), math.floor(self.high / step) + 1) * step
            return [(float(self(value)), text) for value, text in zip(values, _texts(values, step), strict=True)]
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        if len(decades) > 4:
            values = 10.0 ** np.array(decades[:: math.ceil(len(decades) / 7)])
        else:
            values = np.array([m * 10.0**decade for decade in decades for m in (1, 2, 5)])
        return [
            (float(self(value)), f"{value:g}" if 1e-3 <= value < 1e5 else f"{value:.0e}")
            for value in values
            if self.low <= math.log10(value) <= self.high
        ]


def svg(panels: Sequence[Panel]) -> bytes:
    """One panel, or several side by side in two columns."""
    columns = min(len(panels), 2)
    height = ONE_HEIGHT if len(panels) == 1 else PANEL_HEIGHT
    whole = height * math.ceil(len(panels) / columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" height="{whole}" '
        f'font-family="system-ui, \'Segoe UI\', \'DejaVu Sans\', sans-serif" font-size="11.5" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{whole}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        x, y = place % columns * WIDTH / columns, place // columns * height
        parts += [f'<g transform="translate({x:g} {y:g})">', *_panel(panel, WIDTH / columns, height), "</g>"]
    return "\n".join([*parts, "</svg>\n"]).encode()


def _panel(panel: Panel, width: float, height: float) -> Iterator[str]:
    lines = [line._replace(x=line.x[seen], y=line.y[seen]) for line in panel.lines for seen in [_seen(line, panel)]]
    lines = [line for line in lines if line.x.size]
    spread = None if panel.spread is None else [part[np.isfinite(panel.spread).all(0)] for part in panel.spread]
    levels = [] if panel.level is None else [np.array([panel.level[1]])]
    bottom = height - (BELOW_NAMED if panel.below else BELOW)
    vertical = _scale(
        [line.y for line in lines] + levels + ([] if spread is None else spread[1:]), bottom, ABOVE, 0.05, panel.is_log
    )
    left = max(LEFT, 14 + LETTER * max((len(text) for _, text in vertical.ticks), default=0))
    right = width - RIGHT
    horizontal = _scale([line.x for line in lines], left, right, 0.01)

    if panel.healthy is not None:
        yield _range(*panel.healthy, vertical, left, right)
    for pixel, text in vertical.ticks:
        yield f'<path d="M{left:.1f} {pixel:.1f}H{right:.1f}" stroke="{GRID}"/>'
        yield f'<text x="{left - 7:.1f}" y="{pixel + 4:.1f}" text-anchor="end">{text}</text>'
    for pixel, text in horizontal.ticks:
        yield f'<path d="M{pixel:.1f} {ABOVE}V{bottom}" stroke="{GRID}"/>'
        yield f'<text x="{pixel:.1f}" y="{bottom + 17}" text-anchor="middle">{text}</text>'
    yield f'<path d="M{left:.1f} {ABOVE}V{bottom}H{right:.1f}" fill="none" stroke="{EDGE}"/>'

    if spread is not None:
        x, low, high = spread
        points = _points(horizontal(np.append(x, x[::-1])), vertical(np.append(low, high[::-1])))
        yield f'<polygon points="{points}" fill="{ORANGE}" fill-opacity="0.15"/>'
    for line in lines:
        x, y = horizontal(line.x), vertical(line.y)
        stroke = f'fill="none" stroke="{line.colour}" stroke-width="{line.width}" stroke-linejoin="round"'
        yield f'<polyline points="{_points(x, y)}" {stroke}/>'
        if len(x) == 1 or (line.marked and len(x) <= MOST_MARKED):
            dots = (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in zip(x, y, strict=True))
            yield f'<g fill="{line.colour}">{"".join(dots)}</g>'
    if panel.level is not None:
        yield _stroke(left, right, float(vertical(panel.level[1])), GREEN, dashed=True)

    yield f'<text x="{left:.1f}" y="{ABOVE - 10}" font-size="13" font-weight="bold">{escape(panel.title)}</text>'
    if panel.below:
        yield f'<text x="{(left + right) / 2:.1f}" y="{height - 10}" text-anchor="middle">{escape(panel.below)}</text>'
    names = [(line.label, line.colour, False) for line in lines]
    names += [] if panel.level is None else [(panel.level[0], GREEN, True)]
    if len(names) > 1:
        yield from _legend(names, right)


def _range(low: float | None, high: float | None, vertical: Scale, left: float, right: float) -> str:
    bottom = vertical.start if low is None else min(float(vertical(low)), vertical.start)
    top = vertical.end if high is None else max(float(vertical(high)), vertical.end)
    size = f'width="{right - left:.1f}" height="{max(0, bottom - top):.1f}"'
    return f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{GREEN}" fill-opacity="0.09"/>'


def _legend(names: Sequence[tuple[str, str, bool]], right: float) -> Iterator[str]:
    """Beside the title, where no curve is."""
    for label, colour, dashed in reversed(names):
        right -= LETTER * len(label)
        yield f'<text x="{right:.1f}" y="{ABOVE - 10}">{escape(label)}</text>'
        yield _stroke(right - 24, right - 6, ABOVE - 14, colour, dashed=dashed)
        right -= 40


def _stroke(start: float, end: float, y: float, colour: str, *, dashed: bool) -> str:
    dashes = ' stroke-dasharray="7 4"' if dashed else ""
    return f'<path d="M{start:.1f} {y:.1f}H{end:.1f}" stroke="{colour}" stroke-width="1.6"{dashes}/>'


def _seen(line: Line, panel: Panel) -> np.ndarray:
    finite = np.isfinite(line.x) & np.isfinite(line.y)
    return finite & (line.y > 0) if panel.is_log else finite


def _scale(values: Sequence[np.ndarray], start: float, end: float, margin: float, is_log: bool = False) -> Scale:
    known = _drawn(np.concatenate([np.empty(0), *values]), is_log)
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    pad = margin * (high - low)
    if pad <= 1e-9 * max(abs(low), abs(high)):  # a constant lies in the middle
        pad = 0.05 * abs(low) or 0.5
    return Scale(low - pad, high + pad, start, end, is_log)


def _drawn(values: np.ndarray | float, is_log: bool) -> np.ndarray:
    """What an axis counts, within what it can hold."""
    if is_log:
        return np.asarray(np.log10(np.clip(values, 1 / LARGEST, LARGEST)))
    return np.clip(values, -LARGEST, LARGEST)


def _points(x: np.ndarray, y: np.ndarray) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _step(span: float, most: int) -> float:
    """The smallest round step that divides the span into at most so many."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * m for m in (1, 2, 2.5, 5, 10) if span <= power * m * most)


def _texts(values: np.ndarray, step: float) -> list[str]:
    """Labels with as many digits as tell them apart; from ten thousand on in thousands, millions …"""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest >= 1e15 or 0 < largest < 1e-3:
        texts = [f"{value:.3g}" for value in values]
    elif largest >= 10_000:
        power, letter = next((p, x) for p, x in ((3, "k"), (6, "M"), (9, "G"), (12, "T")) if largest < 10.0 ** (p + 3))
        texts = [f"{value / 10.0**power:.6g}{letter}" if value else "0" for value in values]
    else:
        digits = next((d for d in range(12) if math.isclose(step * 10**d, round(step * 10**d))), 12)
        texts = [f"{value:.{digits}f}" for value in values]
    return [text.replace("-", "−") for text in texts]
