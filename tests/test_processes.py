"""Processes: recognised by more than their number, stopped only if they are who the record says."""

from __future__ import annotations

import queue
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gymnasium_solver import processes
from gymnasium_solver.errors import SolverError

pytestmark = pytest.mark.integration

DEAF = (
    "import signal, subprocess, sys, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_a_process_is_known_by_boot_and_start_time(sleeper: subprocess.Popen[bytes]) -> None:
    record = processes.record_of(sleeper.pid)
    assert processes.at_work(record) == sleeper.pid
    assert processes.may_be_stopped(record)
    assert processes.at_work({**record, "process": "another boot/1"}) is None
    assert processes.at_work({**record, "host": "elsewhere"}) is None
    sleeper.kill()
    sleeper.wait()
    assert processes.at_work(record) is None


def test_what_the_record_does_not_identify_is_not_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    record = {**processes.record_of(sleeper.pid), "process": None}
    for doubtful in (record, {**record, "heartbeat": time.time() - 3600}, {**record, "heartbeat": "now"}):
        with pytest.raises(SolverError, match="may no longer be that of run x; not stopped"):
            processes.ask_to_stop(doubtful, "run x")
    with pytest.raises(SolverError, match="stop it there"):
        processes.ask_to_stop({**record, "host": "elsewhere"}, "run x")
    assert sleeper.poll() is None
    assert processes.ask_to_stop({**record, "heartbeat": time.time()}, "run x") == sleeper.pid
    assert sleeper.wait(10) != 0


def test_one_that_does_not_listen_is_killed_with_its_children() -> None:
    with processes.start([sys.executable, "-c", DEAF]) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        processes.interrupt(processes.record_of(process.pid), "a job", seconds=0.3)
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
