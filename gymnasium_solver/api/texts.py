"""The documents of the verbs as text, for people, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium_solver.recommend.text import Block as Block
    from gymnasium_solver.recommend.text import Page as Page
    from gymnasium_solver.runs.reader import Run
    from gymnasium_solver.verify.comparison.text import Section


def diagnosis(document: Mapping[str, Any]) -> str:
    """Markdown, in five sections."""
    from gymnasium_solver.recommend.text import to_markdown

    return to_markdown(document)


def diagnosis_page(document: Mapping[str, Any]) -> Page:
    """The same in parts, for who draws it."""
    from gymnasium_solver.recommend.text import page

    return page(document)


def finding(document: Mapping[str, Any]) -> Block:
    """Of a diagnosis the primary cause, what answers it, and the command for that."""
    from gymnasium_solver.recommend.text import finding

    return finding(document)


def write_diagnosis(run: Run, document: Mapping[str, Any]) -> None:
    """diagnosis.json and diagnosis.md in the run's directory."""
    from gymnasium_solver.runs.diagnosis_files import write_diagnosis

    write_diagnosis(run, document, diagnosis(document))


def comparison(document: Mapping[str, Any]) -> tuple[str, list[Section]]:
    """The heading, and sections of a title, a table and notes each."""
    from gymnasium_solver.verify.comparison.text import heading, sections

    return heading(document), sections(document)


def write_comparison(document: Mapping[str, Any], directory: Path) -> Path:
    """comparison.md, comparison.json and the pictures."""
    from gymnasium_solver.verify.comparison.files import write_comparison

    return write_comparison(document, directory)


def profile(document: Mapping[str, Any]) -> str:
    from gymnasium_solver.verify.profiling.text import to_markdown

    return to_markdown(document)


def validation(document: dict[str, Any]) -> str:
    from gymnasium_solver.verify.compliance.text import to_text

    return to_text(document)


def score_card(document: Mapping[str, Any], *, as_yaml: bool = False) -> str:
    from gymnasium_solver.verify.scoring.text import to_text, to_yaml

    return to_yaml(document) if as_yaml else to_text(document)


def sweep(document: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, ...]], list[str]]:
    """What it found, the rows of its best trials (number, value, solved, changes), and what mattered, as bars."""
    from gymnasium_solver.verify.sweeping import report

    return report.summary(document), report.table(document), report.bars(document["importance"])
