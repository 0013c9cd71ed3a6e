"""The documents of the verbs as text, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def diagnosis(document: Mapping[str, Any]) -> str:
    """Markdown, in five sections."""
    from gymnasium_solver.diagnose.text import to_markdown

    return to_markdown(document)
