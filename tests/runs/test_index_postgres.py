"""The shared index on a real PostgreSQL server, started here in a temporary directory."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gymnasium_solver.errors import ConfigError, MissingExtraError, SolverError
from gymnasium_solver.runs.index.index import SORTS, Index
from gymnasium_solver.runs.writer import RunWriter
from tests.runs.conftest import row_of
from tests.runs.test_index import summaries, truth

pytestmark = pytest.mark.integration

NewRun = Callable[..., RunWriter]


class Server:
    """Its programs refuse to run as root: they get the user that Debian's package makes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = f"postgresql://gsolve:secret-word@/postgres?host={directory}"
        self._data = directory / "data"
        self._user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        if self._user:
            shutil.chown(directory, "postgres", "postgres")
        self._call("initdb", "--username=gsolve", "--auth=trust", "--no-sync")

    def start(self) -> None:
        options = f"-k {self.directory} -c listen_addresses='' -c fsync=off"
        self._call("pg_ctl", "start", "-w", "-o", options, "-l", str(self.directory / "log"))

    def stop(self) -> None:
        self._call("pg_ctl", "stop", "-w", "-m", "immediate")

    def _call(self, program: str, *arguments: str) -> None:
        command = [_program(program) or program, *arguments, "-D", str(self._data)]
        subprocess.run(command, check=True, cwd=self.directory, stdout=subprocess.DEVNULL, timeout=60, **self._user)


def _program(name: str) -> str | None:
    """Debian keeps them off the path, a directory for every version."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(versions[-1]) if versions else shutil.which(name)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="the [postgres] extra is not installed")
    if _program("initdb") is None or _program("pg_ctl") is None:
        pytest.skip("no PostgreSQL server here; install one with: apt-get install postgresql")
    if os.getuid() == 0 and "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # short: the path of a socket has 107 characters
        server = Server(Path(name))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def url(server: Server) -> str:
    """A database without tables."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server.url


@pytest.fixture(autouse=True)
def closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connections of all indexes that the test opens."""
    opened: list[Index] = []
    open_index = Index.open
    monkeypatch.setattr(Index, "open", lambda *where, **more: opened.append(open_index(*where, **more)) or opened[-1])
    yield
    for index in opened:
        index.close()


def test_it_answers_as_the_file_does(new_run: NewRun, runs_dir: Path, url: str) -> None:
    for seed, env in enumerate(["CartPole-v1", "acrobot-v1", "Acrobot-v1", "ALE/Pong_v5", "Ünïcode-v0"]):
        writer = new_run(rows=(seed * 7) % 20, seed=seed, env_id=env)
        writer.status(["completed", "failed"][seed % 2], solved=seed == 0, error="100% 'broken'" if seed % 2 else None)
    file, shared = Index.open(runs_dir, url=""), Index.open(runs_dir, url)
    assert shared.refresh() == file.refresh()
    questions: list[dict[str, Any]] = [{"sort": sign + name} for name in SORTS for sign in ("", "-")]
    texts = ["acrobot", "100%", "_", "ünï", "'", "\0", "\ud800", "?", "%s", "a b", "\\", "!"]
    questions += [{"search": text} for text in texts] + [{"env": text, "group": text} for text in texts]
    questions += [{"status": "failed", "sort": "-env_steps"}, {"solved": True}, {"solved": False}]
    questions += [{"limit": 2, "offset": 1}, {"limit": 10**30, "offset": 10**30}, {"limit": -1}]
    for question in questions:
        (total, rows), (expected_total, expected) = shared.find(**question), file.find(**question)
        assert (total, [row["run_id"] for row in rows]) == (expected_total, [row["run_id"] for row in expected]), (
            question
        )
        assert [{**row, "root": "."} for row in rows] == expected
    assert summaries(shared.find()[1]) == truth(runs_dir)


def test_it_follows_the_directory(new_run: NewRun, runs_dir: Path, url: str) -> None:
    first, second = new_run(rows=6, seed=1), new_run(rows=6, seed=2)
    index = Index.open(runs_dir, url)
    index.refresh()
    first.metrics(row_of(7))
    shutil.rmtree(second.path)
    assert index.refresh() == ([], [first.run_id], [second.run_id])
    assert index.get(first.run_id)["rows"] == 7  # type: ignore[index]
    assert index.get(second.run_id) is None
    assert summaries(index.find()[1]) == truth(runs_dir)


def test_directories_of_several_hosts(
    new_run: NewRun, runs_dir: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = new_run(rows=2).run_id
    shutil.copytree(runs_dir, tmp_path / "other", symlinks=True)
    one = Index.open(runs_dir, url)
    monkeypatch.setenv("GSOLVE_INDEX_URL", url)
    monkeypatch.setenv("GSOLVE_INDEX_ROOT", "lab-2:/data/runs")
    other = Index.open(tmp_path / "other")
    one.refresh()
    other.refresh()
    assert one.find()[0] == other.find()[0] == 1
    total, rows = one.find(everywhere=True, sort="run_id")
    assert total == 2
    assert {row["path"] for row in rows} == {str(runs_dir / run_id), f"lab-2:/data/runs/{run_id}"}
    shutil.rmtree(tmp_path / "other" / run_id)
    assert other.refresh().removed == [run_id]
    assert one.refresh() == ([], [], [])
    assert one.find(everywhere=True)[0] == 1


ANOTHER = """
import sys
from pathlib import Path
from gymnasium_solver.runs.index.index import Index
index = Index.open(Path(sys.argv[1]), sys.argv[2])
for _ in range(10):
    index.refresh()
    index.find()
"""


def test_several_processes_begin_and_write_at_a_time(new_run: NewRun, runs_dir: Path, url: str) -> None:
    writers = [new_run(rows=2, seed=seed) for seed in range(8)]
    command = [sys.executable, "-c", ANOTHER, str(runs_dir), url]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    epoch = 2
    while any(other.poll() is None for other in others):
        epoch += 1
        writers[epoch % len(writers)].metrics(row_of(epoch))
        time.sleep(0.01)
    for other in others:
        assert other.communicate()[1] == ""
        assert other.returncode == 0
    index = Index.open(runs_dir, url)
    index.refresh()
    assert index.find()[0] == 8
    assert summaries(index.find()[1]) == truth(runs_dir)


def test_a_server_that_restarts_and_one_that_is_gone(new_run: NewRun, runs_dir: Path, server: Server, url: str) -> None:
    new_run(rows=2)
    index = Index.open(runs_dir, url)
    index.refresh()
    server.stop()
    with pytest.raises(SolverError, match="GSOLVE_INDEX_URL") as failure:
        index.find()
    assert "secret-word" not in str(failure.value)
    server.start()
    assert index.find()[0] == 1
    server.stop()
    server.start()
    assert index.refresh() == ([], [], [])
    assert index.find()[0] == 1


def test_addresses_that_cannot_be_used(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="postgresql://"):
        Index.open(runs_dir, "mysql://me:secret-word@host/db")
    with pytest.raises(SolverError, match="percent") as failure:
        Index.open(runs_dir, "postgresql://me:secret-word%zz@host/db").find()
    assert "secret-word" not in str(failure.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"gymnasium-solver\[postgres\]"):
        Index.open(runs_dir, "postgresql://host/db")
