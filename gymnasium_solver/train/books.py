"""The books of a training: rows, checkpoints, status, warnings and findings go to the run directory and to whoever
watches."""

from __future__ import annotations

import time
from collections.abc import Callable

from gymnasium_solver.config.load import to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import write_report
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.train.checkpoint import REPLAY
from gymnasium_solver.train.parts import Arrays, Numbers
from gymnasium_solver.train.progress import Progress
from gymnasium_solver.train.watch import Monitor, Watch

Emit = Callable[..., None]

_GRAVITY = ("info", "low", "medium", "high", "critical")
_SAVE_SECONDS = 60.0  # between saves, so that a kill loses little work; scheduled checkpoints count as saves
_SAVE_SHARE = 20  # at least this many times as long as a save took: a large replay must not be saved all the time


class Books:
    def __init__(
        self,
        config: Config,
        spec: EnvSpec,
        progress: Progress,
        writer: RunWriter,
        emit: Emit,
        monitor: Monitor | None,
        stop_on: str | None,
    ) -> None:
        self.config, self.spec, self.progress, self.writer, self.emit = config, spec, progress, writer, emit
        self._monitor, self._stop_on = monitor, stop_on
        self._watch = Watch(getattr(config, "n_envs", 1))
        self._begun = self._saved = time.perf_counter()
        self._begun_at_steps = progress.env_steps
        self._save_every = _SAVE_SECONDS

    def _position(self) -> dict[str, int]:
        """Where the run is, and how far it is to go."""
        clock = self.config.clock
        done = {"env_steps": self.progress.env_steps, clock: getattr(self.progress, clock)}
        return done | {f"max_{clock}": self.config.budget}

    def announce(self, is_resume: bool, notes: list[str], init_notes: list[str]) -> None:
        config, spec = self.config, self.spec
        verb = f"resumed after epoch {self.progress.epoch}" if is_resume else "started"
        length = f"{config.budget} {CLOCKS[config.clock].words}"
        self.writer.log("INFO", f"{verb}: {config.env_id} {config.algo_id} seed {config.seed}, {length}")
        self.writer.log("INFO", f"engine {spec.engine}: {spec.reason}")
        for note in notes:
            self.writer.log("INFO", note)
        for note in init_notes:
            self.writer.log("INFO", f"init: {note}")
        self.writer.status("running", **self._position(), threshold=config.reward_threshold)
        self.emit(
            "started",
            path=str(self.writer.path),
            config=to_dict(config),
            engine=spec.engine,
            reason=spec.reason,
            threshold=config.reward_threshold,
            clock=config.clock,
            **{f"max_{config.clock}": config.budget},
            notes=notes,
            init=init_notes,
        )

    def warn(self, message: str) -> None:
        self.writer.log("WARNING", message)
        self.emit("warning", message=message)

    def check(self, metrics: Numbers) -> None:
        """Invariants of a sound update; a breach is reported once."""
        for message in self._watch.check(metrics):
            self.warn(message)

    def row(self, metrics: Numbers, evaluated_since: float) -> None:
        now = time.perf_counter()
        metrics |= {
            "train/sys/fps_total": (self.progress.env_steps - self._begun_at_steps) / (now - self._begun),
            "train/sys/time_eval": now - evaluated_since,
        }
        self.writer.metrics(metrics)
        self.progress.unwritten = None
        self.emit("epoch", metrics=metrics)

    def grave_finding(self, metrics: Numbers) -> str | None:
        """Show the monitor the row that was just written; the cause to stop for, if what it finds is grave enough. A
        monitor that fails must not end a training."""
        if self._monitor is None:
            return None
        try:
            found = self._monitor.observe(metrics)
        except Exception as error:
            self._monitor = None
            self.warn(f"diagnosis stopped watching: {type(error).__name__}: {error}")
            return None
        grave = None
        for finding in found:
            self.warn(finding.message)
            if self._stop_on is not None and _GRAVITY.index(finding.severity) >= _GRAVITY.index(self._stop_on):
                grave = finding.cause
        return grave

    @property
    def is_save_due(self) -> bool:
        return time.perf_counter() - self._saved >= self._save_every

    def heartbeat(self) -> None:
        self.writer.heartbeat(**self._position(), epoch=self.progress.epoch)

    def checkpoint(self, names: list[str], arrays: Arrays) -> None:
        """A replay is saved only under `last`, because it may be large."""
        begun = time.perf_counter()
        meta = {"progress": self.progress.to_meta(), "env_id": self.config.env_id, "algo_id": self.config.algo_id}
        light = {name: array for name, array in arrays.items() if not name.startswith(REPLAY)}
        if len(light) == len(arrays):
            self.writer.checkpoint(names, arrays, meta)
        else:
            if others := [name for name in names if name != "last"]:
                self.writer.checkpoint(others, light, meta)
            self.writer.checkpoint(["last"], arrays, meta)
        self._saved = time.perf_counter()
        self._save_every = max(_SAVE_SECONDS, _SAVE_SHARE * (self._saved - begun))
        self.emit("checkpoint", names=names)

    def finish(self, *, interrupted: bool, stopped_by: str, report: bool) -> None:
        progress, writer, config = self.progress, self.writer, self.config
        status = "interrupted" if interrupted else "completed"
        if stopped_by:
            by = f"--stop-on {self._stop_on}: " if self._stop_on else ""
            writer.log("WARNING", f"stopped by {by}{stopped_by}")
        reached = "solved" if progress.solved else "threshold not reached"
        outcome = "done" if config.reward_threshold is None else reached
        done = f"{getattr(progress, config.clock)} {CLOCKS[config.clock].words}"
        writer.log("INFO", f"{status} at {done}: {outcome}")
        writer.status(
            status, **self._position(), epoch=progress.epoch, solved=progress.solved, stopped_by=stopped_by or None
        )
        drawn: str | None = None
        try:
            drawn = str(write_report(writer.path)) if report else None
        except Exception as error:  # the training is done and saved; its picture can be drawn again
            self.warn(f"no report: {type(error).__name__}: {error}; try again with gsolve report {writer.run_id}")
        self.emit("finished", status=status, summary=Run(writer.path).summary(), report=drawn)
