"""Where a sweep is kept and who searches: Optuna's storages, samplers and pruners."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gymnasium_solver.errors import ConfigError, MissingExtraError, SolverError, writing

SAMPLERS = ("tpe", "random", "cmaes", "qmc", "grid")
PRUNERS = ("median", "hyperband", "none")
POINTS = 10  # of a training's budget, at which a trial is compared with others


def require_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("gsolve sweep", "search") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


def require_known(sampler: str, pruner: str) -> None:
    for option, value, known in (("sampler", sampler, SAMPLERS), ("pruner", pruner, PRUNERS)):
        if value not in known:
            raise ConfigError(f"--{option} {value!r} is not one of {', '.join(known)}")


def make_sampler(name: str, seed: int | None) -> Any:
    from optuna import samplers

    if name == "cmaes":
        if find_spec("cmaes") is None:
            raise MissingExtraError("--sampler cmaes", "search")
        return samplers.CmaEsSampler(seed=seed)
    if name == "tpe":
        return samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
    # A grid is a queue of all its points: nothing is drawn beside them.
    return samplers.QMCSampler(seed=seed) if name == "qmc" else samplers.RandomSampler(seed=seed)


def make_pruner(name: str, seeds: int) -> Any:
    from optuna import pruners

    if name == "median":
        return pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=POINTS // 5)
    if name == "hyperband":
        return pruners.HyperbandPruner(min_resource=POINTS // 5, max_resource=POINTS * seeds)
    return pruners.NopPruner()


def open_storage(optuna: Any, storage: str | None, directory: Path) -> Any:
    if storage is not None:
        return storage
    from sqlalchemy import event

    make_directory(directory)
    patience = {"connect_args": {"timeout": 60}}  # several processes may search one study
    opened = optuna.storages.RDBStorage(f"sqlite:///{directory.resolve() / 'study.db'}", engine_kwargs=patience)

    @event.listens_for(opened.engine, "connect")
    def _(connection: Any, _: Any) -> None:
        # Five times as fast; a kill loses nothing, a power failure the last moments.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    opened.engine.dispose()  # connections made before this
    return opened


@contextlib.contextmanager
def reaching(storage: str) -> Iterator[None]:
    """Errors of the storage, whatever is behind it, in one sentence."""
    try:
        yield
    except (SolverError, KeyboardInterrupt):
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(
            f"the storage {without_password(storage)} cannot be used ({reason}); check the address, and whether its "
            "driver is installed"
        ) from None


def make_directory(path: Path) -> None:
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)


def without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    return f"{scheme}{separator}{login.partition(':')[0]}:…@{place}" if at and ":" in login else url
