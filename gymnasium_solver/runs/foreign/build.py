"""From the logs of another library to the columns and fields of a run of ours."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gymnasium_solver.config.cards import find_card
from gymnasium_solver.config.cards import names as algorithms
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.metrics.catalogue import METRICS, is_catalogued
from gymnasium_solver.metrics.clocks import ENV_STEPS
from gymnasium_solver.runs.foreign import names, recover
from gymnasium_solver.runs.foreign.locate import Files, locate
from gymnasium_solver.runs.foreign.logs import Logs, environment_named, read_logs, recognise
from gymnasium_solver.runs.foreign.series import (
    Series,
    best_so_far,
    count_so_far,
    last_step,
    rolling_mean,
    within_reason,
)

FOREIGN = "foreign/"
EXPECTED_FIELDS = ("policy_lr", "gamma", "n_envs", "max_env_steps", "hidden_dims", "seed")
EXPECTED_FIELDS_OF = {
    "ppo": ("n_steps", "batch_size", "n_epochs", "clip_range", "ent_coef", "gae_lambda"),
    "a2c": ("n_steps", "ent_coef"),
    "dqn": ("batch_size", "buffer_size", "learning_starts", "target_update_interval", "epsilon"),
    "sac": ("batch_size", "buffer_size", "learning_starts", "tau", "update_to_data"),
    "td3": ("batch_size", "buffer_size", "learning_starts", "tau", "update_to_data"),
    "ddpg": ("batch_size", "buffer_size", "learning_starts", "tau", "update_to_data"),
}
NEARLY = 0.95  # of the steps that were asked for: loggers are silent for a while before the end


@dataclass
class Foreign:
    """A run of another library in our names. `mapped`, `fields`: ours → theirs; `missing`: what a diagnosis lacks."""

    library: str
    format: str
    path: Path
    files: list[Path]
    columns: dict[str, Series]
    mapped: dict[str, str]
    unmapped: list[str]
    config: dict[str, Any]
    fields: dict[str, str]
    hyperparameters: dict[str, Any]
    missing: list[str]
    notes: list[str]
    system: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    started: float | None = None
    seconds: float | None = None

    @property
    def env_steps(self) -> int:
        return int(last_step(self.columns))

    @property
    def reached_its_end(self) -> bool:
        wanted = self.config.get("max_env_steps")
        return not isinstance(wanted, int | float) or self.env_steps >= NEARLY * wanted


def read_foreign(
    path: str | Path,
    source: str | None = None,
    mapping: Mapping[str, str] | None = None,
    env_id: str | None = None,
    algo_id: str | None = None,
) -> Foreign:
    """Read a run of another library without writing anything; `mapping` is {our metric: their column}."""
    path = Path(path).expanduser()
    mapping = dict(mapping or {})
    _check_mapping(mapping)
    if algo_id is not None and find_card(algo_id) is None:
        raise ConfigError(f"--algo {algo_id!r} is not an algorithm; choose from {', '.join(algorithms())}")
    try:
        files = locate(path, source)
        logs = read_logs(files, source, mapping)
    except OSError as error:
        raise ConfigError(
            f"{error.filename or path} cannot be read: {error.strerror or error}; make it readable"
        ) from error
    if not logs.series and not logs.settings:
        raise ConfigError(f"{path} holds nothing that can be read: {'; '.join(logs.notes) or 'no values'}")
    unknown = [theirs for theirs in mapping.values() if theirs not in logs.series]
    if unknown and logs.series:
        near = difflib.get_close_matches(unknown[0], logs.series, 1, 0.4) or list(logs.series)
        raise ConfigError(f"--map: {path} has no column {unknown[0]!r}; the nearest is {near[0]!r}")
    library = recognise(logs, files, source)
    algo_id = algo_id or _algorithm(logs, files)
    columns, mapped, unmapped = _columns(library, algo_id, logs, mapping)
    columns, unmapped = _bearable(columns, mapped, unmapped, logs.notes)
    config, fields = _config(library, algo_id, logs, files, columns, env_id)
    config, refused = recover.admissible(config)
    _count_gradient_steps(library, config, columns, mapped, unmapped)
    missing = [f"metrics: {name}" for name in names.EXPECTED.get(algo_id or "", (names.REWARD,)) if name not in columns]
    missing += [f"config: {name}" for name in ("env_id", "algo_id") if not config.get(name)]
    wanted = (*EXPECTED_FIELDS, *EXPECTED_FIELDS_OF.get(algo_id or "", ()))
    missing += [f"config: {name}" for name in wanted if name not in config]
    return Foreign(
        library=library,
        format=logs.format or "settings",
        path=path.resolve(),
        files=files.all(),
        columns=columns,
        mapped=mapped,
        unmapped=unmapped,
        config=config,
        fields={ours: theirs for ours, theirs in fields.items() if ours in config},
        hyperparameters=logs.settings,
        missing=missing + refused,
        notes=logs.notes,
        system=logs.system,
        error=logs.error,
        started=logs.started,
        seconds=logs.seconds,
    )


def _check_mapping(mapping: Mapping[str, str]) -> None:
    for ours in mapping:
        if not is_catalogued(ours):
            known = [metric.name for metric in METRICS]
            by_end = [name for name in known if name.endswith(f"/{ours}")]
            near = (by_end or difflib.get_close_matches(ours, known, 1, 0.3) or [names.REWARD])[0]
            raise ConfigError(f"--map: {ours!r} is not a metric of ours; did you mean {near!r}")


def _algorithm(logs: Logs, files: Files) -> str | None:
    named = recover.algorithm_named(logs.settings.get("algo"), logs.settings.get("exp_name"))
    seen = recover.algorithm_seen(logs.settings, logs.series)
    return named or seen or recover.algorithm_named(files.root.name, files.root.parent.name)


def _columns(
    library: str, algo_id: str | None, logs: Logs, mapping: Mapping[str, str]
) -> tuple[dict[str, Series], dict[str, str], list[str]]:
    columns: dict[str, Series] = {}
    mapped: dict[str, str] = {}
    unmapped: list[str] = []

    def put(ours: str, series: Series, theirs: str) -> bool:
        if ours in columns or not len(series):
            return False
        columns[ours], mapped[ours] = series, theirs
        return True

    for ours, theirs in mapping.items():
        if theirs in logs.series:
            put(ours, logs.series[theirs], theirs)
    end = max((float(x.steps.max()) for name, x in logs.series.items() if not name.startswith("eval/")), default=0.0)
    # Means that the library made come before those made here from its episodes.
    wanted = {name: names.targets(library, algo_id, name) for name in logs.series if name not in mapping.values()}
    for name in sorted(wanted, key=lambda name: any(to.kind != "values" for to in wanted[name])):
        series = logs.series[name]
        targets = wanted[name] or ((names.To(name),) if is_catalogued(name) else ())
        taken = [x for to in targets for x in _put_target(to, series, name, end, put)]
        if not any(taken) and not _is_axis(library, name) and not name.startswith("monitor/"):
            unmapped.append(name)
            columns[_column_name(name)] = series
    return columns, mapped, sorted(unmapped)


def _bearable(
    columns: Mapping[str, Series], mapped: Mapping[str, str], unmapped: list[str], notes: list[str]
) -> tuple[dict[str, Series], list[str]]:
    """Those with a name of ours come first; of the others, as many as make a table that can be written and read."""
    ours_first = sorted(columns, key=lambda name: name not in mapped)
    kept = within_reason({name: columns[name] for name in ours_first})
    if len(kept) < len(columns):
        notes.append(f"{len(columns) - len(kept)} of {len(columns)} columns were left out: together they are too large")
    return {name: columns[name] for name in columns if name in kept}, [
        name for name in unmapped if _column_name(name) in kept
    ]


def _put_target(to: names.To, series: Series, theirs: str, end: float, put: Any) -> list[bool]:
    if to.kind == "values":
        return [put(to.name, series.scaled(to.factor), theirs)]
    if to.kind == "lengths":
        return [put(names.LENGTH, rolling_mean(series), theirs)]
    if to.kind == "test":
        returns, step = series.finite().values, np.array([end])
        if not returns.size:
            return [False]
        return [
            put("test/roll/ep_rew_mean", Series(step, np.array([returns.mean()])), theirs),
            put("test/roll/ep_rew_std", Series(step, np.array([returns.std()])), theirs),
            put("test/roll/episodes", Series(step, np.array([float(returns.size)])), theirs),
        ]
    return [
        put(names.REWARD, rolling_mean(series), theirs),
        put("train/roll/ep_rew_last", series.finite().in_order(), theirs),
        put("train/roll/ep_rew_best", best_so_far(series), theirs),
        put(names.EPISODES, count_so_far(series), theirs),
    ]


def _is_axis(library: str, name: str) -> bool:
    axes = names.STEPS.get(library, ())
    return name in axes or name == ENV_STEPS.column or (not axes and names.common_name(name) in names.COMMON_STEPS)


def _column_name(theirs: str) -> str:
    return FOREIGN + re.sub(r'[,"\r\n\x00]', "_", theirs)


def _config(
    library: str, algo_id: str | None, logs: Logs, files: Files, columns: Mapping[str, Series], env_id: str | None
) -> tuple[dict[str, Any], dict[str, str]]:
    found, origin = recover.fields(library, algo_id, logs.settings)
    found.pop("env_id", None)
    steps = found.get("max_env_steps") or last_step(columns)
    for ours, column in (("policy_lr", names.LEARNING_RATE), ("clip_range", "train/hp/clip_range")):
        if ours not in found and column in columns:
            value = recover.schedule_of(columns[column].shifted(-_logged_late(library, algo_id, found)), steps)
            if value is not None:
                found[ours], origin[ours] = value, f"the curve of {column}"
    counted = columns.get(names.UPDATES)
    if recover.is_off_policy(algo_id) and "update_to_data" not in found and counted and len(counted) > 2:
        made, over = np.ptp(counted.values), np.ptp(counted.steps)
        if made > 0 and over > 0:
            found["update_to_data"] = float(f"{made / over:.2g}")
            origin["update_to_data"] = f"the curve of {names.UPDATES}"
    env_id = env_id or environment_named(files, logs.settings)
    threshold = recover.threshold_of(env_id)
    config = {"env_id": env_id, "algo_id": algo_id, **found}
    if threshold is not None:
        config["reward_threshold"] = threshold
    return config, origin


def _logged_late(library: str, algo_id: str | None, config: Mapping[str, Any]) -> float:
    """Stable-Baselines3 writes its row before the update: what is in it about updates is of the rollout before."""
    n_envs, n_steps = config.get("n_envs"), config.get("n_steps")
    on_policy = library == "sb3" and algo_id in ("ppo", "a2c")
    return float(n_envs * n_steps) if on_policy and isinstance(n_envs, int) and isinstance(n_steps, int) else 0.0


def _count_gradient_steps(
    library: str, config: Mapping[str, Any], columns: dict[str, Series], mapped: dict[str, str], unmapped: list[str]
) -> None:
    """Stable-Baselines3's PPO counts passes over the rollout, not gradient steps."""
    if library != "sb3" or config.get("algo_id") != "ppo" or names.UPDATES not in columns:
        return
    passes, theirs = columns.pop(names.UPDATES), mapped.pop(names.UPDATES)
    n_envs, n_steps, batch = (config.get(name) for name in ("n_envs", "n_steps", "batch_size"))
    if isinstance(n_envs, int) and isinstance(n_steps, int) and isinstance(batch, int) and batch > 0:
        columns[names.UPDATES] = passes.scaled(float(-(-n_envs * n_steps // batch)))
        mapped[names.UPDATES] = theirs
    else:
        columns[_column_name(theirs)] = passes
        unmapped.append(theirs)
