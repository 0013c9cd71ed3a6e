"""Where an experiment's trainings are run and kept on record: what was trained once is not trained again.

An experiment is a directory beside the runs: `experiment.json` says what it is and how it stands, `trials.jsonl` has a
line for every finished training. Killed and started again under its name, it goes on with what is missing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gymnasium_solver import processes
from gymnasium_solver.errors import ConfigError, NotFoundError, SolverError, writing
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.plain import duration
from gymnasium_solver.runs import layout
from gymnasium_solver.runs.reader import default_runs_dir
from gymnasium_solver.trust import admit, signature
from gymnasium_solver.verify.experiments.options import Options
from gymnasium_solver.verify.trials import Trained, Training, Workers

RECORD, TRIALS = layout.EXPERIMENT, layout.TRIALS
BEYOND = 2.0  # times the steps of the first to get there, after which the others of a race are stopped
TICK = 0.25


class Laboratory:
    """A context manager: leaving it stops what is running, saved."""

    def __init__(self, path: Path, asked: Mapping[str, Any], options: Options) -> None:
        self.path, self.asked, self.budget, self.say = path, asked, options.begin(), options.say
        self._watch = options.watch
        self._done = dict(self._read())
        self._workers = Workers(options.jobs, runs_dir=path.parent, group=path.name)
        self.trained: list[Trained] = []  # in this experiment, those on record too
        self.from_record = 0

    @classmethod
    @contextmanager
    def open(cls, kind: str, what: Mapping[str, Any], options: Options) -> Iterator[Laboratory]:
        """A new experiment, or the one that is resumed; `what` it is about must then be the same."""
        directory, resume, say = default_runs_dir(options.runs_dir), options.resume, options.say
        path = directory / (Path(resume).name if resume else layout.new_id(kind))
        asked = json.loads(json.dumps(what))
        if resume is not None:
            _require_same(path, asked)
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            record = {"experiment": path.name, "kind": kind, "status": "running", "asked": asked}
            record |= processes.record_of() | {"signature": signature(path.name, *_code(asked))}
            layout.write_json(path / RECORD, record)
        laboratory = cls(path, asked, options)
        if resume is not None:
            say(f"{path.name}: continuing, {len(laboratory._done)} trainings are done")
        # A request to stop ends it as Ctrl-C does: saved, and marked.
        with processes.working_on(path), laboratory._workers, processes.handling(["SIGTERM"], _interrupt):
            try:
                yield laboratory
            except KeyboardInterrupt:
                layout.write_json(path / RECORD, {**record, "status": "interrupted"})
                say(f"interrupted; what is done is kept, continue with --resume {path.name}")
                raise
            except SolverError as error:
                layout.write_json(path / RECORD, {**record, "status": "failed", "error": str(error)})
                raise

    def measure(self, trainings: Sequence[Training], *, is_race: bool = False) -> list[Trained | None]:
        """What each brought; None where the budget ended before it was done. In a race a training is stopped when it
        has had twice the steps of the first that solved the task with the same seed."""
        results = {index: known for index, training in enumerate(trainings) if (known := self._recall(training))}
        first, stopped = _First(results.values()), set[int]()
        waiting = {id(training): index for index, training in enumerate(trainings) if index not in results}
        queue = iter([trainings[index] for index in waiting.values()])

        def is_lost(training: Training, steps: float) -> bool:
            lost = is_race and first.is_lost(training, steps)
            stopped.update([id(training)] if lost else [])
            return lost

        for training, trained in self._work(lambda: next(queue, None), is_lost, "race"):
            first.see(trained)
            in_race = id(training) in stopped and trained.status == "interrupted"
            if in_race or _is_whole(training, trained):
                self.say(f"  {training.label}, seed {training.seed}: {outcome(trained)}")
                results[waiting[id(training)]] = trained
                if in_race:  # not on record: how long it was worth watching depends on the others
                    self.trained.append(trained)
                else:
                    self._record(training, trained)
        return [results.get(index) for index in range(len(trainings))]

    def stream(
        self, supply: Callable[[], Training | None], is_enough: Callable[[Training], bool]
    ) -> Iterator[tuple[Training, Trained]]:
        """Ask `supply` for another training whenever a worker is free, until the budget is spent or it has none and
        none is running. What `is_enough` of is stopped, and counts as far as it came."""
        for training, trained in self._work(supply, lambda training, _: is_enough(training)):
            if self.budget.left_seconds > 0:
                self._record(training, trained)
            yield training, trained

    def _work(
        self,
        supply: Callable[[], Training | None],
        is_enough: Callable[[Training, float], bool],
        why: str = "budget",
    ) -> Iterator[tuple[Training, Trained]]:
        """Trainings as they end; what is on record ends at once."""
        while True:
            while self._workers.free and not self.budget.is_spent and (training := supply()) is not None:
                if (known := self._recall(training)) is not None:
                    yield training, known
                    continue
                self.budget.used_runs += 1
                self._workers.submit(training)
            if not self._workers.is_busy:
                return
            for notice in self._workers.notices(timeout=TICK):
                self._watch(notice)
                if notice.trained is not None:
                    yield notice.training, notice.trained
                    break
                if notice.kind == "epoch" and is_enough(notice.training, notice.data["steps"]):
                    self._workers.stop(notice.training, why)
            if self.budget.left_seconds <= 0:
                for training in self._workers.running:
                    self._workers.stop(training)

    def _recall(self, training: Training) -> Trained | None:
        known = self._done.get(_key(training))
        if known is not None:
            self.from_record += 1
            self.trained.append(known)
        return known

    def _record(self, training: Training, trained: Trained) -> None:
        if self._done.get(_key(training)) is trained:  # it is there
            return
        self.trained.append(trained)
        self._done[_key(training)] = trained
        with (self.path / TRIALS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": _key(training), **asdict(trained)}) + "\n")

    def _read(self) -> Iterator[tuple[str, Trained]]:
        for record in layout.read_lines(self.path / TRIALS):
            with suppress(KeyError, TypeError):  # as another version wrote it
                yield record.pop("key"), Trained(**record)

    def conclude(self, document: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """The last word on the experiment: its record, and files beside it."""
        signed = signature(self.path.name, *_code(self.asked))
        layout.write_json(self.path / RECORD, {**document, "asked": self.asked, "signature": signed})
        for name, text in files.items():
            layout.replace_file(self.path / name, [text.encode()])


def _interrupt() -> None:
    raise KeyboardInterrupt


class _First:
    """Env steps of the first to get there, by seed."""

    def __init__(self, known: Iterable[Trained]) -> None:
        self._steps: dict[int, float] = {}
        for trained in known:
            self.see(trained)

    def see(self, trained: Trained) -> None:
        if (steps := trained.steps_to_threshold) is not None:
            self._steps[trained.seed] = min(steps, self._steps.get(trained.seed, steps))

    def is_lost(self, training: Training, steps: float) -> bool:
        return steps > BEYOND * self._steps.get(training.seed, math.inf)


def _is_whole(training: Training, trained: Trained) -> bool:
    """What the end of the budget cut short is no result."""
    return trained.status != "interrupted" or (training.cap is not None and trained.env_steps >= training.cap)


def outcome(trained: Trained) -> str:
    """A training in one line."""
    took, counted = duration(trained.seconds), CLOCKS[trained.clock].words
    if trained.status == "failed":
        return f"failed: {trained.error}"
    reward = "no episode finished" if trained.final_reward is None else f"return {trained.final_reward:.4g}"
    if trained.steps_to_threshold is not None:
        return f"threshold after {trained.steps_to_threshold:,.0f} {counted}, {reward} ({took})"
    missed = "" if trained.threshold is None else f"{trained.threshold:g} not reached in "
    return f"{missed}{trained.env_steps:,} {counted}, {reward} ({took})"


def _key(training: Training) -> str:
    text = json.dumps([dict(training.fields), training.cap], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The config fields in what was asked, which may name code."""
    task = {**(asked.get("task") or {}), "env_id": asked.get("env_id")}
    return [asked.get("config") or {}, asked.get("set") or {}, task]


def asked_before(experiment: str, runs_dir: Path | None = None, *, trust: bool = False) -> dict[str, Any]:
    """What an experiment was begun with, by its name or path; `trust`: code that it names may be imported."""
    path = default_runs_dir(runs_dir) / Path(experiment).name
    record = layout.read_json(path / RECORD)
    if not record:
        raise NotFoundError(f"there is no experiment {path.name!r} in {path.parent}; without --resume a new one starts")
    asked = record.get("asked", {})
    admit(path.name, *_code(asked), signed=record.get("signature"), trust=trust)
    return {"kind": record.get("kind"), **asked}


def _require_same(path: Path, asked: Mapping[str, Any]) -> None:
    before = asked_before(path.name, path.parent)
    record = layout.read_json(path / RECORD)
    if processes.is_at_work_elsewhere(record):
        raise ConfigError(f"{path.name} is still running in process {record['pid']}; wait for it, or stop it first")
    different = [name for name, value in asked.items() if before.get(name) != value]
    if different:
        raise ConfigError(
            f"{path.name} was started with different arguments ({different[0]}); use the same as before, or start "
            "a new one without --resume"
        )
