"""How experience becomes batches inside a compiled loop: pure functions of a feed's own state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from gymnasium_solver.algorithms.interface import Algorithm
from gymnasium_solver.config.schema import Config, OffPolicyConfig
from gymnasium_solver.data import ring
from gymnasium_solver.data.layout import window_size
from gymnasium_solver.envs.spec import EnvSpec
from gymnasium_solver.ops.scalars import Scalars
from gymnasium_solver.runs.checkpoints import new_array
from gymnasium_solver.train.checkpoint import REPLAY
from gymnasium_solver.train.parts import Arrays, Clock, Columns, Numbers
from gymnasium_solver.train.replay_feed import memory_note, random_rows, replay_layout, replay_metrics, use_accelerator
from gymnasium_solver.train.signals import estimate_signals

# A row of metrics costs the host about a millisecond: short rollouts share one.
_ROW_STEPS = 2048  # env steps that a row may span
_LEAST_ROWS = 40  # of a run, however short it is


class Taken(NamedTuple):
    """What a feed makes of a chunk of experience."""

    state: Any
    due: Array | bool  # whether there is a batch to learn from
    batch: Mapping[str, Array]
    inputs: dict[str, Array]  # further values of the update
    age: Array | float = 0.0  # of the batch, in env steps


class Made(NamedTuple):
    """What came of the chunks of a row, [chunks, …] each."""

    columns: dict[str, Any]  # obs without the last one, where the environments stand
    learnt: Any  # whether it led to an update
    metrics: Scalars
    outcome: Any  # what the feed keeps of the update's findings
    age: Any


class CompiledFeed(Protocol):
    scheduled: tuple[str, ...]
    notes: list[str]
    chunk: int  # steps of each environment before an update
    chunks: int  # of a row of metrics, at most
    epochs: int  # of the config, in a row of metrics of that many chunks
    row_length: int
    state: Any

    def random_rows(self, clock: Clock) -> int: ...

    def draws(self, rng: np.random.Generator, chunks: int) -> Any:
        """The randomness of batches, [chunks, …]."""
        ...

    def take(self, state: Any, columns: Mapping[str, Array], valid: Array, env_steps: Array, draws: Any) -> Taken:
        """`columns` [T, N, …]; `env_steps`: taken before them."""
        ...

    def findings(self, outcome: Any) -> Any:
        """What to keep of an update's outcome."""
        ...

    def learnt(self, state: Any, made: Made, columns: Columns, draws: Any) -> None:
        """A row of metrics is over, and this is the feed's state after it."""
        ...

    def sample(self) -> Mapping[str, Any]: ...
    def metrics(self) -> Numbers: ...
    def cut_episodes(self) -> None: ...
    def snapshot(self) -> Arrays: ...
    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray: ...
    def restore(self, arrays: Arrays) -> None: ...


def epochs_per_row(config: Config) -> int:
    """Rollouts that share a row of metrics; evaluations and checkpoints keep their distance in epochs."""
    most = min(_ROW_STEPS // config.rollout, config.max_env_steps // config.rollout // _LEAST_ROWS)
    between = math.gcd(config.eval_freq_epochs or 0, config.checkpoint_freq_epochs or 0)
    fits = (k for k in range(most, 1, -1) if between % k == 0)
    return next(fits, 1)


class CompiledRollouts:
    scheduled: tuple[str, ...] = ()
    state: Any = ()

    def __init__(self, config: Config, spec: EnvSpec, algorithm: Algorithm) -> None:
        self.notes: list[str] = []
        self.chunk = config.n_steps
        self.chunks = self.epochs = epochs_per_row(config)
        self.row_length = config.rollout * self.epochs
        self._metrics: Numbers = {}

    def random_rows(self, clock: Clock) -> int:
        return 0

    def draws(self, rng: np.random.Generator, chunks: int) -> Any:
        return ()

    def take(self, state: Any, columns: Mapping[str, Array], valid: Array, env_steps: Array, draws: Any) -> Taken:
        return Taken(state, True, columns, {})

    def findings(self, outcome: Any) -> Any:
        return outcome

    def learnt(self, state: Any, made: Made, columns: Columns, draws: Any) -> None:
        estimates = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), made.outcome)
        self._metrics = estimate_signals(estimates, columns["valid"])

    def sample(self) -> Mapping[str, Any]:
        raise AssertionError("algorithms that learn from rollouts report inside of their update")

    def metrics(self) -> Numbers:
        return self._metrics

    def cut_episodes(self) -> None:
        pass

    def snapshot(self) -> Arrays:
        return {}

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return new_array(name, shape, dtype)

    def restore(self, arrays: Arrays) -> None:
        pass


class CompiledReplay:
    scheduled: tuple[str, ...] = ("priority_beta",)

    def __init__(self, config: OffPolicyConfig, spec: EnvSpec, algorithm: Algorithm) -> None:
        self.config, self.layout = config, replay_layout(config, spec)
        self.notes = [memory_note(self.layout, use_accelerator(config, self.layout))]
        self.chunk, self.chunks, self.epochs = config.train_freq, config.n_steps // config.train_freq, 1
        self.row_length = config.rollout
        self.state: Any = ring.empty(self.layout)
        self._steps_per_update = algorithm.gradient_steps
        self._metrics: Numbers = {}
        self._minibatch = jax.jit(lambda state, draws: ring.minibatches(state, draws, self.layout)[0])
        self._cut = jax.jit(partial(ring.cut, layout=self.layout), donate_argnums=0)
        self._last: Any = None

    def random_rows(self, clock: Clock) -> int:
        return random_rows(self.config, clock)

    def draws(self, rng: np.random.Generator, chunks: int) -> Any:
        shape = (chunks, self.config.updates, self.config.batch_size)
        return rng.integers(0, 2**32, shape, dtype=np.uint32)

    def take(self, state: Any, columns: Mapping[str, Array], valid: Array, env_steps: Array, draws: Any) -> Taken:
        config = self.config
        state = ring.write(state, columns, valid, self.layout)
        taken = jnp.sum(valid)
        after = env_steps + taken
        filled = (after >= config.learning_starts) & (state.written * config.n_envs >= config.learning_starts)
        batch, age = ring.minibatches(state, draws, self.layout)
        due = filled & (taken > 0) & ring.can_sample(state, self.layout)
        interval = getattr(config, "target_update_interval", None)
        passed = jnp.array(False) if interval is None else after // interval > env_steps // interval
        return Taken(state, due, batch, {"sync_target": passed.astype(jnp.float32)}, age)

    def findings(self, outcome: Any) -> Any:
        return ()

    def learnt(self, state: Any, made: Made, columns: Columns, draws: Any) -> None:
        self.state, self._last = state, draws[-1, :1]
        self._metrics = replay_metrics(
            self.config,
            updates=int(made.learnt.sum()) * self._steps_per_update,
            env_steps=int(columns["valid"].sum()),
            reward_bound=float(state.reward_bound),
            age=float(made.age[made.learnt].mean()) if made.learnt.any() else None,
            size=window_size(int(state.written), self.layout),
        )

    def sample(self) -> Mapping[str, Any]:
        batch: Mapping[str, Any] = self._minibatch(self.state, self._last)
        return batch

    def metrics(self) -> Numbers:
        return self._metrics

    def cut_episodes(self) -> None:
        self.state = self._cut(self.state)

    def snapshot(self) -> Arrays:
        return {f"{REPLAY}{name}": array for name, array in ring.to_arrays(self.state, self.layout).items()}

    def place(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return new_array(name, shape, dtype)

    def restore(self, arrays: Arrays) -> None:
        stored = {name.removeprefix(REPLAY): array for name, array in arrays.items() if name.startswith(REPLAY)}
        if stored:
            self.state = ring.restored(stored, self.layout)
        else:
            self.notes.append("the checkpoint holds no replay: it fills anew before learning goes on")
