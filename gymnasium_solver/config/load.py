"""From `ENV:VARIANT` and overrides to a validated config.

A file has one environment: base fields on top and one block a variant. A variant's name is its algorithm, or its block
says `algo_id`. Files in the user's `config/environments/` come before the shipped ones.
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import ValidationError

from gymnasium_solver import trust
from gymnasium_solver.config.cards import card_of, default_algorithm, find_card, names
from gymnasium_solver.config.defaults import default_fields
from gymnasium_solver.config.explaining import explain, near
from gymnasium_solver.config.files import is_empty, read_file
from gymnasium_solver.config.off_policy import silenced_fields
from gymnasium_solver.config.schema import Config, RunConfig
from gymnasium_solver.config.yaml_text import parse_yaml
from gymnasium_solver.errors import ConfigError, NotFoundError

SHIPPED = Path(__file__).parent / "environments"
USER = Path("config") / "environments"
SHOWN = 200  # characters of a value that is refused


def load_config(
    ref: str,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    directory: Path | None = None,
    *,
    asked: bool = False,
) -> Config:
    """The config of `ENV:VARIANT` with overrides (a mapping, or `field=value` strings, dotted for nested fields).

    `asked`: the person who started this process named it, so code that it names may be imported.
    """
    env_id, separator, variant = ref.rpartition(":")
    if separator and not env_id:
        raise ConfigError(f"{ref!r} names no environment; write ENV:VARIANT, for example CartPole-v1{ref}")
    if not separator:
        known = shipped()
        close = difflib.get_close_matches(ref, [env for env, _, _ in known], n=1, cutoff=0.6)
        env = close[0] if close else ref
        variants = [name for known_env, name, _ in known if known_env == env] or [default_algorithm()]
        raise ConfigError(f"{ref!r} names no variant; write ENV:VARIANT, for example {env}:{variants[0]}")
    read = _read_variant(env_id, variant, directory, overrides, asked)
    fields = with_overrides(read, overrides)
    if asked:
        trust.allow(trust.names_in(fields))
    algo_id, of_variant = fields.get("algo_id"), read.get("algo_id")
    if algo_id != of_variant and find_card(algo_id):
        raise ConfigError(
            f"{ref}: algo_id: its fields are those of {of_variant}; for {algo_id} write {env_id}:{algo_id}"
        )
    config = build_config(fields, ref)
    try:
        silenced = silenced_fields(config, read, {key.partition(".")[0] for key, _ in parse_overrides(overrides)})
    except ConfigError as error:
        raise ConfigError(f"{ref}: {error}") from None
    return build_config({k: v for k, v in fields.items() if k not in silenced}, ref) if silenced else config


def with_overrides(fields: Mapping[str, Any], overrides: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    changed = dict(fields)
    for key, value in parse_overrides(overrides):
        _assign(changed, key, value)
    return changed


def build_config(fields: Mapping[str, Any], source: str) -> Config:
    """Validate fields against the schema of their algorithm; one sentence says what is wrong, and the nearest valid."""
    try:
        schema = card_of(fields.get("algo_id", default_algorithm())).config
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    try:
        # The schema of an algorithm without environments is no Config; none is shipped.
        return cast(Config, schema.model_validate(dict(fields)))
    except ValidationError as error:
        raise ConfigError(f"{source}: {explain(error, schema)}") from None


def shipped(filter: str = "") -> list[tuple[str, str, Path]]:
    """Every (env_id, variant, file) there is, the user's files in front of the shipped ones."""
    return listing(filter)[0]


def listing(filter: str = "") -> tuple[list[tuple[str, str, Path]], dict[Path, str]]:
    """The same, and files that cannot be read with what is wrong with each: one of them takes no others away."""
    found: dict[tuple[str, str], Path] = {}
    problems: dict[Path, str] = {}
    for path in [path for directory in (USER, SHIPPED) for path in sorted(directory.glob("*.yaml"))]:
        try:
            base, variants = read_file(path)
        except ConfigError as error:
            if not is_empty(path):
                problems[path] = str(error)
            continue
        for variant in variants:
            found.setdefault((base.get("env_id", path.stem), variant), path)
    wanted = [(*key, path) for key, path in found.items() if filter.lower() in ":".join(key).lower()]
    return wanted, problems


def shipped_fields(env_id: str, algo_id: str) -> dict[str, Any]:
    """Fields of the environment's first shipped variant of this algorithm; empty if none ships. The user's files are
    not asked: what is in them may be the fault."""
    path = SHIPPED / (env_id.replace("/", "-") + ".yaml")
    if not path.is_file():
        return {}
    base, variants = read_file(path)
    for name, block in variants.items():
        if block.get("algo_id", name) == algo_id:
            return {"algo_id": algo_id, **base, **block}
    return {}


def dump_yaml(config: RunConfig | Mapping[str, Any]) -> str:
    fields = to_dict(config) if isinstance(config, RunConfig) else dict(config)
    return yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, allow_unicode=True)


def to_dict(config: RunConfig) -> dict[str, Any]:
    """Plain JSON values, schedules with the names users write."""
    plain: dict[str, Any] = json.loads(config.model_dump_json(by_alias=True))
    return plain


def parse_overrides(overrides: Mapping[str, Any] | Sequence[str]) -> Iterator[tuple[str, Any]]:
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for item in overrides:
        key, separator, text = item.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set {item!r} is not FIELD=VALUE; for example --set policy_lr=1e-3")
        try:
            yield key.strip(), parse_yaml(text)
        except yaml.YAMLError:
            raise ConfigError(
                f"--set {item[:SHOWN]!r}: {text[:SHOWN]!r} is not a YAML value; quote it, or check its brackets"
            ) from None


def _read_variant(
    env_id: str, variant: str, directory: Path | None, overrides: Mapping[str, Any] | Sequence[str], asked: bool
) -> dict[str, Any]:
    name = env_id.replace("/", "-") + ".yaml"
    known: list[str] = []
    shared: dict[str, Any] = {}
    for path in _files_of(env_id, name, (directory or USER, SHIPPED)):
        base, variants = read_file(path)
        named = base.get("env_id", env_id)
        if named != env_id and path.name == name and env_id in _registered_ids():
            raise ConfigError(
                f"{path}: env_id: the file is named after {env_id}, but configures {named!r}; call it "
                f"{str(named).replace('/', '-')}.yaml, or correct env_id"
            )
        if variant in variants:
            return _for_its_clock({"env_id": env_id, "algo_id": variant, **base, **variants[variant]}, base)
        known += [v for v in variants if v not in known]
        shared = base | shared
    if find_card(variant) and (known or _is_registered(env_id)):
        arguments = with_overrides(shared, overrides).get("env_kwargs")  # they may make other spaces
        looked_at = shared.get("env_id", env_id)
        if asked:
            trust.allow(trust.names_in({"env_id": looked_at}))
        defaults = default_fields(looked_at, variant, arguments)
        return _for_its_clock({"env_id": env_id, "algo_id": variant, **defaults, **shared}, shared)
    choices = [*known, *(a for a in names() if a not in known)]
    if known or _is_registered(env_id):
        raise NotFoundError(
            f"{env_id} has no variant {variant!r}; choose from {', '.join(choices)}{near(variant, choices)}"
        )
    if find_card(variant) is None and all(
        map(str.isidentifier, env_id.split("."))
    ):  # MODULE:CLASS without an algorithm
        raise NotFoundError(
            f"no environment {env_id!r} is registered or configured; to train {variant} of such a module, write "
            f"{env_id}:{variant}:{default_algorithm()}, with the algorithm at the end"
        )
    environments = sorted({env for env, _, _ in shipped()} | _registered_ids())
    raise NotFoundError(
        f"no environment {env_id!r} is registered or configured{near(env_id, environments)}; "
        f"`gsolve envs` lists the shipped ones, and config/environments/{name} would define it; one that "
        f"your own module registers is MODULE:{env_id}"
    )


def _for_its_clock(fields: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Without those base fields of the file that only a training in environments has, where this one has none."""
    card = find_card(fields.get("algo_id"))
    known = card.config.model_fields if card is not None else Config.model_fields
    idle = {name for name in base if name in Config.model_fields and name not in known}
    return {name: value for name, value in fields.items() if name not in idle}


def _files_of(env_id: str, name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Files that configure an environment: by their name, or else by the env_id in them."""
    for folder in folders:
        if (folder / name).is_file() and not is_empty(folder / name):
            yield folder / name
        elif folder != SHIPPED:
            for path in sorted(folder.glob("*.yaml")):
                with contextlib.suppress(ConfigError):  # a broken file of another environment is not this one's affair
                    if read_file(path)[0].get("env_id") == env_id:
                        yield path


def _assign(fields: dict[str, Any], key: str, value: Any) -> None:
    """Set a possibly dotted field; `policy_lr.end` on a plain number makes it a schedule from that number."""
    head, _, rest = key.partition(".")
    if not rest:
        fields[head] = value
        return
    inner = fields.get(head)
    nested = (
        dict(inner)
        if isinstance(inner, dict)
        else {}
        if inner is None or rest.startswith("start")
        else {"start": inner}
    )
    _assign(nested, rest, value)
    fields[head] = nested


def _registered_ids() -> set[str]:
    import gymnasium

    return set(gymnasium.registry)


def _is_registered(env_id: str) -> bool:
    """Known to Gymnasium, of a family that a plugin registers when imported, or a class by its path."""
    return ":" in env_id or env_id.startswith(("ALE/", "MiniGrid-", "BabyAI-")) or env_id in _registered_ids()
