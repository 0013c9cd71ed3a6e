"""Stable-Baselines3 trains, and a run of ours is written as it goes:

    from gymnasium_solver.integrations.stable_baselines3 import GsolveCallback
    model.learn(100_000, callback=GsolveCallback(runs_dir="runs"))

Then `gsolve diagnose @last` works while it trains. Whatever the model logs is a row of metrics.csv; of on-policy
algorithms the rollout itself is measured too. Stable-Baselines3 is imported when GsolveCallback is.
"""

from __future__ import annotations

import atexit
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import find_card
from gymnasium_solver.config.parameter_names import SB3
from gymnasium_solver.errors import MissingExtraError
from gymnasium_solver.integrations.rollout_statistics import rollout_statistics
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.runs.foreign import names, recover
from gymnasium_solver.runs.foreign.settings_files import plain_values
from gymnasium_solver.runs.foreign.tables import as_number
from gymnasium_solver.runs.foreign.write import write_source
from gymnasium_solver.runs.reader import default_runs_dir
from gymnasium_solver.runs.writer import RunWriter


class LiveRun:
    """The run of one call of `learn`."""

    def __init__(self, model: Any, runs_dir: Path, env_id: str | None = None) -> None:
        self.algo_id = recover.algorithm_named(type(model).__name__)
        settings = model_settings(model)
        found, origin = recover.fields("sb3", self.algo_id, settings)
        env_id = env_id or _env_id(model)
        config = {**found, "env_id": env_id, "algo_id": self.algo_id, "reward_threshold": recover.threshold_of(env_id)}
        self.config, refused = recover.admissible({name: x for name, x in config.items() if x is not None})
        self.writer = RunWriter.create(runs_dir, self.config, command=[])
        origin = {ours: theirs for ours, theirs in origin.items() if ours in self.config}
        write_source(self.writer.path, "sb3", hyperparameters=plain_values(settings), fields=origin, missing=refused)
        name, steps = type(model).__name__, settings["_total_timesteps"]
        self.writer.log("INFO", f"{name} of Stable-Baselines3 trains for {steps} steps")
        self._passes = self._gradient_steps_a_pass()
        self._best = -np.inf
        self._pending: dict[str, float] = {}
        self.open = True
        self.beat(0)
        atexit.register(self.abandoned)

    def beat(self, env_steps: int) -> None:
        self.env_steps = env_steps
        self.writer.heartbeat(
            env_steps=env_steps,
            max_env_steps=self.config.get("max_env_steps"),
            threshold=self.config.get("reward_threshold"),
        )

    def rollout(self, buffer: Any) -> None:
        """Statistics of a rollout, for the next row."""
        self._pending |= rollout_statistics(buffer)

    def episodes(self, returns: list[float]) -> None:
        if returns:
            self._best = max(self._best, *returns)
            self._pending |= {"train/roll/ep_rew_last": returns[-1], "train/roll/ep_rew_best": self._best}

    def row(self, logged: Mapping[str, Any], env_steps: int) -> None:
        """What the logger dumps, in our names; other numbers as foreign/…"""
        row: dict[str, float] = {ENV_STEPS.column: env_steps, **self._pending}
        self._pending = {}
        for name, value in logged.items():
            number = as_number(value.item() if getattr(value, "size", 0) == 1 else value)
            if number is None or name in names.STEPS["sb3"]:
                continue
            targets = names.targets("sb3", self.algo_id, name)
            row |= {to.name: number * to.factor for to in targets} if targets else {f"foreign/{name}": number}
        if self._passes and (passes := row.pop(names.UPDATES, None)) is not None:
            row[names.UPDATES] = passes * self._passes
        absent = {name for name in (names.EXPLAINED, names.REWARD) if row.get(name) != row.get(name)}
        self.writer.metrics({_column(name): value for name, value in row.items() if name not in absent})
        self.beat(env_steps)

    def finish(self, status: str, env_steps: int, error: str | None = None) -> None:
        if self.open:
            self.open = False
            atexit.unregister(self.abandoned)
            self.writer.status(status, env_steps=env_steps, **({"error": error} if error else {}))
            self.writer.close()

    def abandoned(self) -> None:
        """`learn` did not come to its end and the program is over."""
        failure = getattr(sys, "last_value", None)
        if failure is None or isinstance(failure, KeyboardInterrupt):
            self.finish("interrupted", self.env_steps)
            return
        self.writer.log("ERROR", "".join(traceback.format_exception(failure)))
        self.finish("failed", self.env_steps, f"{type(failure).__name__}: {failure}")

    def _gradient_steps_a_pass(self) -> int | None:
        """PPO's n_updates counts passes over the rollout; the others count gradient steps."""
        card = find_card(self.algo_id)
        if card is None or not card.splits_rollouts:
            return None
        n_envs, n_steps, batch = (self.config.get(name) for name in ("n_envs", "n_steps", "batch_size"))
        known = all(isinstance(x, int) and x > 0 for x in (n_envs, n_steps, batch))
        return -(-n_envs * n_steps // batch) if known else None  # type: ignore[operator]


def model_settings(model: Any) -> dict[str, Any]:
    """The model's parameters as plain values, schedules as their start and end."""
    settings: dict[str, Any] = {}
    for theirs in (name for their_names in SB3.values() for name in their_names):
        value: Any = getattr(model, theirs, None)
        if callable(value):
            value = _schedule(value)
        elif hasattr(value, "frequency"):  # TrainFreq
            value = value.frequency if getattr(value.unit, "value", "") == "step" else None
        if value is not None and isinstance(value, bool | int | float | str | dict):
            settings[theirs] = value
    settings.setdefault("_total_timesteps", None)
    for name in ("gradient_steps", "exploration_initial_eps", "exploration_final_eps", "exploration_fraction"):
        if getattr(model, name, None) is not None:
            settings[name] = getattr(model, name)
    kwargs = getattr(model, "policy_kwargs", None) or {}
    arch = kwargs.get("net_arch")
    settings["policy_kwargs/net_arch"] = arch.get("pi") if isinstance(arch, dict) else arch
    if "activation_fn" in kwargs:
        settings["policy_kwargs/activation_fn"] = str(kwargs["activation_fn"])
    if arch is None:
        settings.pop("policy_kwargs/net_arch")
        settings["policy_class/__module__"] = str(getattr(getattr(model, "policy_class", None), "__module__", ""))
    env = model.get_env()
    while env is not None:
        if hasattr(env, "norm_obs"):
            settings |= {"norm_obs": env.norm_obs, "norm_reward": env.norm_reward}
        env = getattr(env, "venv", None)
    return settings


def _schedule(function: Any) -> Any:
    """A function of what is left of training, if it is constant or a line."""
    try:
        start, middle, end = (float(function(left)) for left in (1.0, 0.5, 0.0))
    except Exception:  # anybody's function
        return None
    if start == middle == end:
        return start
    return {"start": start, "end": end, "schedule": "linear"} if abs(start + end - 2 * middle) < 1e-9 else None


def _env_id(model: Any) -> str | None:
    try:
        return str(model.get_env().get_attr("spec")[0].id)
    except Exception:  # an environment that is not registered has no spec
        return None


def _column(name: str) -> str:
    return "".join("_" if character in ',"\r\n' else character for character in name)


@cache
def _make_callback() -> type:
    try:
        callbacks = import_module("stable_baselines3.common.callbacks")
        logger = import_module("stable_baselines3.common.logger")
    except ImportError as error:
        raise MissingExtraError("GsolveCallback", "sb3") from error

    class Rows(logger.KVWriter):  # type: ignore[name-defined]
        """One more output of the model's logger."""

        def __init__(self, callback: Any) -> None:
            self.callback = callback

        def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
            self.callback.dumped(key_values, step)

        def close(self) -> None:
            pass

    class GsolveCallback(callbacks.BaseCallback):  # type: ignore[name-defined]
        """Writes a run directory of gymnasium-solver while Stable-Baselines3 trains."""

        def __init__(self, runs_dir: str | Path | None = None, env_id: str | None = None, verbose: int = 0) -> None:
            super().__init__(verbose)
            self.runs_dir = default_runs_dir(None if runs_dir is None else Path(runs_dir))
            self.env_id = env_id
            self.run: LiveRun | None = None
            self._rows = Rows(self)

        def _on_training_start(self) -> None:
            self.run = LiveRun(self.model, self.runs_dir, self.env_id)
            if self._rows not in self.logger.output_formats:
                self.logger.output_formats.append(self._rows)

        def _on_step(self) -> bool:
            if self.run is not None:
                self.run.beat(self.num_timesteps)
            return True

        def _on_rollout_end(self) -> None:
            buffer = getattr(self.model, "rollout_buffer", None)
            if self.run is not None and buffer is not None:
                self.run.rollout(buffer)

        def dumped(self, logged: dict[str, Any], step: int) -> None:
            if self.run is not None and self.run.open:
                self.run.episodes([float(episode["r"]) for episode in self.model.ep_info_buffer or ()])
                self.run.row(logged, step)

        def _on_training_end(self) -> None:
            if self.run is not None:
                if self.logger.name_to_value:  # of the last update
                    self.run.row(self.logger.name_to_value, self.num_timesteps)
                self.run.finish("completed", self.num_timesteps)
            if self._rows in self.logger.output_formats:
                self.logger.output_formats.remove(self._rows)

    return GsolveCallback


def __getattr__(name: str) -> Any:
    """The class exists once it is asked for: its base is Stable-Baselines3's."""
    if name == "GsolveCallback":
        return _make_callback()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
