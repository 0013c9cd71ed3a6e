"""Processes: started, recognised, watched and stopped. Nothing else in the package starts or stops one, but for the
workers of environments."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

from gymnasium_solver.errors import SolverError
from gymnasium_solver.trust import allowed_for_children

SILENCE_SECONDS = 60.0  # after which a process that cannot be seen or recognised counts as gone
POLL_SECONDS = 0.1
MOMENT = 0.5  # seconds; a file that is being replaced is closed for an instant
AT_WORK = ".at-work"

Process = subprocess.Popen[str]


def record_of(pid: int | None = None) -> dict[str, Any]:
    """Who is at work (without `pid`: this process), for a file by which others tell a killed process and stop a
    living one."""
    pid = os.getpid() if pid is None else pid
    return {"pid": pid, "process": identity(pid), "command_line": _command_line(pid), "host": socket.gethostname()}


def identity(pid: int) -> str | None:
    """Boot and start time: a process id alone is reused, within hours or at the next start of a container.

    None where the system does not tell (anything but Linux) or the process is gone.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{_stat(pid)[19]}"
    except (OSError, IndexError):
        return None


def is_here(record: Mapping[str, Any]) -> bool:
    return bool(record.get("host") == socket.gethostname())


def at_work(record: Mapping[str, Any]) -> int | None:
    """The process of a record, if it lives on this machine."""
    pid = record.get("pid")
    if not is_here(record) or not isinstance(pid, int):
        return None
    return pid if is_alive(pid, record.get("process")) else None


def is_at_work_elsewhere(record: Mapping[str, Any]) -> bool:
    """Whether another process of this machine still does what the record says is running."""
    return record.get("status") == "running" and at_work(record) not in (None, os.getpid())


def is_alive(pid: int, known_as: str | None = None) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # somebody else's process: it exists
    except (OSError, OverflowError):
        return False
    with contextlib.suppress(OSError, IndexError):
        if _stat(pid)[0] == "Z":  # dead, but its parent has not collected it
            return False
    now = identity(pid)
    return known_as is None or now is None or now == known_as


def _stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the state on; the command name before them may contain spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _command_line(pid: int) -> str | None:
    """Its digest: there may be secrets in it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    return hashlib.sha256(words).hexdigest() if words else None


@contextlib.contextmanager
def working_on(directory: Path) -> Iterator[None]:
    """Holds a file in it open, by which others see that it is this process that works there. Where that cannot be
    written, it works all the same."""
    path = directory / AT_WORK
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(path.open("ab"))
        yield
    with contextlib.suppress(OSError):
        path.unlink()


def writes_into(pid: int, directory: Path) -> bool:
    """Whether it has a file in the directory open for writing: what no record can make up about a process."""
    inside = f"{directory.resolve()}{os.sep}"
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError, ValueError, IndexError):
            if str(descriptor.readlink()).startswith(inside):
                flags = Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text().partition("flags:")[2].split()[0]
                if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                    return True
    return False


def may_be_stopped(record: Mapping[str, Any], directory: Path) -> bool:
    """The one place that decides whether a living process is the one that a record in the directory is about: anyone
    may have written the record, and numbers of processes are used again. What the record does not say is no match."""
    pid = at_work(record)
    if pid is None or pid <= 1 or record.get("process") is None:
        return False
    is_same = record["process"] == identity(pid) and record.get("command_line") == _command_line(pid) is not None
    return is_same and comes_true(lambda: writes_into(pid, directory), MOMENT)


def ask_to_stop(record: Mapping[str, Any], whose: str, directory: Path, *, by: signal.Signals = signal.SIGTERM) -> int:
    """Ask the process of a record, which is about this directory, to save and end; and return its id."""
    pid = record.get("pid")
    if not is_here(record):
        raise SolverError(f"{whose} runs on {record.get('host')}; stop it there")
    if not isinstance(pid, int) or not may_be_stopped(record, directory):
        if isinstance(pid, int) and comes_true(lambda: at_work(record) is None, MOMENT):
            return pid  # it has ended by itself meanwhile
        raise SolverError(
            f"process {pid} was not stopped: its start, command line and open files do not show that it is that of "
            f"{whose}; end it with Ctrl-C where it runs"
        )
    try:
        os.kill(pid, by)
    except PermissionError:
        raise SolverError(f"process {pid} of {whose} belongs to another user; ask them to stop it") from None
    except ProcessLookupError:
        pass  # it has ended by itself meanwhile
    return pid


def interrupt(record: Mapping[str, Any], whose: str, directory: Path, seconds: float) -> None:
    """As Ctrl-C would; after `seconds` it is killed, with the processes it has started."""
    pid = ask_to_stop(record, whose, directory, by=signal.SIGINT)
    if not comes_true(lambda: at_work(record) is None, seconds) and may_be_stopped(record, directory):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def comes_true(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of the package with this Python."""
    return [sys.executable, "-m", name, *arguments]


def start(
    command: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] = subprocess.PIPE,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """In a session of its own: it outlives the terminal, and Ctrl-C reaches its parent alone."""
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **allowed_for_children(), **(environment or {})},
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


def start_logged(command: Sequence[str], log: Path) -> Process:
    """All that it prints goes into a file. It goes on by itself."""
    with log.open("wb") as sink:
        return leave(start(command, stdout=sink, stderr=subprocess.STDOUT))


def leave(process: Process) -> Process:
    """Nobody waits for it; but when it has ended, a thread collects what the system keeps of it."""
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def finish(process: Process, seconds: float) -> tuple[str, str, int]:
    """What a short command prints, what it complains of, and its exit code. One that takes too long is killed:
    TimeoutError."""
    with process:
        try:
            out, complaints = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TimeoutError from None
    return out, complaints, process.returncode


class Child:
    """A process whose lines, of one of its streams, are heard as they come (None: there are no more); the other
    stream is kept until it has ended."""

    def __init__(
        self,
        command: Sequence[str],
        heard: Literal["stdout", "stderr"],
        hear: Callable[[str | None], None],
        *,
        takes_orders: bool = False,
        environment: Mapping[str, str] | None = None,
        cores: Sequence[int] = (),
    ) -> None:
        self._kept: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        kept = {"stderr" if heard == "stdout" else "stdout": self._kept}
        stdin = subprocess.PIPE if takes_orders else subprocess.DEVNULL
        self._process = start(command, stdin=stdin, environment=environment, **kept)
        if cores:  # before it has any threads, which inherit this
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._process.pid, cores)
        stream = getattr(self._process, heard)
        threading.Thread(target=_listen, args=(stream, hear), daemon=True).start()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it is gone: the end of its lines tells
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def dismiss(self) -> None:
        """No more orders will come."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()

    def ask_to_stop(self) -> bool:
        """Whether it was there to be asked."""
        is_running = self._process.poll() is None
        if is_running:
            self._process.terminate()
        return is_running

    def wait(self, seconds: float | None = None) -> tuple[int, str]:
        """Its exit code and what was kept; after `seconds` it is killed."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if self._process.stdin is not None:
            self.dismiss()
        with self._kept as kept:
            kept.seek(0)
            return code, kept.read()


def _listen(stream: IO[str], hear: Callable[[str | None], None]) -> None:
    with stream:
        for line in stream:
            hear(line.rstrip("\n"))
    hear(None)


def cores() -> list[int]:
    """Those that this process may use; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def shares(count: int | None, most: int | None = None) -> list[list[int]]:
    """The cores of each of `count` processes side by side (one per core)."""
    available = cores()
    count = max(1, count or len(available) or os.cpu_count() or 1)
    count = count if most is None else min(count, most)
    return [available[slot::count] or available for slot in range(count)]


@contextlib.contextmanager
def handling(names: Sequence[str], handle: Callable[[], None]) -> Iterator[None]:
    """Signals of these names, where the system has them, call `handle`; outside the main thread none do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: handle()) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
