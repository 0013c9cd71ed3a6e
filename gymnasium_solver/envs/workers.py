"""Slow environments in worker processes, one per core, each with a slice of them; results through shared memory."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from gymnasium_solver import trust
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs.actions import action_codec
from gymnasium_solver.envs.build import build_env
from gymnasium_solver.envs.engine import Step, allocate_step, environment_seeds, step_nbytes
from gymnasium_solver.envs.local import LocalEnvs
from gymnasium_solver.envs.observations import observation_codec
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.errors import EnvironmentFault, SolverError
from gymnasium_solver.processes import cores

SECONDS_TO_CLOSE = 5.0


def available_cores() -> int:
    """Cores this process may use, which in a container or under taskset are fewer than the machine has."""
    return len(cores()) or os.cpu_count() or 1


class AsyncEngine:
    """The same streams as the in-process engine, bit for bit: workers only hold other slices of the rows."""

    def __init__(self, config: Config, spec: EnvSpec, n_envs: int, n_workers: int | None = None) -> None:
        self.spec = spec
        self.n_envs = n_envs
        # Never fork: the parent holds JAX's threads, whose locks a forked child would inherit locked.
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            context.set_forkserver_preload([__name__])
        memory = context.RawArray("B", step_nbytes(spec, n_envs))
        self._out = allocate_step(spec, n_envs, memoryview(memory))
        bounds = np.linspace(0, n_envs, min(n_envs, n_workers or available_cores()) + 1).astype(int)
        self._slices = [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for rows in self._slices:
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, memory, config, spec, n_envs, rows), daemon=True)
            process.start()
            theirs.close()  # so that the death of the worker reads as the end of the pipe
            self._pipes.append(ours)
            self._processes.append(process)

    def reset(self, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        seeds = environment_seeds(seed, self.n_envs)
        self._ask("reset", [seeds[rows] for rows in self._slices])
        return self._out.obs, self._out.action_mask

    def step(self, action: np.ndarray) -> Step:
        self._ask("step", [action[rows] for rows in self._slices])
        return self._out

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()  # the workers take the end of the pipe as the end of their work
        for process in self._processes:
            process.join(SECONDS_TO_CLOSE)
            if process.is_alive():
                process.kill()
                process.join()
        self._pipes, self._processes = [], []

    def _ask(self, call: str, arguments: list[Any]) -> None:
        """Let all workers work at once, wait for all of them, then raise the first fault."""
        faults = []
        for number, argument in enumerate(arguments):
            with contextlib.suppress(OSError):  # dead: reported below, where its answer is missing
                self._pipes[number].send((call, argument))
        for number in range(len(arguments)):
            try:
                fault = self._pipes[number].recv()
            except (EOFError, OSError):
                fault = self._death(number)
            if fault is not None:
                faults.append(fault)
        if faults:
            raise faults[0]

    def _death(self, number: int) -> EnvironmentFault:
        rows, process = self._slices[number], self._processes[number]
        process.join(SECONDS_TO_CLOSE)
        return EnvironmentFault(
            f"environment {self.spec.env_id} (numbers {rows.start} to {rows.stop - 1}): its worker process died with "
            f"exit code {process.exitcode}; out of memory, or a crash in native code (vectorization: sync shows where)"
        )


def _work(pipe: Connection, memory: Any, config: Config, spec: EnvSpec, n_envs: int, rows: slice) -> None:
    # What the trainer has made one of, it may make: the gate of this process knows nothing of the trainer's.
    trust.allow(trust.names_in(config.model_dump()))
    # Ctrl-C and a SIGTERM to the group are for the trainer: it finishes its update, then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    step = allocate_step(spec, n_envs, memoryview(memory))
    out = Step(*(None if array is None else array[rows] for array in step))  # type: ignore[arg-type]
    envs: LocalEnvs | None = None
    while True:
        try:
            call, argument = pipe.recv()
        except (EOFError, OSError):
            break
        fault: SolverError | None = None
        try:
            if envs is None:
                envs = _local_envs(config, spec, out, rows.start)
            getattr(envs, call)(argument)
        except SolverError as error:
            fault = error
        try:
            pipe.send(fault)
        except OSError:
            break
    if envs is not None:
        envs.close()


def _local_envs(config: Config, spec: EnvSpec, out: Step, first: int) -> LocalEnvs:
    sample = build_env(config)
    observations = observation_codec(sample.observation_space, spec.env_id)
    actions = action_codec(sample.action_space, config.rescale_actions, spec.env_id)
    sample.close()
    return LocalEnvs(partial(build_env, config), spec.env_id, observations, actions, out, first)
