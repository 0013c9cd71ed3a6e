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
from typing import Any

import yaml
from pydantic import ValidationError

from gymnasium_solver.config.defaults import default_fields
from gymnasium_solver.config.schema import CONFIGS, Config
from gymnasium_solver.errors import ConfigError, NotFoundError

SHIPPED = Path(__file__).parent / "environments"
USER = Path("config") / "environments"

_ALL_FIELDS = frozenset(name for schema in CONFIGS.values() for name in schema.model_fields)


def load_config(ref: str, overrides: Mapping[str, Any] | Sequence[str] = (), directory: Path | None = None) -> Config:
    """The config of `ENV:VARIANT` with overrides (a mapping, or `field=value` strings, dotted for nested fields)."""
    env_id, separator, variant = ref.rpartition(":")
    if separator and not env_id:
        raise ConfigError(f"{ref!r} names no environment; write ENV:VARIANT, for example CartPole-v1{ref}")
    if not separator:
        known = shipped()
        close = difflib.get_close_matches(ref, [env for env, _, _ in known], n=1, cutoff=0.6)
        env = close[0] if close else ref
        names = [name for known_env, name, _ in known if known_env == env] or list(CONFIGS)
        raise ConfigError(f"{ref!r} names no variant; write ENV:VARIANT, for example {env}:{names[0]}")
    return build_config(with_overrides(_read_variant(env_id, variant, directory), overrides), ref)


def with_overrides(fields: Mapping[str, Any], overrides: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    changed = dict(fields)
    for key, value in parse_overrides(overrides):
        _assign(changed, key, value)
    return changed


def build_config(fields: Mapping[str, Any], source: str) -> Config:
    """Validate fields against the schema of their algorithm; one sentence says what is wrong, and the nearest valid."""
    algo_id = fields.get("algo_id", "ppo")
    if not isinstance(algo_id, str) or algo_id not in CONFIGS:
        raise ConfigError(
            f"{source}: algo_id: {algo_id!r} is not an algorithm; choose from {', '.join(CONFIGS)}"
            f"{_near(algo_id, CONFIGS)}"
        )
    schema = CONFIGS[algo_id]
    try:
        return schema.model_validate(dict(fields))
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, schema)}") from None


def shipped(filter: str = "") -> list[tuple[str, str, Path]]:
    """Every (env_id, variant, file) there is, the user's files in front of the shipped ones."""
    found: dict[tuple[str, str], Path] = {}
    for directory in (USER, SHIPPED):
        for path in sorted(directory.glob("*.yaml")):
            base, variants = _read_file(path)
            for variant in variants:
                found.setdefault((base.get("env_id", path.stem), variant), path)
    return [
        (env, variant, path) for (env, variant), path in found.items() if filter.lower() in f"{env}:{variant}".lower()
    ]


def shipped_fields(env_id: str, algo_id: str) -> dict[str, Any]:
    """Fields of the environment's first variant of this algorithm, the user's files first; empty if there is none."""
    for path in _files_of(env_id, env_id.replace("/", "-") + ".yaml", (USER, SHIPPED)):
        base, variants = _read_file(path)
        for name, block in variants.items():
            if block.get("algo_id", name) == algo_id:
                return {"algo_id": algo_id, **base, **block}
    return {}


def dump_yaml(config: Config) -> str:
    return yaml.safe_dump(to_dict(config), sort_keys=False, default_flow_style=None, allow_unicode=True)


def to_dict(config: Config) -> dict[str, Any]:
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
            yield key.strip(), yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            raise ConfigError(
                f"--set {item!r}: {text!r} is not a YAML value; quote it, or check its brackets"
            ) from None


def _read_variant(env_id: str, variant: str, directory: Path | None) -> dict[str, Any]:
    name = env_id.replace("/", "-") + ".yaml"
    known: list[str] = []
    shared: dict[str, Any] = {}
    for path in _files_of(env_id, name, (directory or USER, SHIPPED)):
        base, variants = _read_file(path)
        if variant in variants:
            return {"env_id": env_id, "algo_id": variant, **base, **variants[variant]}
        known += [v for v in variants if v not in known]
        shared = base | shared
    if variant in CONFIGS and (known or _is_registered(env_id)):
        defaults = default_fields(shared.get("env_id", env_id), variant)
        return {"env_id": env_id, "algo_id": variant, **defaults, **shared}
    choices = [*known, *(a for a in CONFIGS if a not in known)]
    if known or _is_registered(env_id):
        raise NotFoundError(
            f"{env_id} has no variant {variant!r}; choose from {', '.join(choices)}{_near(variant, choices)}"
        )
    environments = sorted({env for env, _, _ in shipped()} | _registered_ids())
    raise NotFoundError(
        f"no environment {env_id!r} is registered or configured{_near(env_id, environments)}; "
        f"`gsolve envs` lists the shipped ones, and config/environments/{name} would define it"
    )


def _files_of(env_id: str, name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Files that configure an environment: by their name, or else by the env_id in them."""
    for folder in folders:
        if (folder / name).is_file():
            yield folder / name
        elif folder != SHIPPED:
            for path in sorted(folder.glob("*.yaml")):
                with contextlib.suppress(ConfigError):  # a broken file of another environment is not this one's affair
                    if _read_file(path)[0].get("env_id") == env_id:
                        yield path


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Base fields and variants of a configuration file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error})") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{path}{line}: not valid YAML ({problem}); correct the file") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a mapping of fields; start it with `env_id: …`")
    content = {k: {} if v is None and k in CONFIGS else v for k, v in content.items()}  # `ppo:` and nothing more
    variants = {k: v for k, v in content.items() if isinstance(v, dict) and k not in _ALL_FIELDS}
    base = {k: v for k, v in content.items() if k not in variants}
    for variant, block in variants.items():
        if variant not in CONFIGS and "algo_id" not in block:
            raise ConfigError(
                f"{path}: {variant}: neither a field nor a variant{_near(variant, _ALL_FIELDS)}; a variant that is not "
                f"named after its algorithm says algo_id (one of {', '.join(CONFIGS)})"
            )
    if not variants:
        raise ConfigError(f"{path} has no variant; add a block such as `ppo:`")
    return base, variants


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


def _explain(error: ValidationError, schema: type[Config]) -> str:
    return "; ".join(dict.fromkeys(_sentence(e, schema) for e in _relevant(error)))


def _relevant(error: ValidationError) -> list[Any]:
    """A field that takes a number or a schedule fails as both; keep what fits what was written."""
    by_field: dict[Any, list[Any]] = {}
    for e in error.errors():
        by_field.setdefault(e["loc"][:1], []).append(e)
    kept = []
    for errors in by_field.values():
        of_schedule = [e for e in errors if e["type"] not in ("float_type", "int_type", "model_type")]
        is_mapping = any(isinstance(e["input"], dict) for e in errors) or any(
            "Schedule" in e["loc"][:-1] for e in errors
        )
        kept += (of_schedule or errors) if is_mapping or len(errors) == 1 else errors[-1:]
    return kept


def _sentence(e: Any, schema: type[Config]) -> str:
    loc = [str(part) for part in e["loc"] if part not in ("Schedule", "float", "int") and "function" not in str(part)]
    field, value, context = ".".join(loc), e["input"], e.get("ctx", {})
    match e["type"]:
        case "extra_forbidden":
            names = list(schema.model_fields) if len(loc) == 1 else ["start", "end", "schedule", "warmup", "from", "to"]
            return f"{field}: unknown field (value {value!r}){_near(loc[-1], names)}"
        case "missing":
            return f"{field}: missing; add it"
        case "literal_error":
            expected = context["expected"]
            return f"{field}: {value!r} is not one of {expected}{_near(value, _quoted(expected))}"
        case "greater_than_equal" | "less_than_equal":
            bound = next(iter(context.values()))
            return f"{field}: {value!r} is out of range ({e['msg'].lower()}); the nearest valid value is {bound}"
        case "greater_than" | "less_than":
            return f"{field}: {value!r} is out of range ({e['msg'].lower()}){_default_of(schema, loc[0])}"
        case "value_error":
            text = str(context["error"])
            if "must be > " in text:
                text += _default_of(schema, loc[0])
            return f"{field}: {text}" if field and not text.startswith(field) else text
        case _:
            return f"{field}: {value!r} cannot be used ({e['msg'].lower()})"


def _default_of(schema: type[Config], field: str) -> str:
    """An open bound has no nearest valid value; the default is one that works."""
    default = schema.model_fields[field].default
    return "; leave it unset, or give a larger one" if default is None else f"; the default is {default}"


def _quoted(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").replace("'", "").split(", ")


def _near(word: str, choices: Any) -> str:
    close = difflib.get_close_matches(str(word), [str(c) for c in choices], n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _registered_ids() -> set[str]:
    import gymnasium

    return set(gymnasium.registry)


def _is_registered(env_id: str) -> bool:
    """Known to Gymnasium, of a family that a plugin registers when imported, or a class by its path."""
    return ":" in env_id or env_id.startswith(("ALE/", "MiniGrid-", "BabyAI-")) or env_id in _registered_ids()
