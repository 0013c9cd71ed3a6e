"""What a finished training prints."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gymnasium_solver import api
from gymnasium_solver.api import texts
from gymnasium_solver.cli.output import STATUS_STYLES, best, emit, emit_rich, is_terminal, number
from gymnasium_solver.plain import duration

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

HEADLINES = {
    "solved": "Solved",
    "missed": "Threshold missed",
    "done": "Done",
    "failed": "Failed",
    "interrupted": "Interrupted; everything up to here is kept",
}


def emit_summary(run: Run, runs_dir: Path | None) -> None:
    summary = run.summary()
    word = summary["status"]
    facts = _facts(run, summary)
    if word == "missed":
        facts |= finding_of(run)
    command = facts.pop("command", None)
    emit_rich(boxed(HEADLINES.get(word, word), STATUS_STYLES.get(word, ""), facts))
    for line in ([command] if command else []) + _next_commands(run.run_id, word, runs_dir):
        emit(line)  # outside the frame, one line each, so that it can be copied


def boxed(headline: str, style: str, facts: Mapping[str, str]) -> RenderableType:
    """A frame on a terminal, plain lines in a file."""
    width = max(map(len, facts))
    body = Table.grid(padding=(0, 2, 0, 0))
    body.add_column(width=width, style="dim", no_wrap=True)
    body.add_column(overflow="fold")
    for name, value in facts.items():
        body.add_row(name, Text(value))
    if is_terminal(sys.stdout):
        return Panel(body, title=Text(headline, style=f"bold {style}"), title_align="left", border_style=style)
    return Group(Text(headline), body)


def _facts(run: Run, summary: dict[str, Any]) -> dict[str, str]:
    steps, seconds, unit = summary["progress"], summary.get("duration_s"), run.clock.unit
    rate = f", {number(round(steps / seconds))} {unit}/s" if steps and seconds else ""
    goal = "" if summary.get("threshold") is None else f", threshold {number(summary['threshold'])}"
    return {
        "run": run.run_id,
        "trained": f"{number(steps)} {unit} in {duration(seconds)}{rate}",
        "reward": f"best {best(summary)}, last {number(summary.get('last_reward'))}{goal}",
        "report": shortest(run.report_path),
        **({"why": summary["reason"]} if summary["reason"] else {}),
    }


def finding_of(run: Run) -> dict[str, str]:
    """Why it fell short, what to change, and the command for it: the head of the diagnosis."""
    try:
        found = texts.finding(api.diagnose(run))
    except Exception as error:  # the training is done; a word about it must not cost its result
        return {"finding": f"none: the diagnosis failed ({type(error).__name__}: {error})"}
    return {"finding": found.title, **dict(found.facts), **({"command": found.command} if found.command else {})}


def _next_commands(run_id: str, word: str, runs_dir: Path | None) -> list[str]:
    where = f" --runs-dir {shlex.quote(str(runs_dir))}" if runs_dir else ""
    if word == "interrupted":
        return [f"gsolve train --resume {run_id}{where}"]
    if word in ("missed", "failed"):
        return [f"gsolve diagnose {run_id}{where}"]
    return [f"gsolve play {run_id}{where}", f"gsolve evaluate {run_id} --episodes 100{where}"]


def shortest(path: Path) -> str:
    """Relative to here, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
