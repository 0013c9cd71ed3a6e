"""Many seeds of one training: each in a process of its own, on cores of its own, reported together."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnasium_solver.api.groups import Group, joint, new_group_id
from gymnasium_solver.api.request import Request
from gymnasium_solver.data.memory import shared_by
from gymnasium_solver.errors import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_TARGET_MISSED, SolverError
from gymnasium_solver.processes import Child, handling, shares, working_on

Message = tuple["SeedJob", str | None]
# The job, then kind, run id and data of its event; updates come at most four a second.
OnEvent = Callable[["SeedJob", str, str, dict[str, Any]], None]

POLL_SECONDS = 0.25


@dataclass
class SeedJob:
    """One seed: waiting until it has a process, finished when it has an exit code."""

    seed: int
    resume: str = ""  # the run that goes on; else it begins
    process: Child | None = None
    slot: int = -1
    exit_code: int | None = None
    path: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    is_asked_to_stop: bool = False
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def start(
        self,
        arguments: list[str],
        slot: int,
        cores: Sequence[int],
        messages: queue.Queue[Message],
        environment: Mapping[str, str],
    ) -> None:
        self.slot = slot
        self.process = Child(
            arguments, "stderr", lambda line: messages.put((self, line)), environment=environment, cores=cores
        )

    def hear(self, line: str, on_event: OnEvent) -> None:
        """A line of the child's stderr: an event, or something for a person."""
        event = None
        if line.startswith('{"event"'):
            with contextlib.suppress(ValueError):
                event = json.loads(line)
        if event is not None:
            self.path = str(event["data"].get("path", self.path))
            on_event(self, event["event"], event["run"], event["data"])
        elif line.strip():
            self._tail.append(line)

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.ask_to_stop():
            self.is_asked_to_stop = True

    def end(self) -> None:
        assert self.process is not None
        self.exit_code, printed = self.process.wait()
        with contextlib.suppress(ValueError):
            self.result = json.loads(printed)
        if self.exit_code == -signal.SIGTERM and self.is_asked_to_stop:
            self.exit_code = EXIT_INTERRUPTED  # before it could listen
        if self.exit_code not in (EXIT_OK, EXIT_TARGET_MISSED, EXIT_INTERRUPTED):
            said = next((line for line in reversed(self._tail) if line.startswith("error: ")), None)
            self.error = (said or (self._tail[-1] if self._tail else "")).removeprefix("error: ")
            self.error = self.error or f"ended with exit code {self.exit_code} and no message"

    @property
    def state(self) -> str:
        if self.exit_code is None:
            return "running" if self.process else "waiting"
        if self.result:
            return str(self.result["status"])
        return "interrupted" if self.exit_code == EXIT_INTERRUPTED else "failed"


@dataclass(frozen=True)
class SeedsResult:
    group: Group
    jobs: Sequence[SeedJob]
    interrupted: bool
    seconds: float
    report: Path | None
    trouble: str = ""  # why there is no report

    @property
    def exit_code(self) -> int:
        codes = {job.exit_code for job in self.jobs}
        if self.interrupted:
            return EXIT_INTERRUPTED
        if codes == {EXIT_OK}:
            return EXIT_OK
        if len(codes) == 1:  # all failed alike: their reason is the reason
            return codes.pop() or EXIT_FAILURE
        has_threshold = any(job.result.get("threshold") is not None for job in self.jobs)
        return EXIT_TARGET_MISSED if has_threshold else EXIT_FAILURE

    def reasons(self) -> list[str]:
        """Why seeds failed, each reason once."""
        seeds: dict[str, list[int]] = {}
        for job in self.jobs:
            if job.error:
                seeds.setdefault(job.error, []).append(job.seed)
        if len(seeds) == 1 and len(next(iter(seeds.values()))) == len(self.jobs):
            return [f"all {len(self.jobs)} seeds failed: {next(iter(seeds))}"]
        return [f"{_seeds(failed)} failed: {reason}" for reason, failed in seeds.items()]

    def document(self) -> dict[str, Any]:
        """Per-seed results and what they have in common."""
        rows = [
            {"seed": job.seed, **job.result, "state": job.state, "error": job.error or None, "exit_code": job.exit_code}
            for job in self.jobs
        ]
        return {
            "group": self.group.group_id,
            "seeds": rows,
            **joint([{"last_reward": None, "test_reward": None, **row} for row in rows]),
            "duration_s": self.seconds,
            "report": self.report,
            "exit_code": self.exit_code,
        }


def train_jobs(
    request: Request,
    jobs: Sequence[SeedJob],
    at_once: int | None = None,
    *,
    group: Group | None = None,
    on_event: OnEvent = lambda *_: None,
    on_tick: Callable[[], None] = lambda: None,
) -> SeedsResult:
    """Train all that are not done, `at_once` at a time (one per core), as a new group or as those of one that goes on.
    SIGINT, SIGTERM and SIGHUP stop them, saved."""
    began = time.perf_counter()
    running: list[SeedJob] = []
    stopping = threading.Event()

    def stop() -> None:
        stopping.set()
        for job in running:
            job.ask_to_stop()

    with handling(["SIGINT", "SIGTERM", "SIGHUP"], stop):
        if group is None:
            seeds = [job.seed for job in jobs]
            group = Group.create(request.runs_dir, request.group or new_group_id(), seeds, request.training())
        else:
            group.go_on()
        request = replace(request, group=group.group_id)
        try:
            with working_on(group.path):
                _run_all(request, jobs, running, at_once, stopping, on_event, on_tick)
        except BaseException:
            for job in running:  # nobody would be left to hear of them
                job.ask_to_stop()
            raise
        report, trouble = _close(group, jobs, stopping.is_set())
    return SeedsResult(group, jobs, stopping.is_set(), time.perf_counter() - began, report, trouble)


def _run_all(
    request: Request,
    jobs: Sequence[SeedJob],
    running: list[SeedJob],
    at_once: int | None,
    stopping: threading.Event,
    on_event: OnEvent,
    on_tick: Callable[[], None],
) -> None:
    """Keep as many seeds going as there are slots."""
    waiting = deque(job for job in jobs if job.exit_code is None)
    cores = shares(at_once, most=len(waiting))
    slots = len(cores)
    messages: queue.Queue[Message] = queue.Queue()
    environment = shared_by(slots)
    while running or (waiting and not stopping.is_set()):
        while waiting and len(running) < slots and not stopping.is_set():
            job = waiting.popleft()
            slot = min(set(range(slots)) - {other.slot for other in running})
            child = request.of_seed(job.seed, job.resume)
            job.start(child.arguments("--json", "--events"), slot, cores[slot], messages, environment)
            running.append(job)
            if stopping.is_set() and not job.is_asked_to_stop:  # the request came while it was being started
                job.ask_to_stop()
        with contextlib.suppress(queue.Empty):
            job, line = messages.get(timeout=POLL_SECONDS)
            if line is None:
                job.end()
                running.remove(job)
            else:
                job.hear(line, on_event)
        on_tick()


def _close(group: Group, jobs: Sequence[SeedJob], interrupted: bool) -> tuple[Path | None, str]:
    """The report and the last word on the group; results are worth showing even where these cannot be written."""
    if not any(job.path for job in jobs) and not group.runs():
        group.discard()
        return None, ""
    failed = all(job.error for job in jobs)
    try:
        report = group.write_report()
        group.finish("interrupted" if interrupted else "failed" if failed else "completed")
    except SolverError as error:
        return None, str(error)
    return report, ""


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
