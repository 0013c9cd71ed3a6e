"""`gsolve config` and `gsolve envs`: what can be trained, and with which settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from gymnasium_solver.api import configs
from gymnasium_solver.api.configs import described, shown_file
from gymnasium_solver.cli import output
from gymnasium_solver.cli.options import Json, RunsDir, Set
from gymnasium_solver.errors import ConfigError, NotFoundError

LEAST_COLUMNS, MOST_COLUMNS = 20, 100  # of a sentence


def config(
    ref: Annotated[
        str, typer.Argument(metavar="ENV:VARIANT|RUN", help="A configuration, e.g. CartPole-v1:ppo, or a run.")
    ],
    set_: Set = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="Say what each field means and where its value comes from.")
    ] = False,
    runs_dir: RunsDir = None,
    json: Json = False,
) -> None:
    """Print a configuration, fully resolved, as YAML.

    Saved as config/environments/ENV.yaml, it replaces the shipped one.
    """
    fields = configs.of_run(ref, set_ or (), runs_dir)
    if describe:
        if fields is not None:
            raise ConfigError(f"--describe says where the values of ENV:VARIANT come from, and {ref} is a run")
        _describe(ref, set_ or (), as_json=json)
        return
    document = configs.as_document(configs.resolved(ref, set_ or ()) if fields is None else fields)
    output.emit_json(document["config"]) if json else output.emit(document["yaml"])


def _describe(ref: str, overrides: Sequence[str], *, as_json: bool) -> None:
    """The same YAML, with a comment on each field."""
    import textwrap

    import yaml

    fields = described(ref, overrides)
    if as_json:
        output.emit_json({name: field._asdict() for name, field in fields.items()})
        return
    variant, blocks = ref.rpartition(":")[2], []
    wrapper = textwrap.TextWrapper(
        min(MOST_COLUMNS, max(LEAST_COLUMNS, output.console(sys.stdout).width)),
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for name, (value, source, file, description, fixed) in fields.items():
        where = shown_file(file)
        origin = {
            "override": "--set",
            "variant": f"{where}, {variant}",
            "environment": where,
            "name": "ENV:VARIANT",
            "spaces": "chosen for the spaces of the environment",
            "derived": "follows from other fields",
            "default": "default",
        }[source]
        comment = wrapper.wrap(f"{description} ({origin}){'; fixed once training has begun' if fixed else ''}")
        text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=sys.maxsize)
        text = text.removesuffix("...\n").strip()  # which ends a document of one scalar
        blocks.append("\n".join((*comment, f"{name}: {text}")))
    output.emit("\n\n".join(blocks))


def envs(
    filter_: Annotated[str, typer.Argument(metavar="[FILTER]", help="Only names that contain this.")] = "",
    json: Json = False,
) -> None:
    """List the environments that have a configuration.

    Shipped ones and your own in ./config/environments; any other Gymnasium id trains from defaults.
    """
    found, problems = configs.listing(filter_)
    for sentence in problems.values():
        output.message(f"warning: {sentence}")
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
