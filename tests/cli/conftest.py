"""Runs of the command line in this process and in a real one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from gymnasium_solver.cli.main import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def gsolve(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Call the command line in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GSOLVE_RUNS_DIR", raising=False)
    monkeypatch.delenv("GSOLVE_DEBUG", raising=False)

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = main(arguments)
        return Result(code, *capsys.readouterr())

    return call


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call the command line as users do, without a terminal."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gymnasium_solver", *arguments],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call
