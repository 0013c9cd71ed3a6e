"""Processes: recognised by more than their number, stopped only if they are who the record says."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gymnasium_solver import processes
from gymnasium_solver.errors import SolverError

pytestmark = pytest.mark.integration

DEAF = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


WRITER = "import sys, time; file = open(sys.argv[1], sys.argv[2]); print(flush=True); time.sleep(60)"


@pytest.fixture
def open_in(tmp_path: Path) -> Iterator[Callable[[Path, str], subprocess.Popen[bytes]]]:
    """A process that has this file open in this mode."""
    with contextlib.ExitStack() as stack:

        def start(path: Path, mode: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-c", WRITER, str(path), mode]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
            return process

        yield start


@pytest.fixture
def sleeper(tmp_path: Path, open_in: Callable[[Path, str], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    return open_in(tmp_path / "metrics.csv", "a")


def test_a_process_is_known_by_boot_and_start_time(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    record = processes.record_of(sleeper.pid)
    assert processes.at_work(record) == sleeper.pid
    assert processes.may_be_stopped(record, tmp_path)
    assert processes.at_work({**record, "process": "another boot/1"}) is None
    assert processes.at_work({**record, "host": "elsewhere"}) is None
    sleeper.kill()
    sleeper.wait()
    assert processes.at_work(record) is None


def test_what_the_record_does_not_identify_is_not_stopped(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    record = processes.record_of(sleeper.pid)
    for doubt in (
        {"process": None},
        {"command_line": None},
        {"command_line": processes.record_of()["command_line"]},
        {"pid": None},
        {"pid": "1"},
        {"pid": True},
        {"pid": 0},
        {"pid": -1},
    ):
        recent = {**record, "heartbeat": time.time(), **doubt}
        with pytest.raises(SolverError, match=r"was not stopped: .* that it is that of run x"):
            processes.ask_to_stop(recent, "run x", tmp_path)
    for missing in ("process", "command_line"):
        lacking = {key: value for key, value in record.items() if key != missing}
        assert not processes.may_be_stopped(lacking, tmp_path)
    processes.ask_to_stop({**record, "process": "another boot/1"}, "run x", tmp_path)  # who was meant is gone
    with pytest.raises(SolverError, match="stop it there"):
        processes.ask_to_stop({**record, "host": "elsewhere"}, "run x", tmp_path)
    assert sleeper.poll() is None
    assert processes.ask_to_stop(record, "run x", tmp_path) == sleeper.pid
    assert sleeper.wait(10) != 0


@pytest.mark.parametrize("mode", ["elsewhere", "reads only", "beside it"])
def test_a_stranger_is_not_stopped_though_the_record_describes_it_exactly(
    mode: str, tmp_path: Path, open_in: Callable[[Path, str], subprocess.Popen[bytes]]
) -> None:
    """Whoever writes a record can look up all that it says; only who trains the run has its files open."""
    run, beside = tmp_path / "run", tmp_path / "run2"
    for directory in (run, beside):
        directory.mkdir()
        (directory / "metrics.csv").write_text("")
    files = {"elsewhere": (tmp_path / "own", "w"), "reads only": (run / "metrics.csv", "r")}
    files["beside it"] = (beside / "metrics.csv", "a")
    stranger = open_in(*files[mode])
    with pytest.raises(SolverError, match="was not stopped"):
        processes.ask_to_stop(processes.record_of(stranger.pid), "run x", run)
    with pytest.raises(SolverError, match="was not stopped"):
        processes.interrupt(processes.record_of(stranger.pid), "run x", run, seconds=0.1)
    assert stranger.poll() is None


def test_who_works_on_a_directory_is_seen(tmp_path: Path) -> None:
    assert not processes.writes_into(os.getpid(), tmp_path)
    with processes.working_on(tmp_path):
        assert processes.may_be_stopped(processes.record_of(), tmp_path)
    assert not processes.writes_into(os.getpid(), tmp_path) and not list(tmp_path.iterdir())


def test_one_that_does_not_listen_is_killed_with_its_children(tmp_path: Path) -> None:
    out = tmp_path / "stdout"
    with out.open("wb") as sink, processes.start([sys.executable, "-c", DEAF], stdout=sink) as process:
        assert processes.comes_true(lambda: out.stat().st_size > 0, 20)
        child = int(out.read_text())
        processes.interrupt(processes.record_of(process.pid), "a job", tmp_path, seconds=0.3)
        assert process.wait(10) == -9
    assert processes.comes_true(lambda: not processes.is_alive(child), 10)


def test_a_child_is_heard_told_and_asked() -> None:
    heard: queue.Queue[str | None] = queue.Queue()
    code = "import sys; print('why', file=sys.stderr, flush=True); print(input(), flush=True); input()"
    child = processes.Child([sys.executable, "-c", code], "stdout", heard.put, takes_orders=True)
    child.say("an order")
    assert heard.get(timeout=20) == "an order"
    assert child.ask_to_stop()
    code_and_rest = child.wait(20)
    assert heard.get(timeout=20) is None
    assert code_and_rest[0] == -15 and code_and_rest[1].startswith("why")
    assert not child.ask_to_stop()
