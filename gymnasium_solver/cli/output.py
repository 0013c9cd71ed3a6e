"""What reaches the two streams: data on stdout, everything else on stderr, colour only where it is wanted."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import typer

from gymnasium_solver.plain import number as in_digits
from gymnasium_solver.plain import plain
from gymnasium_solver.trust import clean, clean_rendered, escaped

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STATUS_STYLES = {
    "solved": "green",
    "done": "green",
    "running": "cyan",
    "interrupted": "yellow",
    "missed": "yellow",
    "failed": "red",
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
    """Write data to stdout, without what would steer the terminal. A reader that has gone away (`gsolve runs | head`)
    ends the command, without complaint."""
    _write(clean(text))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
        raise typer.Exit(0) from None


def emit_json(document: Any, *, lines: bool = False) -> None:
    _write(escaped(json.dumps(plain(document), indent=None if lines else 2, ensure_ascii=False)))


def message(text: str) -> None:
    """One line for the person at the terminal."""
    print(clean_rendered(text), file=sys.stderr, flush=True)


def error(text: str) -> None:
    """One line, whatever the text."""
    line = " ".join(clean(text).split())
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
    _write(clean_rendered("\n".join(line.rstrip() for line in captured.get().splitlines())))


def emit_prose(text: str) -> None:
    """Sentences: a terminal would break them in mid-word."""
    from rich.text import Text

    emit_rich(Text(text)) if is_terminal(sys.stdout) else emit(text)


def emit_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), whole: str | None = None
) -> None:
    """Rows under a heading. On a narrow terminal long columns are cut and the last ones left out; `whole` (the first
    column, unless another is named) holds what people copy and stays as it is."""
    from rich.cells import cell_len

    rows = [list(row) for row in rows]
    whole = whole or columns[0]
    widths = {name: max(map(cell_len, cells)) for name, *cells in zip(columns, columns, *rows, strict=True)}
    least = {name: width if name == whole else min(width, NARROW) for name, width in widths.items()}
    room = console(sys.stdout).width
    while len(least) > 1 and sum(least.values()) + GAP * (len(least) - 1) > room:
        del least[next(name for name in reversed(least) if name != whole)]
    kept = [[cell for name, cell in zip(columns, row, strict=True) if name in least] for row in rows]
    emit_rich(table(tuple(least), kept, right, whole), least[whole])


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), whole: str | None = None
) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, justify="right" if column in right else "left", no_wrap=column == whole)
    for row in rows:
        cells = (Text(clean(cell), STATUS_STYLES.get(cell, ""), no_wrap=True, overflow="ellipsis") for cell in row)
        grid.add_row(*cells)
    return grid


def emit_facts(rows: Iterable[tuple[str, str]]) -> None:
    """What is known, with its name before it. Sentences are broken between words; what people copy never is."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    target = console(sys.stdout)
    with target.capture() as captured:
        for name, value in ((clean(name), clean(value)) for name, value in rows):
            text = Text(value, STATUS_STYLES.get(value, ""))
            if " " not in value or value.startswith("gsolve "):
                target.print(Text.assemble((f"{name:<{width}}  ", "dim"), text), soft_wrap=True)
                continue
            line = Table.grid(padding=(0, GAP, 0, 0))
            line.add_column(width=width, style="dim", no_wrap=True)
            line.add_column(overflow="fold")
            line.add_row(name, text)
            target.print(line)
    _write(clean_rendered("\n".join(line.rstrip() for line in captured.get().splitlines())))


def best(summary: Mapping[str, Any]) -> str:
    """The best mean of an evaluation; of training episodes where there was none, and then it says so."""
    value = summary.get("best_reward")
    return number(value) + ("" if value is None or summary.get("evaluated", True) else " in training")


def number(value: Any, digits: int = 4) -> str:
    """A measured number in about the given number of digits; an absent one is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return in_digits(value, digits)
