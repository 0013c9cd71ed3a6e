"""What a finished training prints."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from gymnasium_solver.api.outcome import verdict
from gymnasium_solver.cli.output import STATUS_STYLES, emit_rich, is_terminal, number
from gymnasium_solver.plain import duration

if TYPE_CHECKING:
    from gymnasium_solver.runs.reader import Run

HEADLINES = {
    "solved": "Solved",
    "missed": "Threshold missed",
    "completed": "Done",
    "interrupted": "Interrupted; everything up to here is kept",
    "stopped": "Stopped by a finding; everything up to here is kept",
}


def emit_summary(run: Run, runs_dir: Path | None) -> None:
    summary = run.summary()
    word = verdict(summary)
    body = Text()
    facts = _facts(run, summary)
    if word in ("missed", "stopped"):
        facts |= finding_of(run)
    for name, value in facts.items():
        body.append(f"{name:<9}", style="dim")
        body.append(f"{value}\n")
    body.append(f"{'next':<9}", style="dim")
    body.append(("\n" + " " * 9).join(_next_commands(run.run_id, word, summary, runs_dir)))
    emit_rich(boxed(HEADLINES.get(word, word), STATUS_STYLES.get(word, ""), body))


def boxed(headline: str, style: str, body: Text) -> RenderableType:
    """A frame on a terminal, plain lines in a file."""
    if is_terminal(sys.stdout):
        return Panel(body, title=Text(headline, style=f"bold {style}"), title_align="left", border_style=style)
    return Text.assemble(f"{headline}\n", body)


def _facts(run: Run, summary: dict[str, Any]) -> dict[str, str]:
    steps, seconds, unit = summary["progress"], summary.get("duration_s"), run.clock.unit
    rate = f", {number(round(steps / seconds))} {unit}/s" if steps and seconds else ""
    goal = "" if summary.get("threshold") is None else f", threshold {number(summary['threshold'])}"
    return {
        "run": run.run_id,
        "trained": f"{number(steps)} {unit} in {duration(seconds)}{rate}",
        "reward": f"best {number(summary.get('best_reward'))}, last {number(summary.get('last_reward'))}{goal}",
        "report": shortest(run.report_path),
    }


def finding_of(run: Run) -> dict[str, str]:
    """Why it fell short, and what to change: the head of the diagnosis."""
    from gymnasium_solver import api

    try:
        document = api.diagnose(run)
    except Exception as error:  # the training is done; a word about it must not cost its result
        return {"finding": f"none: the diagnosis failed ({type(error).__name__}: {error})"}
    first = document["bottlenecks"][0] if document["bottlenecks"] else None
    changes = [entry for entry in document["recommendations"] if entry["cli"] and entry["set"]]
    answers = next((entry for entry in changes if first is not None and entry["cause"] == first["cause"]), None)
    if first is None:
        found = {"finding": "nothing in the run explains it"}
    else:
        found = {"finding": f"{first['title']} ({first['cause']}, {first['confidence']:.0%} sure)"}
    if answers is not None:
        found["change"] = answers["cli"]
    elif first is not None and first.get("where"):
        found["look at"] = first["where"]
    elif changes:  # for another reason than the finding, so that one is told as well
        found |= {"change": changes[0]["cli"], "because": changes[0]["rationale"].partition(". ")[0]}
    return found


def _next_commands(run_id: str, word: str, summary: dict[str, Any], runs_dir: Path | None) -> list[str]:
    where = f" --runs-dir {shlex.quote(str(runs_dir))}" if runs_dir else ""
    if word == "interrupted":
        return [f"gsolve train --resume {run_id}{where}"]
    if word in ("missed", "stopped"):
        return [f"gsolve diagnose {run_id}{where}"]
    return [f"gsolve play {run_id}{where}", f"gsolve evaluate {run_id} --episodes 100{where}"]


def shortest(path: Path) -> str:
    """Relative to here, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
