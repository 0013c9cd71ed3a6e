"""The loop: drives source, feed, algorithm and judge, and hands the books what they bring. It knows no algorithm and no
environment by name."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from gymnasium_solver.config.load import to_dict
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.compiled.engine import CompiledEngine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import DivergedError, EnvironmentFault
from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.train.books import Books, Emit
from gymnasium_solver.train.checkpoint import transfer
from gymnasium_solver.train.evaluations import Evaluations
from gymnasium_solver.train.judge import MAX_PARALLEL, EpisodeJudge, EvaluationStopped
from gymnasium_solver.train.learner import Learner, Timed, untimed
from gymnasium_solver.train.parts import Arrays, Numbers, Source
from gymnasium_solver.train.policy import Policy
from gymnasium_solver.train.progress import Progress
from gymnasium_solver.train.randomness import generator, seed_for
from gymnasium_solver.train.signals import data_signals, dynamics_signals
from gymnasium_solver.train.source import empty_columns
from gymnasium_solver.train.sources import can_resume, make_source
from gymnasium_solver.train.watch import MakeMonitor

_DYNAMICS_STEPS = 1000  # env steps between looks at the dynamics: short epochs would be a tenth slower with one each
_FINITE = ("train/loss/total", "train/metrics/grad_norm/all", "train/metrics/param_checksum")


class Loop:
    def __init__(
        self,
        config: Config,
        spec: EnvSpec,
        engine: VectorEngine | CompiledEngine | None,
        make_monitor: MakeMonitor | None = None,
        stop_on: str | None = None,
        timed: Timed = untimed,
    ) -> None:
        """`engine`: the environments to train in; None where experience does not come from any. `stop_on`: a severity;
        what the monitor finds of it ends the training. `timed`: for a profile of where the time goes."""
        resolved: dict[str, Any] = {"reward_threshold": spec.reward_threshold}
        if config.engine == "auto":  # a resumed run stays on the engine it began with
            resolved["engine"], _, vectorization = spec.engine.partition("/")
            resolved["vectorization"] = vectorization or config.vectorization
        self.config = config = config.model_copy(update=resolved)
        self.spec, self.engine, self._timed, self._stop_on = spec, engine, timed, stop_on
        self.learner = Learner(config, spec, timed, engine)
        policy = Policy(config, spec, None, self.learner.act, self.learner.greedy, self.learner.algorithm)
        self.progress = Progress()
        self.init_notes: list[str] = []
        self._resumed: Arrays = {}
        described = (to_dict(config), spec.describe(), config.reward_threshold)
        self._monitor = make_monitor(*described) if make_monitor is not None else None
        self._stopped_by = ""
        self._compile_seconds = 0.0
        self._row_length = self.learner.feed.row_length
        rows, epochs = max(1, config.budget // self._row_length), self.learner.feed.epochs
        self._evaluations = Evaluations(config, EpisodeJudge(policy), max(1, rows // 20) * epochs)
        self._checkpoint_every = config.checkpoint_freq_epochs or max(1, rows // 10) * epochs
        self._dynamics_every = max(1, _DYNAMICS_STEPS // self._row_length) * epochs

    def initialize_from(self, arrays: Arrays, source: str) -> None:
        self.learner.state, notes = transfer(self.learner.state, arrays)
        self.init_notes = [f"{source}: {note}" for note in notes]

    def restore(self, run: Run, checkpoint: str | None = None) -> None:
        """Continue from a checkpoint, the last one if none is named; a run killed before its first one starts over,
        identically."""
        if checkpoint is None and "last" not in run.checkpoints():
            return
        name = checkpoint or "last"
        self._resumed, meta = run.read_checkpoint(name, self.learner.feed.place)
        self.learner.restore(self._resumed, f"{run.run_id}/{name}")
        self.progress = Progress.from_meta(meta["progress"])
        if not can_resume(self._resumed):  # made to act, not to go on from: the environments begin anew
            self.progress.restart_epoch = self.progress.epoch
            self.learner.state = self.learner.algorithm.forget_episodes(self.learner.state)

    def run(
        self, writer: RunWriter, emit: Emit, stop_requested: Callable[[], bool], *, is_resume: bool, report: bool = True
    ) -> None:
        self._stop_requested = stop_requested
        self.books = Books(self.config, self.spec, self.progress, writer, emit, self._monitor, self._stop_on)
        self.books.announce(is_resume, self.learner.feed.notes, self.init_notes)
        with warnings.catch_warnings(), ThreadPoolExecutor(1) as background:
            warnings.showwarning = lambda message, category, *_: self.books.warn(f"{category.__name__}: {message}")
            # XLA leaves Python free to reset the environments and collect the first rollout meanwhile.
            update = background.submit(self._compile)
            if self.config.eval_deterministic:
                background.submit(self._compile_greedy)
            source = self._make_source()
            if self.init_notes:  # a kill before the next checkpoint must not lose what was transferred
                self._checkpoint(["last"], source)
            try:
                if self.progress.unwritten is not None:  # it was stopped in the midst of an evaluation
                    self._conclude_row(source)
                while not self._finished and not stop_requested() and not self._stopped_by:
                    self._train_row(source, update)
                    self._conclude_row(source)
            except EnvironmentFault:
                self.learner.cut_episodes()
                self._checkpoint(["last"], source)  # the learner is sound: keep what it has
                raise
            finally:
                self.close()
            finished = self._finished
            self._checkpoint([f"epoch={self.progress.epoch}", "last"] if finished else ["last"], source)
            self.books.finish(interrupted=not finished, stopped_by=self._stopped_by, report=report)

    def is_stopped_by(self, reason: str | None) -> bool:
        """Whether there is a reason to end it; status.json keeps it."""
        self._stopped_by = self._stopped_by or reason or ""
        return bool(reason)

    @property
    def written_epochs(self) -> int:
        """Epochs whose rows stay when a restored run goes on."""
        return self.progress.epoch - (self.progress.unwritten is not None)

    @property
    def done(self) -> int:
        """How far the run is on its clock."""
        return int(getattr(self.progress.clock, self.config.clock))

    @property
    def _finished(self) -> bool:
        solved = self.progress.solved and self.config.stop_when_solved
        return (self.done >= self.config.budget or solved) and self.progress.unwritten is None

    def _hyperparameters(self) -> Numbers:
        """As they stand in the middle of the coming row."""
        return self.learner.hyperparameters(self.done + self._row_length / 2)

    def _compile(self) -> Any:
        begun = time.perf_counter()
        compiled = self.learner.compile()
        self._compile_seconds = time.perf_counter() - begun
        self.books.emit("compiled", seconds=self._compile_seconds)
        return compiled

    def _compile_greedy(self) -> None:
        """Called once with the shapes of an evaluation, so that the first one does not wait for it."""
        n, algorithm = min(self.config.eval_episodes, MAX_PARALLEL), self.learner.algorithm
        columns = empty_columns(self.spec, {}, n, 1)
        mask = columns["action_mask"][0] if "action_mask" in columns else None
        actor = algorithm.actor(algorithm.init(np.random.default_rng(0)))
        self.learner.greedy(actor, algorithm.begin(n), columns["obs"][0], mask)

    def _make_source(self) -> Source | None:
        if self.engine is None:
            return None
        source = make_source(self.engine, self.learner, self._restart_seed)
        if note := source.restore(self._resumed):
            self.books.writer.log("INFO", note)
        self._resumed = {}
        return source

    @property
    def _restart_seed(self) -> int:
        return seed_for(self.config.seed, "environments", self.progress.restart_epoch)

    def _train_row(self, source: Source | None, update: Future[Any]) -> None:
        """An epoch: what the source brings, and what is learnt from it."""
        progress, hp = self.progress, self._hyperparameters()
        rng = generator(self.config.seed, "epoch", progress.epoch)
        learnt = self.learner.learn(source, update, rng, hp, progress.clock)
        steps = 0 if source is None else int(source.columns["valid"].sum())
        progress.advance(steps, learnt.updates, [] if source is None else source.ended(), learnt.epochs)
        signals: Numbers = {}
        if source is not None:
            source.keep()
            signals = self._timed("record", self._signals)(source, learnt.epochs)
        in_force = {f"train/hp/{name}": value for name, value in hp.items()}
        metrics = progress.metrics() | learnt.metrics | signals | in_force
        self._require_converging(metrics)
        self.books.check(metrics)
        progress.unwritten = metrics | {
            "train/sys/fps": steps / (learnt.time_rollout + learnt.time_update),
            "train/sys/time_rollout": learnt.time_rollout,
            "train/sys/time_update": learnt.time_update,
            "train/sys/time_compile": self._compile_seconds,
            "train/sys/rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if source is not None and source.restart_every and progress.epoch % source.restart_every == 0:
            progress.restart_epoch = progress.epoch
            self.learner.cut_episodes()
            source.restart(self._restart_seed)

    def _signals(self, source: Source, epochs: int) -> Numbers:
        columns = source.columns
        signals = data_signals(columns, self.spec.action, self.config.rescale_actions)
        if (self.progress.epoch - epochs) % self._dynamics_every == 0:
            signals |= dynamics_signals(columns["obs"], columns["action"], columns["valid"], self.spec.action)
        return signals

    def _require_converging(self, metrics: Numbers) -> None:
        broken = [name for name in _FINITE if name in metrics and not np.isfinite(metrics[name])]
        if broken:
            self.books.writer.metrics(metrics)
            raise DivergedError(
                f"training diverged at {self.done} {CLOCKS[self.config.clock].words}: {broken[0]} is "
                f"{metrics[broken[0]]}; lower policy_lr, set max_grad_norm, or normalise observations and rewards"
            )

    def _conclude_row(self, source: Source | None) -> None:
        """Evaluate if it is time to, and write the epoch's row. Stopped in between, the run takes it up here."""
        progress, begun = self.progress, time.perf_counter()
        metrics = dict(progress.unwritten or {})
        try:
            if self._evaluations.is_due(progress, self.done):
                metrics |= self._timed("evaluate", self._evaluate)()
        except EvaluationStopped:
            return
        except EnvironmentFault:
            self.books.writer.metrics(metrics)  # the update was made: its row belongs to the checkpoint that follows
            raise
        self.books.row(metrics, begun)
        if (grave := self.books.grave_finding(metrics)) and not self._finished:
            self._stopped_by = grave
        if progress.epoch % self._checkpoint_every == 0:
            self._checkpoint([f"epoch={progress.epoch}", "last"], source)
        elif self.books.is_save_due:
            self._checkpoint(["last"], source)
        self.books.heartbeat()

    def _evaluate(self) -> Numbers:
        hp, stop = self._hyperparameters(), self._stop_requested
        return self._evaluations.evaluate(self.learner, self.progress, self.books, self.done, hp, stop)

    def _checkpoint(self, names: list[str], source: Source | None) -> None:
        """With all that a run goes on from; `best` is only ever used to act."""
        environments = {} if source is None else source.snapshot()
        self.books.checkpoint(names, self.learner.snapshot(to_go_on=True) | environments)

    def close(self) -> None:
        """The environments of evaluations; those of training are the caller's."""
        self._evaluations.judge.close()
