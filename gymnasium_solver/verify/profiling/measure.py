"""A short training with a clock around its parts: what each of them took."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.config.load import build_config, to_dict
from gymnasium_solver.config.schema import Config, OffPolicyConfig, OnPolicyConfig
from gymnasium_solver.envs import make_engine
from gymnasium_solver.metrics.clocks import UPDATES
from gymnasium_solver.runs.writer import RunWriter
from gymnasium_solver.verify.profiling.clock import Clock, Watched
from gymnasium_solver.verify.profiling.instruments import Instruments

if TYPE_CHECKING:
    from gymnasium_solver.verify.profiling.work import Peak

Row = Mapping[str, float]

LEAST_ROWS = 3
EVALUATION_GRACE = 2.0  # times the seconds, for an evaluation that began within them
NEVER = 1_000_000_000


class Enough(Exception):
    """The training has shown what it was to show."""


@dataclass(frozen=True)
class Work:
    peak: Peak
    update_flops: float  # of a gradient step
    act_flops: float  # of an env step
    call_seconds: Mapping[str, float]  # of a call that does nothing, for each kind of call
    parts_add_up_to: float | None  # of a row, where parts of it were measured alone


@dataclass(frozen=True)
class Measured:
    clock: Clock
    engine: str
    seconds: float
    env_steps: int
    epochs: int
    gradient_steps: int
    cpu_seconds: float
    peak_memory_mb: float
    device_memory_mb: float | None
    eval_every: int
    work: Work
    evaluation: tuple[float, bool] | None  # where none was due: seconds of one, and whether it was let finish

    @property
    def vector_step_seconds(self) -> float:
        path = ("run", "epoch", "step")
        return self.clock.seconds[path] / max(1, self.clock.calls[path])


def lasting(config: Config, **changes: Any) -> Config:
    """The config, to be trained for as long as is wanted: it neither ends nor is solved, and evaluates and saves as
    often as it would. Steps before the first update are cut: they are a short part of a real training."""
    from gymnasium_solver.train.compiled_feeds import epochs_per_row

    shared = epochs_per_row(config) if isinstance(config, OnPolicyConfig) else 1
    rows = max(1, config.max_env_steps // config.rollout // shared)
    fields = {
        "max_env_steps": NEVER,
        "reward_threshold": float(NEVER),
        "eval_freq_epochs": config.eval_freq_epochs or max(1, rows // 20) * shared,
        "checkpoint_freq_epochs": config.checkpoint_freq_epochs or max(1, rows // 10) * shared,
    }
    if isinstance(config, OffPolicyConfig):
        fields["learning_starts"] = learning_starts(config)
    return build_config({**to_dict(config), **fields, **changes}, config.env_id)


def learning_starts(config: OffPolicyConfig) -> int:
    return min(config.learning_starts, max(config.batch_size, config.rollout))


def run_until(
    config: Config, directory: Path, on_row: Callable[[Row], None], is_enough: Callable[[], bool],
    instruments: Instruments | None = None,
) -> Any:  # fmt: skip
    """Train until it is enough, asked after every row and within evaluations. Returns the loop."""
    from gymnasium_solver.envs.compiled.engine import CompiledEngine
    from gymnasium_solver.train.learner import untimed
    from gymnasium_solver.train.loop import Loop

    def emit(kind: str, **data: Any) -> None:
        if kind == "epoch":
            on_row(data["metrics"])

    def ask() -> bool:
        if is_enough():
            raise Enough  # past the last checkpoint and report, which nobody reads
        return False

    engine: Any = make_engine(config, config.n_envs)
    try:
        watched = engine
        if instruments is not None and not isinstance(engine, CompiledEngine):  # that one is inside the row's program
            watched = Watched(engine, "step", instruments.clock)
        loop = Loop(config, engine.spec, watched, timed=untimed if instruments is None else instruments.timed)
        record = RunWriter.create(
            directory, to_dict(loop.config), command=["gsolve", "profile"], spaces=engine.spec.describe()
        )
        writer: Any = record
        try:
            if instruments is None:
                loop.run(writer, emit, ask, is_resume=False)
            else:
                writer = Watched(record, "write", instruments.clock)
                loop.learner = instruments.learner(loop.learner)
                with instruments.clock.told_of_compilations():
                    instruments.clock.call("run", lambda: loop.run(writer, emit, ask, is_resume=False))
        except Enough:
            pass
        finally:
            loop.close()
            record.close()
        return loop
    finally:
        engine.close()


def measure(config: Config, directory: Path, seconds: float) -> Measured:
    instruments = Instruments()
    clock = instruments.clock
    learnt: list[float] = []  # when rows that were learnt from ended; the first has waited for the compiler

    def on_row(metrics: Row) -> None:
        if metrics[UPDATES.column] > 0:
            learnt.append(time.perf_counter())

    def is_enough() -> bool:
        most = EVALUATION_GRACE * seconds if "evaluate" in clock.path else seconds
        return len(learnt) >= LEAST_ROWS and time.perf_counter() - learnt[0] > most

    cpu_begun = time.process_time()
    loop = run_until(lasting(config), directory, on_row, is_enough, instruments)
    cpu_seconds = time.process_time() - cpu_begun
    wall = sum(clock.seconds.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    instruments.settle_transfers()
    evaluation = None if ("run", "evaluate") in clock.calls else _one_evaluation(loop, seconds / 2)
    return Measured(
        clock=clock,
        engine=loop.spec.engine,
        seconds=wall,
        env_steps=loop.progress.env_steps,
        epochs=loop.progress.epoch,
        gradient_steps=loop.progress.updates,
        cpu_seconds=cpu_seconds,
        peak_memory_mb=peak,
        device_memory_mb=_device_memory_mb(),
        eval_every=loop.config.eval_freq_epochs,
        work=_work(loop, instruments, seconds / 2),
        evaluation=evaluation,
    )


def _work(loop: Any, instruments: Instruments, most: float) -> Work:
    """Divides the rows of the compiled engine into their parts, too."""
    from gymnasium_solver.envs.compiled.engine import CompiledEngine
    from gymnasium_solver.verify.profiling import parts, work

    learner, adds_up = loop.learner, None
    act_flops = work.flops_of_acting(learner)
    if isinstance(loop.engine, CompiledEngine):
        standing, drawn, _ = instruments.inputs["update"]
        alone = parts.measure_alone(learner, loop.engine, standing, drawn, most)
        update_flops, adds_up = alone.update_flops, parts.apportion(instruments.clock, alone.seconds)
    else:
        update_flops = work.flops_of_update(learner)
    return Work(
        peak=work.peak(),
        update_flops=update_flops / learner.algorithm.gradient_steps,
        act_flops=act_flops,
        call_seconds=instruments.call_seconds,
        parts_add_up_to=adds_up,
    )


def _one_evaluation(loop: Any, most: float) -> tuple[float, bool]:
    import jax

    from gymnasium_solver.train.judge import MAX_PARALLEL, EvaluationStopped, run_episodes
    from gymnasium_solver.train.policy import Policy

    config, algorithm = loop.config, loop.learner.algorithm
    act, greedy = jax.jit(algorithm.act), jax.jit(algorithm.greedy)
    policy = Policy(config, loop.spec, loop.learner.actor, act, greedy, algorithm)
    engine = make_engine(config, min(config.eval_episodes, MAX_PARALLEL), evaluation=True)
    try:
        policy(*engine.reset(0))  # compiled before the clock runs
        begun = time.perf_counter()
        deadline = begun + most
        try:
            run_episodes(engine, policy.acting(None), config.eval_episodes, 0, lambda: time.perf_counter() > deadline)
        except EvaluationStopped:
            return most, False
        return time.perf_counter() - begun, True
    finally:
        engine.close()


def _device_memory_mb() -> float | None:
    """Of an accelerator; None where the device is the processor."""
    import jax

    statistics = jax.devices()[0].memory_stats()
    return statistics["peak_bytes_in_use"] / 2**20 if statistics and "peak_bytes_in_use" in statistics else None
