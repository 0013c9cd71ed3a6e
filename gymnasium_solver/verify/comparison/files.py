"""A comparison as files: a page, its pictures, and the document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gymnasium_solver.errors import writing
from gymnasium_solver.plain import plain
from gymnasium_solver.runs.layout import replace_file, write_json
from gymnasium_solver.verify.comparison.plots import draw
from gymnasium_solver.verify.comparison.text import to_markdown


def write_comparison(document: Mapping[str, Any], directory: Path) -> Path:
    """comparison.md, comparison.json and pictures; returns the path of the page."""
    page = directory / "comparison.md"
    with writing(directory, "choose another place with --out"):
        directory.mkdir(parents=True, exist_ok=True)
        pictures = draw(document)
        for name, content in pictures.items():
            replace_file(directory / name, [content])
        write_json(directory / "comparison.json", plain(document))
        replace_file(page, [to_markdown(document, list(pictures)).encode()])
    return page
