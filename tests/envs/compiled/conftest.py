"""A working directory in which a test writes the module that a user would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module of this text; its name comes back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)

    def write(text: str) -> str:
        name = f"written_{tmp_path.name}_{len(set(sys.modules) - before)}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return write
