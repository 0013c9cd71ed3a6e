"""`gsolve train --seeds N`: every seed in a process of its own, on cores of its own, shown and reported together."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any

from gymnasium_solver.cli import output
from gymnasium_solver.cli.progress import Progress
from gymnasium_solver.errors import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_TARGET_MISSED

if TYPE_CHECKING:
    from gymnasium_solver.cli.training import Request

Message = tuple["SeedJob", str | None]


@dataclass
class SeedJob:
    """One seed: waiting until it has a process, finished when it has an exit code."""

    seed: int
    progress: Progress = field(default_factory=Progress)
    process: subprocess.Popen[str] | None = None
    slot: int = -1
    exit_code: int | None = None
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    _stdout: IO[str] | None = None
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def start(self, arguments: list[str], slot: int, cores: Sequence[int], messages: queue.Queue[Message]) -> None:
        self.slot, self.progress = slot, Progress()
        self._stdout = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed when the process ends
        # A session of its own: Ctrl-C reaches the parent alone, which passes on exactly one request to stop.
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        if cores:  # before it has any threads, which inherit this
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self.process.pid, cores)
        threading.Thread(target=self._read, args=(messages,), daemon=True).start()

    def _read(self, messages: queue.Queue[Message]) -> None:
        assert self.process is not None and self.process.stderr is not None
        for line in self.process.stderr:
            messages.put((self, line.rstrip("\n")))
        messages.put((self, None))

    def hear(self, line: str) -> None:
        """A line of the child's stderr: an event, or something for a person."""
        if line.startswith('{"event"'):
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                self.progress.feed(event["event"], event["run"], event["data"])
                return
        if line.strip():
            self._tail.append(line)

    def end(self) -> None:
        assert self.process is not None and self._stdout is not None
        self.exit_code = self.process.wait()
        self._stdout.seek(0)
        with contextlib.suppress(ValueError):
            self.result = json.load(self._stdout)
        self._stdout.close()
        if not self.result:
            said = next((line for line in reversed(self._tail) if line.startswith("error: ")), None)
            self.error = (said or (self._tail[-1] if self._tail else "")).removeprefix("error: ")
            self.error = self.error or f"ended with exit code {self.exit_code} and no message"

    @property
    def state(self) -> str:
        if self.exit_code is not None:
            return output.verdict(self.result) if self.result else "failed"
        return self.progress.phase if self.process else "waiting"


def train_seeds(
    request: Request, first: int, count: int, jobs: int | None, *, as_json: bool, quiet: bool, announce: Path | None
) -> int:
    """Train seeds first, first + 1, …; print the joint result and return the exit code."""
    group = request.group or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-seeds-{secrets.token_hex(2)}"
    all_jobs = [SeedJob(seed) for seed in range(first, first + count)]
    began = time.perf_counter()
    if announce is not None:
        announce.write_text(group, encoding="utf-8")
    from gymnasium_solver.cli.seed_table import view_of

    with view_of(all_jobs, quiet) as refresh:
        interrupted = _run_all(request, group, all_jobs, jobs, refresh)
    document = summarise(group, all_jobs, time.perf_counter() - began)
    document["report"] = _write_report(group, all_jobs, request.runs_dir)
    code = EXIT_INTERRUPTED if interrupted else exit_code(all_jobs)
    if as_json:
        output.emit_json({**document, "exit_code": code})
    elif quiet:
        output.emit("\n".join(row["run_id"] for row in document["seeds"] if row.get("run_id")) or group)
    else:
        from gymnasium_solver.cli.seed_table import emit_result

        emit_result(document)
    return code


def _run_all(request: Request, group: str, all_jobs: list[SeedJob], jobs: int | None, refresh: Any) -> bool:
    """Keep as many seeds going as there are slots. True if it was interrupted."""
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    slots = min(jobs or len(available) or os.cpu_count() or 1, len(all_jobs))
    messages: queue.Queue[Message] = queue.Queue()
    waiting, running = deque(all_jobs), list[SeedJob]()
    with _stop_requests(running) as stopping:
        while running or (waiting and not stopping.is_set()):
            while waiting and len(running) < slots and not stopping.is_set():
                job = waiting.popleft()
                slot = min(set(range(slots)) - {other.slot for other in running})
                child = _for_seed(request, group, job.seed)
                job.start(child, slot, available[slot::slots], messages)
                running.append(job)
            with contextlib.suppress(queue.Empty):
                job, line = messages.get(timeout=0.25)
                if line is None:
                    job.end()
                    running.remove(job)
                else:
                    job.hear(line)
            refresh()
        return stopping.is_set()


def _for_seed(request: Request, group: str, seed: int) -> list[str]:
    from dataclasses import replace

    child = replace(request, overrides=(*request.overrides, f"seed={seed}"), group=group)
    return child.arguments("--json", "--events")


@contextlib.contextmanager
def _stop_requests(running: list[SeedJob]) -> Iterator[threading.Event]:
    """SIGINT, SIGTERM and SIGHUP ask every running seed to save and stop."""
    stopping = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stopping.set()
        for job in running:
            if job.process is not None and job.process.poll() is None:
                job.process.terminate()

    caught = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, ask) for number in caught}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summarise(group: str, all_jobs: Sequence[SeedJob], seconds: float) -> dict[str, Any]:
    """Per-seed results and what they have in common. Failed seeds count as not solved and have no reward."""
    import numpy as np

    from gymnasium_solver.runs.report import final_reward, interquartile_mean

    known = (final_reward(job.result) for job in all_jobs if job.result)
    rewards = np.array([reward for reward in known if reward is not None])
    return {
        "group": group,
        "seeds": [{"seed": job.seed, **job.result, "state": job.state, "error": job.error or None} for job in all_jobs],
        "solved": sum(bool(job.result.get("solved")) for job in all_jobs),
        "count": len(all_jobs),
        "failed": sum(bool(job.error) for job in all_jobs),
        "mean": float(rewards.mean()) if rewards.size else None,
        "std": float(rewards.std(ddof=1)) if rewards.size > 1 else None,
        "iqm": interquartile_mean(rewards) if rewards.size else None,
        "duration_s": seconds,
    }


def exit_code(all_jobs: Sequence[SeedJob]) -> int:
    codes = {job.exit_code for job in all_jobs}
    if codes == {EXIT_OK}:
        return EXIT_OK
    if len(codes) == 1:  # all failed alike: their reason is the reason
        return codes.pop() or EXIT_FAILURE
    has_threshold = any(job.result.get("threshold") is not None for job in all_jobs)
    return EXIT_TARGET_MISSED if has_threshold else EXIT_FAILURE


def _write_report(group: str, all_jobs: Sequence[SeedJob], runs_dir: Path | None) -> Path | None:
    """One page about all runs there are, those of failed seeds too, beside their directories."""
    from gymnasium_solver.runs.reader import Run, default_runs_dir
    from gymnasium_solver.runs.report import write_group_report

    runs = [Run(Path(job.progress.path)) for job in all_jobs if job.progress.path]
    if not runs:
        return None
    path = default_runs_dir(runs_dir) / f"{group}.md"
    path.write_text(write_group_report(runs), encoding="utf-8")
    return path
