"""`gsolve config` and `gsolve envs`: what can be trained, and with which settings."""

from __future__ import annotations

from typing import Annotated

import typer

from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, Set


def register(app: typer.Typer) -> None:
    app.command()(config)
    app.command()(envs)


def config(
    ref: Annotated[str, typer.Argument(metavar="ENV:VARIANT", help="Which configuration, e.g. CartPole-v1:ppo.")],
    set_: Set = None,
    json: Json = False,
) -> None:
    """Print a configuration, fully resolved, as YAML."""
    from gymnasium_solver.config.load import dump_yaml, load_config, to_dict

    resolved = load_config(ref, set_ or ())
    output.emit_json(to_dict(resolved)) if json else output.emit(dump_yaml(resolved))


def envs(
    filter_: Annotated[str, typer.Argument(metavar="[FILTER]", help="Only names that contain this.")] = "",
    json: Json = False,
) -> None:
    """List the environments that have a configuration.

    Shipped ones and your own in ./config/environments; any other Gymnasium id trains from defaults.
    """
    from gymnasium_solver.config.load import shipped
    from gymnasium_solver.errors import NotFoundError

    found = shipped(filter_)
    if json:
        rows = ({"env_id": env_id, "variant": variant, "file": file} for env_id, variant, file in found)
        output.emit_json(rows)
        return
    if not found:
        raise NotFoundError(f"no configuration contains {filter_!r}; gsolve envs lists all")
    variants: dict[str, list[str]] = {}
    for env_id, variant, _ in found:
        names = variants.setdefault(env_id, [])
        if variant not in names:
            names.append(variant)
    output.emit_table(("ENVIRONMENT", "VARIANTS"), [(env_id, " ".join(names)) for env_id, names in variants.items()])
