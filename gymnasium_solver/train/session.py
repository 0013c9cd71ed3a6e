"""One training from beginning to end: a new run, or one that goes on; signals, failures and the run directory."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gymnasium_solver.config.cards import card_of
from gymnasium_solver.config.fixed import changed_fixed_field
from gymnasium_solver.config.load import build_config, to_dict, with_overrides
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import describe, make_engine
from gymnasium_solver.errors import ConfigError, DivergedError, SolverError
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.runs.reader import Run, default_runs_dir, find_run, split_checkpoint_ref
from gymnasium_solver.runs.report import changes_on_resume, write_report
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.train.checkpoint import without_replay
from gymnasium_solver.train.loop import Loop
from gymnasium_solver.train.watch import MakeMonitor


@dataclass(frozen=True)
class Event:
    """Something the user may want to see; `data` by kind is documented where it is emitted, in books.py and loop.py."""

    kind: Literal["started", "compiled", "epoch", "evaluated", "warning", "checkpoint", "finished"]
    run: str
    data: dict[str, Any]


def train(
    config: Config | None = None,
    *,
    runs_dir: Path | None = None,
    resume: str | None = None,
    overrides: dict[str, Any] | None = None,
    init_from: str | None = None,
    group: str | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: list[str] | None = None,
    make_monitor: MakeMonitor | None = None,
    stop_on: str | None = None,
    stop_when: Callable[[], str | None] | None = None,
    report: bool = True,
) -> Run:
    """Train a config into a new run, or `resume` one (with `overrides` of its config, such as more steps) from its last
    checkpoint or the one named. A monitor is shown every row of metrics; a finding of the severity `stop_on` ends the
    training, and so does a reason from `stop_when`, asked after every epoch and within evaluations (an empty one
    interrupts it, and is not kept). Without `report` none is written; `gsolve report` writes it later.

    Returns the run; its status is completed or interrupted. Raises ConfigError, EnvironmentFault, DivergedError.
    """
    directory = default_runs_dir(runs_dir)
    command = command if command is not None else sys.argv
    resumed, checkpoint = None, None
    if resume:
        name, checkpoint = split_checkpoint_ref(resume)
        resumed = find_run(name, directory)
    if resumed is not None:
        config = _resumable(resumed, overrides or {})
    if config is None:
        raise ConfigError("nothing to train: give a config, or a run to resume")
    transfer = _read_transfer(init_from, directory) if init_from else None

    # From before the run exists: there is no moment at which a signal would leave it unmarked.
    with _stop_requests() as stop_requested:
        # An error from here on to RunWriter leaves nothing written.
        engine = make_engine(config, config.n_envs) if config.clock == "env_steps" else None
        writer: RunWriter | None = None
        try:
            loop = Loop(config, engine.spec if engine else describe(config), engine, make_monitor, stop_on)
            if transfer is not None:
                loop.initialize_from(*transfer)
            if resumed is not None:
                before, now = dict(resumed.config), to_dict(loop.config)
                loop.restore(resumed, checkpoint)
                writer = RunWriter.reopen(resumed.path, loop.written_epochs, now)
                for change in changes_on_resume(before, now):
                    writer.log("INFO", f"from {loop.done} {CLOCKS[loop.config.clock].words} on: {change}")
            else:
                parent = transfer[1] if transfer else None
                writer = RunWriter.create(
                    directory,
                    to_dict(loop.config),
                    command=command,
                    group=group,
                    parent=parent,
                    spaces=loop.spec.describe(),
                )
            run_id, path = writer.run_id, writer.path

            def emit(kind: Any, **data: Any) -> None:
                nonlocal on_event
                if on_event is not None:
                    try:
                        on_event(Event(kind, run_id, data))
                    except OSError:  # the terminal or pipe that showed progress is gone; training is not
                        on_event = None

            def should_stop() -> bool:
                reason = stop_when() if stop_when is not None else None
                return reason is not None and (loop.is_stopped_by(reason) or not reason)

            loop.run(
                writer,
                emit,
                lambda: stop_requested() or should_stop(),
                is_resume=resumed is not None,
                report=report,
            )
        except BaseException as error:
            if writer is not None:
                _mark_failed(writer, error, report)
            raise
        finally:
            with suppress(Exception):  # a broken environment may not even close; what is reported is why it broke
                if engine is not None:
                    engine.close()
            if writer is not None:
                writer.close()
    return find_run(str(path), directory)


def _resumable(run: Run, overrides: dict[str, Any]) -> Config:
    status = run.status.get("status")
    if status == "running":
        raise ConfigError(f"{run.run_id} is still running; stop it first with `gsolve stop {run.run_id}`")
    if status == "completed" and not overrides:
        raise ConfigError(f"{run.run_id} is complete; give it more steps to go on, e.g. --set max_env_steps=…")
    fields = with_overrides(run.config, overrides)
    if status == "completed" and run.status.get("solved") and fields.get("stop_when_solved"):
        raise ConfigError(f"{run.run_id} is solved; to train it further, add --set stop_when_solved=false")
    changed = changed_fixed_field(card_of(run.config.get("algo_id")).config, run.config, fields)
    if changed is not None:
        raise ConfigError(
            f"{run.run_id}: {changed} cannot change in mid-run (it is {run.config.get(changed)!r}); start a new "
            f"run with --init-from {run.run_id}/@last"
        )
    run.admit_code()
    return build_config(fields, run.run_id)


def _read_transfer(ref: str, directory: Path) -> tuple[dict[str, np.ndarray], str]:
    name, checkpoint = split_checkpoint_ref(ref)
    run = find_run(name, directory)
    arrays, _ = run.read_checkpoint(checkpoint or "best", without_replay)
    return arrays, f"{run.run_id}/{checkpoint or 'best'}"


def _mark_failed(writer: RunWriter, error: BaseException, report: bool) -> None:
    status = "diverged" if isinstance(error, DivergedError) else "failed"
    if isinstance(error, KeyboardInterrupt):
        status = "interrupted"
    reason = str(error) if isinstance(error, SolverError) else f"{type(error).__name__}: {error}"
    with suppress(Exception):  # a full disk must not hide the error itself
        writer.log("ERROR", reason)
        if not isinstance(error, SolverError | KeyboardInterrupt):
            writer.log("ERROR", "".join(traceback.format_exception(error)))
        for note in getattr(error, "__notes__", ()):  # the stack trace of an environment
            writer.log("ERROR", note)
        writer.status(status, error=reason)
        if report:
            write_report(writer.path)


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM ask to stop after the epoch; another one, a second later or more, stops at once (a group's
    leader passes on what its members got themselves)."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    requested: float | None = None

    def handle(signum: int, frame: object) -> None:
        nonlocal requested
        if requested is not None and time.monotonic() - requested > 1.0:
            raise KeyboardInterrupt
        requested = time.monotonic()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested is not None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
