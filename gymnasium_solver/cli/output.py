"""What reaches the two streams: data on stdout, everything else on stderr, colour only where it is wanted."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import typer

from gymnasium_solver.plain import plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STATUS_STYLES = {
    "solved": "green",
    "completed": "green",
    "running": "cyan",
    "interrupted": "yellow",
    "missed": "yellow",
    "stopped": "yellow",
    "crashed": "red",
    "failed": "red",
    "diverged": "red",
}

GAP = 2  # blanks between columns of a table
NARROW = 14  # a column is cut down to this before others are left out; numbers and statuses are shorter


class Lasting:
    """A stream that goes silent when its reader has gone away: what is told of a training must never end it."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or open(os.devnull, "w")  # noqa: PTH123, SIM115 - None where it was closed from the start

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except OSError:
            _silence(self._stream)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            _silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _silence(stream: TextIO) -> None:
    """Python flushes once more at exit, and libraries write by themselves: give them somewhere harmless to go."""
    with contextlib.suppress(OSError):
        gone = stream.fileno()
        with open(os.devnull, "w") as sink:  # noqa: PTH123
            os.dup2(sink.fileno(), gone)


def emit(text: str) -> None:
    """Write data to stdout. A reader that has gone away (`gsolve runs | head`) ends the command, without complaint."""
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise typer.Exit(0) from None


def emit_json(document: Any, *, lines: bool = False) -> None:
    emit(json.dumps(plain(document), indent=None if lines else 2, ensure_ascii=False))


def message(text: str) -> None:
    """One line for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def error(text: str) -> None:
    """One line, whatever the text."""
    line = " ".join(text.split())
    message(f"\x1b[31merror:\x1b[0m {line}" if wants_colour(sys.stderr) else f"error: {line}")


def wants_colour(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is looking, at something that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def console(stream: TextIO) -> Console:
    """A Rich console for the stream, as wide as the data needs where the stream is not a terminal."""
    from rich.console import Console

    terminal = is_terminal(stream)
    return Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if wants_colour(stream) else None,
        width=None if terminal else 1000,
        highlight=False,
        emoji=False,
        markup=False,
    )


def emit_rich(renderable: RenderableType, width: int = 0) -> None:
    """Data as a Rich renderable on stdout, at least as wide as asked for: a terminal breaks what is too long itself,
    and then copies it as one piece."""
    target = console(sys.stdout)
    target.width = max(target.width, width)
    with target.capture() as captured:
        target.print(renderable)
    emit("\n".join(line.rstrip() for line in captured.get().splitlines()))


def emit_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), whole: str | None = None
) -> None:
    """Rows under a heading. On a narrow terminal long columns are cut and the last ones left out; `whole` (the first
    column, unless another is named) holds what people copy and stays as it is."""
    from rich.cells import cell_len

    rows = [list(row) for row in rows]
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    kept = fitted(widths, columns.index(whole) if whole else 0, console(sys.stdout).width)
    grid = table(
        [columns[index] for index in kept], [[row[index] for index in kept] for row in rows], right, list(kept.values())
    )
    emit_rich(grid, sum(kept.values()) + GAP * (len(kept) - 1))


def fitted(widths: Sequence[int], whole: int, room: int) -> dict[int, int]:
    """Columns to show, and how wide."""
    least = {index: width if index == whole else min(width, NARROW) for index, width in enumerate(widths)}
    while len(least) > 1 and sum(least.values()) + GAP * (len(least) - 1) > room:
        del least[max(index for index in least if index != whole)]
    spare = room - sum(least.values()) - GAP * (len(least) - 1)
    kept = {}
    for index, width in least.items():
        kept[index] = width + max(0, min(spare, widths[index] - width))
        spare -= kept[index] - width
    return kept


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), widths: Sequence[int] = ()
) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        grid.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=widths[index] if widths else None,
            min_width=len(column),
        )
    for row in rows:
        grid.add_row(*(Text(cell, style=STATUS_STYLES.get(cell, "")) for cell in row))
    return grid


def number(value: Any, digits: int = 4) -> str:
    """A measured number in about the given number of digits; an absent one is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
