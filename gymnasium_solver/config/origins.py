"""What the fields of a configuration mean, and where their values come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gymnasium_solver.config.files import read_file
from gymnasium_solver.config.fixed import fixed_fields
from gymnasium_solver.config.load import load_config, parse_overrides, shipped, to_dict
from gymnasium_solver.config.schema import Config

Source = Literal["override", "variant", "environment", "name", "spaces", "derived", "default"]


class Described(NamedTuple):
    value: Any  # plain, as it is written in YAML
    source: Source
    file: Path | None  # of a variant or an environment
    description: str
    fixed: bool  # once training has begun


def described_config(
    ref: str, overrides: Mapping[str, Any] | Sequence[str] = (), *, asked: bool = False
) -> dict[str, Described]:
    """Every field of `ENV:VARIANT`: an override, a line of the variant's block or of the top of its file, part of the
    name, chosen for the spaces of an environment without such a variant, derived from other fields, or the default."""
    config = load_config(ref, overrides, asked=asked)
    env_id, _, variant = ref.rpartition(":")
    changed = {field.partition(".")[0] for field, _ in parse_overrides(overrides)}
    file, base, block = _written(env_id, variant)

    def source(name: str) -> Source:
        field = type(config).model_fields[name]
        if name not in config.model_fields_set:
            return "default" if getattr(config, name) == field.default else "derived"
        layers: list[tuple[Source, Any]] = [("override", changed), ("variant", block), ("environment", base)]
        if found := next((layer for layer, fields in layers if name in fields), None):
            return found
        if name in ("env_id", "algo_id"):
            return "name"
        return "derived" if field.is_required() else "spaces"

    found, fixed = {}, fixed_fields(type(config))
    for name, value in to_dict(config).items():
        origin = source(name)
        is_written = origin in ("variant", "environment")
        found[name] = Described(
            value, origin, file if is_written else None, _description(type(config), name), name in fixed
        )
    return found


def _written(env_id: str, variant: str) -> tuple[Path | None, dict[str, Any], dict[str, Any]]:
    """The file that configures an environment, its top, and the variant's block: of the first file that has the
    variant, else of the first of the environment."""
    files = [(name, path) for env, name, path in shipped() if env == env_id or path.stem == env_id.replace("/", "-")]
    path = next((path for name, path in files if name == variant), files[0][1] if files else None)
    if path is None:
        return None, {}, {}
    base, variants = read_file(path)
    return path, base, variants.get(variant, {})


def _description(schema: type[Config], name: str) -> str:
    """A field that an algorithm declares anew means what it meant."""
    fields = (getattr(parent, "model_fields", {}).get(name) for parent in schema.__mro__)
    return next((field.description for field in fields if field is not None and field.description), "")
