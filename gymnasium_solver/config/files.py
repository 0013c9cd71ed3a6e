"""Configuration files: one environment each, base fields on top and one block a variant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gymnasium_solver.config.cards import all_cards, default_algorithm, find_card, names
from gymnasium_solver.config.explaining import near
from gymnasium_solver.config.yaml_text import BoundedLoader, parse_yaml
from gymnasium_solver.errors import ConfigError
from gymnasium_solver.limits import LARGEST_YAML, TooLarge, read_bytes


def is_empty(path: Path) -> bool:
    """As the shell has made it before `gsolve config ENV:VARIANT > FILE` begins: it says nothing yet."""
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def read_yaml(path: Path) -> Any:
    try:
        return parse_yaml(read_bytes(path, LARGEST_YAML).decode("utf-8"), _Loader)
    except (OSError, UnicodeDecodeError, TooLarge) as error:
        raise ConfigError(f"{path} cannot be read ({error})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{path}{line}: not valid YAML ({problem}); correct the file") from None


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Base fields and variants of a configuration file."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError(f"{path} is not a mapping of fields; start it with `env_id: …`")
    if odd := [key for key in content if not isinstance(key, str)]:
        raise ConfigError(
            f"{path}: {odd[0]!r} is no name of a field or variant; put it in quotes if it is meant as one"
        )
    if not isinstance(content.get("env_id", ""), str):
        raise ConfigError(f"{path}: env_id: {content['env_id']!r} is no id of an environment; write it as text")
    content = {k: {} if v is None and find_card(k) else v for k, v in content.items()}  # `ppo:` and nothing more
    known = {name for card in all_cards() for name in card.config.model_fields}
    variants = {k: v for k, v in content.items() if isinstance(v, dict) and k not in known}
    algo_id = content.get("algo_id")
    if not variants and isinstance(algo_id, str) and find_card(algo_id):  # as `gsolve config` prints it
        content = {k: content.pop(k) for k in ("env_id",) if k in content} | {algo_id: content}
        variants = {algo_id: content[algo_id]}
    base = {k: v for k, v in content.items() if k not in variants}
    for variant, block in variants.items():
        if find_card(variant) is None and "algo_id" not in block:
            raise ConfigError(
                f"{path}: {variant}: neither a field nor a variant{near(variant, known)}; a variant that is not "
                f"named after its algorithm says algo_id (one of {', '.join(names())})"
            )
    if not variants:
        raise ConfigError(f"{path} has no variant; add a block such as `{default_algorithm()}:`")
    return base, variants


class _Loader(BoundedLoader):
    """YAML keeps the last of two equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)
