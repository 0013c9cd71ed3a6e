"""Configurations as the front ends ask for them and show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.lookup import load_run, require_name
from gymnasium_solver.errors import NotFoundError

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config


def resolved(ref: str, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Config:
    """Of `ENV:VARIANT`, checked."""
    from gymnasium_solver.config.load import load_config

    require_name(ref)
    return load_config(ref, overrides, asked=True)


def of_run(ref: str, overrides: Sequence[str] = (), runs_dir: Path | None = None) -> dict[str, Any] | None:
    """What a run was trained with; None where the name is no run's."""
    from gymnasium_solver.config.load import build_config, to_dict, with_overrides

    if ":" in ref:
        return None
    try:
        run = load_run(ref, runs_dir=runs_dir)
    except NotFoundError:
        if ref.startswith("@"):
            raise
        return None
    return to_dict(build_config(with_overrides(run.config, overrides), run.run_id)) if overrides else run.config


def as_document(config: Config | dict[str, Any]) -> dict[str, Any]:
    """Every field in `config`, and the same as `yaml`."""
    from gymnasium_solver.config.load import dump_yaml, to_dict

    return {"config": config if isinstance(config, dict) else to_dict(config), "yaml": dump_yaml(config)}


def described(ref: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Every field: its value, where that comes from, the file if one says it, what it means, whether it is fixed."""
    from gymnasium_solver.config.origins import described_config

    return dict(described_config(ref, overrides, asked=True))


def shown_file(file: Path | None) -> str:
    """One that is shipped by its name alone."""
    from gymnasium_solver.config.load import SHIPPED

    return "" if file is None else file.name if file.parent == SHIPPED else str(file)


def listing(filter: str = "") -> tuple[list[tuple[str, str, Path]], dict[Path, str]]:
    """What can be trained: (env_id, variant, file); and files that cannot be read, with what is wrong with each."""
    from gymnasium_solver.config.load import listing

    return listing(filter)


def algorithms() -> list[str]:
    """Whatever their environment, there are defaults for these."""
    from gymnasium_solver.config.cards import names

    return list(names())


def requires_import(config_id: str) -> bool:
    """Whether resolving `ENV:VARIANT` would import a module of the user's, and so run code: an environment written
    `module:Class` that no file configures. A process that serves others leaves that to the one that trains."""
    from gymnasium_solver.config.load import shipped

    env_id, _, variant = config_id.rpartition(":")
    return ":" in env_id and (env_id, variant) not in {(known, name) for known, name, _ in shipped()}
