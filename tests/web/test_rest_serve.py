"""`gsolve serve` as a command: how it starts, refuses to, and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the [web] extra is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx

from gymnasium_solver.cli import main

pytestmark = pytest.mark.integration

PROGRAM = """
import sys
from gymnasium_solver.cli import main
sys.exit(main.main(sys.argv[1:]))
"""


def serve(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", PROGRAM, "serve", *arguments]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def test_it_serves_until_it_is_interrupted(runs_dir: Path) -> None:
    with serve("--runs-dir", str(runs_dir), "--port", "0", "--read-only") as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "(read-only); Ctrl-C ends" in line
        address = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        assert httpx.get(f"{address}api/health", timeout=30).json()["read_only"] is True
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=15) in (0, 130)
        assert "Traceback" not in process.stderr.read()


def refused(*arguments: str) -> str:
    process = serve(*arguments)
    _, said = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert "Traceback" not in said
    return said


def test_other_addresses_without_a_token_are_refused(runs_dir: Path) -> None:
    assert "give a token with --token or GSOLVE_TOKEN" in refused("--runs-dir", str(runs_dir), "--host", "0.0.0.0")


def test_a_port_in_use_is_said(runs_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--runs-dir", str(runs_dir), "--port", str(taken.getsockname()[1]))
    assert "choose another with --port" in said


def test_without_the_extra_it_says_what_to_install(
    runs_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("uvicorn", "fastapi")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main.main(["serve", "--runs-dir", str(runs_dir)]) == 2
    assert "pip install 'gymnasium-solver[web]'" in capsys.readouterr().err
