"""Configurations as the front ends ask for them and show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gymnasium_solver.api.lookup import require_name

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config


def resolved(ref: str, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Config:
    """Of `ENV:VARIANT`, checked."""
    from gymnasium_solver.config.load import load_config

    require_name(ref)
    return load_config(ref, overrides)


def as_document(config: Config) -> dict[str, Any]:
    """Every field in `config`, and the same as `yaml`."""
    from gymnasium_solver.config.load import dump_yaml, to_dict

    return {"config": to_dict(config), "yaml": dump_yaml(config)}


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
