"""A diagnosis on a terminal: the verdict, the cause and the command first; the rest for who asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from gymnasium_solver.api import texts
from gymnasium_solver.cli import output

if TYPE_CHECKING:
    from gymnasium_solver.api.texts import Block, Page

HEAD = ("run", "verdict", "reward", "reason")
STYLES = {"critical": "red", "high": "yellow", "medium": "cyan"}


def emit_diagnosis(document: Mapping[str, Any], full: bool) -> None:
    page = texts.diagnosis_page(document)
    output.emit_facts([fact for fact in page.summary if fact[0] in HEAD])
    _emit_finding(page)
    if full:
        _emit_rest(page)
    else:
        output.emit(f"\nmore: gsolve diagnose {document['summary']['run_id']} --full")


def _emit_finding(page: Page) -> None:
    finding = page.finding
    output.emit("")
    output.emit_rich(Text(finding.title, f"bold {STYLES.get(finding.severity, '')}"))
    why = [fact for block in page.bottlenecks[:1] for fact in block.facts if fact[0] == "why"]
    advice = [block for block in page.recommendations if block.command == finding.command != ""]
    expected = [fact for block in advice for fact in block.facts if fact[0] == "expected"]
    output.emit_facts([*why, *finding.facts, *expected])
    if finding.command:
        output.emit(f"\n{finding.command}")  # one line, however long, so that it can be copied


def _emit_rest(page: Page) -> None:
    output.emit("")
    output.emit_facts([fact for fact in page.summary if fact[0] not in HEAD])
    _emit_heading("Key metrics")
    _emit_curves(page.curves) if page.curves else output.emit("None were logged.")
    _emit_heading("Diagnosed bottlenecks")
    _emit_blocks(page.bottlenecks) if page.bottlenecks else output.emit(page.finding.title)
    if page.probes:
        _emit_heading("What experiments settled")
        output.emit_facts(page.probes)
    _emit_heading("Recommendations")
    _emit_blocks(page.recommendations) if page.recommendations else output.emit("Nothing to change.")
    for title, lines in (("Next steps", page.next_steps), ("Missing", page.missing)):
        if lines:
            _emit_heading(title)
            output.emit("\n".join(f"- {line}" for line in lines))  # whole: there may be a command in it


def _emit_heading(title: str) -> None:
    output.emit("")
    output.emit_rich(Text(title, "bold underline"))


def _emit_blocks(blocks: Sequence[Block]) -> None:
    for index, block in enumerate(blocks):
        if index:
            output.emit("")
        output.emit_rich(Text(block.title, "bold"))
        output.emit_facts(block.facts)
        for text in filter(None, (block.yaml, block.command)):
            output.emit(f"\n{text}")


def _emit_curves(curves: Sequence[tuple[str, str, str, str]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("METRIC", "LAST", "CURVE"):
        grid.add_column(name, no_wrap=True, justify="right" if name == "LAST" else "left")
    grid.add_column("SHAPE")
    for name, last, drawn, words in curves:
        grid.add_row(name.removeprefix("train/").removeprefix("metrics/"), last, drawn, Text(words))
    output.emit_rich(grid)
