"""One training session: owns the compiled functions, the environments' collector and the progress of a run."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import jax
import numpy as np

from gymnasium_solver.algorithms import make_algorithm
from gymnasium_solver.config.load import to_dict
from gymnasium_solver.config.schedules import value_at
from gymnasium_solver.config.schema import Config, OffPolicyConfig
from gymnasium_solver.envs import make_engine
from gymnasium_solver.envs.engine import VectorEngine
from gymnasium_solver.errors import DivergedError, EnvironmentFault
from gymnasium_solver.runs.reader import Run
from gymnasium_solver.runs.report import write_report
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.train.checkpoint import REPLAY, from_arrays, to_arrays, transfer
from gymnasium_solver.train.collect import Batch, Collector
from gymnasium_solver.train.evaluation import MAX_PARALLEL, Evaluation, EvaluationStopped, Policy, run_episodes
from gymnasium_solver.train.learner import Learner
from gymnasium_solver.train.progress import Progress
from gymnasium_solver.train.randomness import generator, seed_for
from gymnasium_solver.train.replay_learner import ReplayLearner
from gymnasium_solver.train.rollout_learner import RolloutLearner
from gymnasium_solver.train.signals import data_signals, dynamics_signals
from gymnasium_solver.train.watch import MakeMonitor, Monitor, Watch

Emit = Callable[..., None]
Function = TypeVar("Function", bound=Callable[..., Any])


class Timed(Protocol):
    """The function, with a clock around its calls that books them under the phase."""

    def __call__(self, phase: str, function: Function, /) -> Function: ...


def untimed(phase: str, function: Function, /) -> Function:
    return function


_GRAVITY = ("info", "low", "medium", "high", "critical")
_DYNAMICS_STEPS = 1000  # env steps between looks at the dynamics: short epochs would be a tenth slower with one each
_RECENT = 20  # training episodes whose mean at the threshold calls for an evaluation
_RESTART_EPISODES = 10  # full-length episodes of each environment between restarts
_SAVE_SECONDS = 60.0  # between saves, so that a kill loses little work; the checkpoints of the schedule are not less
_SAVE_SHARE = 20  # times as long as a save took, at least: a large replay must not be saved all the time
_ACTIONS = "actions"  # tensor of a checkpoint: the actions that lead from the last restart to it


class Trainer:
    def __init__(
        self,
        config: Config,
        engine: VectorEngine,
        make_monitor: MakeMonitor | None = None,
        stop_on: str | None = None,
        timed: Timed = untimed,
    ) -> None:
        """`stop_on`: a severity; what the monitor finds of it ends the training. `timed`: for a profile of where the
        time goes."""
        resolved: dict[str, Any] = {"reward_threshold": engine.spec.reward_threshold}
        if config.engine == "auto":  # a resumed run stays on the engine it began with
            resolved["engine"], _, vectorization = engine.spec.engine.partition("/")
            resolved["vectorization"] = vectorization or config.vectorization
        config = config.model_copy(update=resolved)
        self.config, self.engine, self.spec = config, engine, engine.spec
        self.algorithm = make_algorithm(config, self.spec)
        state = self.algorithm.init(generator(config.seed, "init", 0))
        self.learner: Learner = (
            ReplayLearner(config, self.spec, self.algorithm, state)
            if isinstance(config, OffPolicyConfig)
            else RolloutLearner(config, self.spec, self.algorithm, state)
        )
        self.progress = Progress()
        self.init_notes: list[str] = []
        self._timed = timed
        self._act = timed("act", jax.jit(self.algorithm.act))
        self._act_greedy = timed("act", jax.jit(self.algorithm.act_greedy))
        self._eval_engine: VectorEngine | None = None
        self._replay_actions: np.ndarray | None = None
        self._monitor: Monitor | None = None
        if make_monitor is not None:
            self._monitor = make_monitor(to_dict(config), self.spec.describe(), config.reward_threshold)
        self._stop_on, self._stopped_by = stop_on, ""
        self._save_every = _SAVE_SECONDS
        self._compile_seconds = 0.0
        n_epochs = max(1, config.max_env_steps // config.rollout)
        self._eval_every = config.eval_freq_epochs or max(1, n_epochs // 20)
        self._checkpoint_every = config.checkpoint_freq_epochs or max(1, n_epochs // 10)
        self._dynamics_every = max(1, _DYNAMICS_STEPS // config.rollout)
        # Environments begin anew from time to time, so that a resumed run has little to replay; seldom enough that the
        # episodes cut by it do not count.
        self._restart_every = max(1, _RESTART_EPISODES * (self.spec.max_episode_steps or 1000) // config.n_steps)

    def initialize_from(self, arrays: dict[str, np.ndarray], source: str) -> None:
        self.learner.state, notes = transfer(self.learner.state, arrays)
        self.init_notes = [f"{source}: {note}" for note in notes]

    def restore(self, run: Run, checkpoint: str | None = None) -> None:
        """Continue from a checkpoint, the last one if none is named; a run killed before its first one starts over,
        identically."""
        if checkpoint is None and "last" not in run.checkpoints():
            return
        name = checkpoint or "last"
        arrays, meta = run.read_checkpoint(name, self.learner.place)
        self._replay_actions = arrays.pop(_ACTIONS, None)
        self.learner.state = from_arrays(self.learner.state, arrays, f"{run.run_id}/{name}")
        self.learner.load(arrays)
        self.progress = Progress.from_meta(meta["progress"])
        if self._replay_actions is None:  # made to act, not to go on from: the environments begin anew
            self.progress.restart_epoch = self.progress.epoch

    def run(
        self,
        writer: RunWriter,
        emit: Emit,
        stop_requested: Callable[[], bool],
        *,
        is_resume: bool,
        report: bool = True,
    ) -> None:
        self.writer, self.emit, self.watch = writer, emit, Watch(self.config.n_envs)
        self._stop_requested = stop_requested
        self._begun = self._saved = time.perf_counter()
        self._begun_at_steps = self.progress.env_steps
        self._announce(is_resume)
        with warnings.catch_warnings(), ThreadPoolExecutor(1) as background:
            warnings.showwarning = lambda message, category, *_: self._warn(f"{category.__name__}: {message}")
            # XLA leaves Python free to reset the environments and collect the first rollout meanwhile.
            update = background.submit(self._compile)
            if self.config.eval_deterministic:
                background.submit(self._compile_greedy)
            collector = self._begin_collecting()
            if self.init_notes:
                self._checkpoint(["last"], collector)  # a kill before the next one must not lose what was transferred
            try:
                if self.progress.unwritten is not None:  # it was stopped in the midst of an evaluation
                    self._conclude_epoch(collector)
                while not self._finished() and not stop_requested() and not self._stopped_by:
                    self._update_epoch(collector, update)
                    self._conclude_epoch(collector)
            except EnvironmentFault:
                self.learner.cut_episodes()
                self._checkpoint(["last"], collector)  # the learner is sound: keep what it has
                raise
            self._finish(collector, report)

    def is_stopped_by(self, reason: str | None) -> bool:
        """Whether there is a reason to end it; status.json keeps it."""
        self._stopped_by = self._stopped_by or reason or ""
        return bool(reason)

    def _announce(self, is_resume: bool) -> None:
        config, spec = self.config, self.spec
        verb = f"resumed after epoch {self.progress.epoch}" if is_resume else "started"
        self.writer.log(
            "INFO", f"{verb}: {config.env_id} {config.algo_id} seed {config.seed}, {config.max_env_steps} env steps"
        )
        self.writer.log("INFO", f"engine {spec.engine}: {spec.reason}")
        for note in self.learner.notes:
            self.writer.log("INFO", note)
        for note in self.init_notes:
            self.writer.log("INFO", f"init: {note}")
        steps, total = self.progress.env_steps, config.max_env_steps
        self.writer.status("running", env_steps=steps, max_env_steps=total, threshold=config.reward_threshold)
        self.emit(
            "started",
            path=str(self.writer.path),
            config=to_dict(config),
            engine=spec.engine,
            reason=spec.reason,
            threshold=config.reward_threshold,
            max_env_steps=config.max_env_steps,
            notes=self.learner.notes,
            init=self.init_notes,
        )

    def _compile(self) -> Any:
        begun = time.perf_counter()
        compiled = self.learner.compile(self._hyperparameters())
        self._compile_seconds = time.perf_counter() - begun
        self.emit("compiled", seconds=self._compile_seconds)
        return compiled

    def _compile_greedy(self) -> None:
        """Called once with the shapes of an evaluation, so that the first one does not wait for it."""
        episodes = min(self.config.eval_episodes, MAX_PARALLEL)
        batch = Collector.empty_batch(self.spec, episodes, 1)
        mask = batch["action_mask"][0] if "action_mask" in batch else None
        actor = self.algorithm.actor(self.algorithm.init(np.random.default_rng(0)))
        self._act_greedy(actor, batch["obs"][0], mask)

    def _begin_collecting(self) -> Collector:
        collector = Collector(self.engine, self.config.n_steps, self._act, self._restart_seed())
        if self._replay_actions is not None:
            self.writer.log("INFO", f"replaying {len(self._replay_actions)} steps to bring the environments back")
            collector.replay(self._replay_actions)
            self._replay_actions = None
        return collector

    def _restart_seed(self) -> int:
        return seed_for(self.config.seed, "environments", self.progress.restart_epoch)

    def _finished(self) -> bool:
        done = self.progress.env_steps >= self.config.max_env_steps
        solved = self.progress.solved and self.config.stop_when_solved
        return (done or solved) and self.progress.unwritten is None

    @property
    def written_epochs(self) -> int:
        """Epochs whose rows stay when a restored run goes on."""
        return self.progress.epoch - (self.progress.unwritten is not None)

    def _hyperparameters(self) -> dict[str, float]:
        """Scheduled values, as they stand in the middle of the rollout."""
        steps, total = self.progress.env_steps + self.config.rollout / 2, self.config.max_env_steps
        names = (*self.algorithm.scheduled, *self.learner.scheduled)
        in_force = ((name, value_at(getattr(self.config, name), steps, total)) for name in names)
        return {name: value for name, value in in_force if value is not None}

    def _update_epoch(self, collector: Collector, update: Future[Any]) -> None:
        """The environments' steps of an epoch, and what is learnt."""
        config, progress, hp = self.config, self.progress, self._hyperparameters()
        rng = generator(config.seed, "epoch", progress.epoch)
        epoch = self.learner.epoch(collector, update, rng, hp, progress.env_steps)
        batch = epoch.batch
        steps = int(batch["valid"].sum())
        progress.advance(steps, epoch.gradient_steps, epoch.ended)
        collector.keep_actions()
        signals = self._timed("record", self._signals)(batch)
        in_force = {f"train/hp/{name}": value for name, value in hp.items()}
        metrics = progress.metrics() | epoch.metrics | signals | in_force
        self._require_converging(metrics)
        for message in self.watch.check(metrics):
            self._warn(message)
        progress.unwritten = metrics | {
            "train/sys/fps": steps / (epoch.time_rollout + epoch.time_update),
            "train/sys/time_rollout": epoch.time_rollout,
            "train/sys/time_update": epoch.time_update,
            "train/sys/time_compile": self._compile_seconds,
            "train/sys/rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if progress.epoch % self._restart_every == 0:
            progress.restart_epoch = progress.epoch
            self.learner.cut_episodes()
            collector.restart(self._restart_seed())

    def _signals(self, batch: Batch) -> dict[str, float]:
        signals = data_signals(batch, self.spec.action, self.config.rescale_actions)
        if (self.progress.epoch - 1) % self._dynamics_every == 0:
            signals |= dynamics_signals(batch["obs"], batch["action"], batch["valid"], self.spec.action)
        return signals

    def _conclude_epoch(self, collector: Collector) -> None:
        """Evaluate if it is time to, and write the epoch's row. Stopped in between, the run takes it up here."""
        config, progress = self.config, self.progress
        metrics, begun = dict(progress.unwritten or {}), time.perf_counter()
        try:
            if self._evaluation_due():
                metrics |= self._timed("evaluate", self._evaluate)()
        except EvaluationStopped:
            return
        except EnvironmentFault:
            self.writer.metrics(metrics)  # the update was made: its row belongs to the checkpoint that follows
            raise
        now = time.perf_counter()
        metrics |= {
            "train/sys/fps_total": (progress.env_steps - self._begun_at_steps) / (now - self._begun),
            "train/sys/time_eval": now - begun,
        }
        self.writer.metrics(metrics)
        progress.unwritten = None
        self.emit("epoch", metrics=metrics)
        self._consult(metrics)
        if progress.epoch % self._checkpoint_every == 0:
            self._checkpoint([f"epoch={progress.epoch}", "last"], collector)
        elif now - self._saved >= self._save_every:
            self._checkpoint(["last"], collector)
        self.writer.heartbeat(env_steps=progress.env_steps, max_env_steps=config.max_env_steps, epoch=progress.epoch)

    def _consult(self, metrics: dict[str, float]) -> None:
        """What the row that was just written makes certain; a monitor that fails must not end a training."""
        if self._monitor is None:
            return
        try:
            found = self._monitor.observe(metrics)
        except Exception as error:
            self._monitor = None
            self._warn(f"diagnosis stopped watching: {type(error).__name__}: {error}")
            return
        for finding in found:
            self._warn(finding.message)
            if self._is_grave(finding.severity) and not self._finished():
                self._stopped_by = finding.cause

    def _is_grave(self, severity: str) -> bool:
        return self._stop_on is not None and _GRAVITY.index(severity) >= _GRAVITY.index(self._stop_on)

    def _require_converging(self, metrics: dict[str, float]) -> None:
        broken = [
            n
            for n in ("train/loss/total", "train/metrics/grad_norm/all", "train/metrics/param_checksum")
            if n in metrics and not np.isfinite(metrics[n])
        ]
        if broken:
            self.writer.metrics(metrics)
            raise DivergedError(
                f"training diverged at {self.progress.env_steps} env steps: {broken[0]} is {metrics[broken[0]]}; "
                "lower policy_lr, set max_grad_norm, or normalise observations and rewards"
            )

    def _evaluation_due(self) -> bool:
        progress, threshold = self.progress, self.config.reward_threshold
        since = progress.epoch - progress.last_eval_epoch
        if since >= self._eval_every or progress.env_steps >= self.config.max_env_steps:
            return True
        recent = progress.recent_mean(_RECENT)
        return (
            threshold is not None
            and recent is not None
            and recent >= threshold
            and since >= max(1, self._eval_every // 4)
        )

    def _evaluate(self) -> dict[str, float]:
        """Evaluate; keep the best; confirm a solution, or the final best, on episodes it was not chosen by."""
        progress, threshold = self.progress, self.config.reward_threshold
        evaluation = self._episodes("evaluation", self.learner.state)
        metrics = evaluation.metrics("val/roll")
        is_best = progress.best_eval is None or evaluation.mean > progress.best_eval
        if is_best:
            progress.best_eval = evaluation.mean
        if threshold is not None and evaluation.mean >= threshold and not progress.solved:
            confirmation = self._episodes("confirmation", self.learner.state)
            progress.solved = confirmation.mean >= threshold
            metrics |= confirmation.metrics("test/roll")
        if is_best:
            self._checkpoint(["best"])
        if progress.env_steps >= self.config.max_env_steps and not progress.solved:
            arrays, _ = Run(self.writer.path).read_checkpoint("best")
            final = self._episodes("final", from_arrays(self.learner.state, arrays, "best"))
            progress.solved = threshold is not None and final.mean >= threshold
            metrics |= final.metrics("test/roll")
        progress.last_eval_epoch = progress.epoch
        self.emit(
            "evaluated",
            ep_rew_mean=evaluation.mean,
            ep_len_mean=evaluation.length_mean,
            env_steps=progress.env_steps,
            best=is_best,
            solved=progress.solved,
        )
        return metrics

    def _episodes(self, purpose: str, state: Any) -> Evaluation:
        config, episodes, algorithm = self.config, self.config.eval_episodes, self.algorithm
        if self._eval_engine is None:
            self._eval_engine = make_engine(config, min(episodes, MAX_PARALLEL), evaluation=True)
        policy = Policy(
            config,
            self.spec,
            algorithm.actor(state),
            self._act,
            self._act_greedy,
            algorithm.draw_noise,
            self._hyperparameters(),
        )
        rng = None if config.eval_deterministic else generator(config.seed, f"{purpose}-noise", self.progress.epoch)
        seed = seed_for(config.seed, purpose, self.progress.epoch)
        act = lambda obs, mask: policy(obs, mask, rng)  # noqa: E731
        return run_episodes(self._eval_engine, act, episodes, seed, self._stop_requested)

    def _checkpoint(self, names: list[str], collector: Collector | None = None) -> None:
        """What a run goes on from holds the actions since the last restart, which lead its environments back to here,
        and the replay; the latter only under `last`, because it may be large. `best` is only ever used to act."""
        begun = time.perf_counter()
        arrays = to_arrays(self.learner.state)
        meta = {"progress": self.progress.to_meta(), "env_id": self.config.env_id, "algo_id": self.config.algo_id}
        actions = collector.actions_since_restart() if collector is not None else None
        resuming = self.learner.to_arrays() if collector is not None else {}
        arrays |= {_ACTIONS: actions} if actions is not None else {}
        replay = {name: array for name, array in resuming.items() if name.startswith(REPLAY)}
        arrays |= {name: array for name, array in resuming.items() if name not in replay}
        if replay:
            others = [name for name in names if name != "last"]
            if others:
                self.writer.checkpoint(others, arrays, meta)
            self.writer.checkpoint(["last"], arrays | replay, meta)
        else:
            self.writer.checkpoint(names, arrays, meta)
        self._saved = time.perf_counter()
        self._save_every = max(_SAVE_SECONDS, _SAVE_SHARE * (self._saved - begun))
        self.emit("checkpoint", names=names)

    def _warn(self, message: str) -> None:
        self.writer.log("WARNING", message)
        self.emit("warning", message=message)

    def close(self) -> None:
        """The environments of evaluations; those of training are the caller's."""
        if self._eval_engine is not None:
            self._eval_engine.close()
            self._eval_engine = None

    def _finish(self, collector: Collector, wants_report: bool) -> None:
        progress, writer, interrupted = self.progress, self.writer, not self._finished()
        self.close()
        self._checkpoint(["last"] if interrupted else [f"epoch={progress.epoch}", "last"], collector)
        status = "interrupted" if interrupted else "completed"
        if self._stopped_by:
            by = f"--stop-on {self._stop_on}: " if self._stop_on else ""
            writer.log("WARNING", f"stopped by {by}{self._stopped_by}")
        reached = "solved" if progress.solved else "threshold not reached"
        outcome = "done" if self.config.reward_threshold is None else reached
        writer.log("INFO", f"{status} at {progress.env_steps} env steps: {outcome}")
        writer.status(
            status,
            env_steps=progress.env_steps,
            epoch=progress.epoch,
            solved=progress.solved,
            stopped_by=self._stopped_by or None,
        )
        report: str | None = None
        try:
            report = str(write_report(writer.path)) if wants_report else None
        except Exception as error:  # the training is done and saved; its picture can be drawn again
            self._warn(f"no report: {type(error).__name__}: {error}; try again with gsolve report {writer.run_id}")
        self.emit("finished", status=status, summary=Run(writer.path).summary(), report=report)
