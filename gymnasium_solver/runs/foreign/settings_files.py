"""Hyperparameters that other libraries leave on disk. Only plain values are taken: nothing in a file is ever executed.

A pickle is never opened. Python objects named in YAML are read as the plain lists and mappings they are written as.
"""

from __future__ import annotations

import ast
import re
import warnings
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from gymnasium_solver.config.yaml_text import BoundedLoader, parse_yaml
from gymnasium_solver.limits import LARGEST_JSON, LARGEST_YAML, LONGEST_TEXT, TooLarge, read_bytes, read_member
from gymnasium_solver.runs.foreign.json_tables import parse_json
from gymnasium_solver.runs.foreign.tables import as_number, flat

MAX_VALUES = 5_000
MAX_TEXT = 500
SERIALIZED = ":serialized:"


def read_settings(path: Path, notes: list[str]) -> dict[str, Any]:
    """YAML or JSON, flat: nested names are joined by slashes, `{value: x}` as W&B writes it is x."""
    try:
        content = read_bytes(path, LARGEST_YAML)
    except TooLarge:
        notes.append(f"{path.name} is too large for a settings file ({path.stat().st_size} bytes) and was not read")
        return {}
    except OSError as error:
        notes.append(f"{path.name} cannot be read: {error.strerror or error}")
        return {}
    document = parse_json(content) if path.suffix == ".json" else _plain_yaml(content)
    if isinstance(document, list):  # pairs, as an ordered mapping is written
        document = {str(x[0]): x[1] for x in document if isinstance(x, list) and len(x) == 2}
    if not isinstance(document, dict):
        notes.append(f"{path.name} holds no settings that can be read")
        return {}
    wrapped = {key for key, x in document.items() if isinstance(x, dict) and {"value"} <= set(x) <= {"value", "desc"}}
    unwrapped = {key: value["value"] if key in wrapped else value for key, value in document.items()}
    return plain_values(unwrapped)


def plain_values(settings: dict[str, Any]) -> dict[str, Any]:
    """Numbers, short texts and lists of them, by flat names."""
    found = {}
    for name, value in islice(flat(settings), MAX_VALUES):
        if isinstance(value, list | tuple):
            value = [x for x in value if isinstance(x, bool | int | float | str | list | type(None))][:100]
        elif not isinstance(value, bool | int | float | str | type(None)):
            continue
        found[name] = value[:MAX_TEXT] if isinstance(value, str) else value
    return found


class _PlainLoader(BoundedLoader):
    """What YAML can say without naming Python objects; such names are read as the data behind them."""


def _plain_data(loader: yaml.SafeLoader, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        items = loader.construct_sequence(node, deep=True)
        # An ordered mapping is written as the call of its class with one list of pairs.
        return items[0] if len(items) == 1 and isinstance(items[0], list) else items
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_PlainLoader.add_multi_constructor("tag:yaml.org,2002:python/", _plain_data)
_PlainLoader.add_multi_constructor("!", _plain_data)


def _plain_yaml(content: bytes) -> Any:
    try:
        return parse_yaml(content, _PlainLoader)
    except yaml.YAMLError:
        return None


def read_model_zip(path: Path, notes: list[str]) -> dict[str, Any]:
    """The plain values in the `data` of a Stable-Baselines3 model; what is pickled there or beside it stays shut."""
    try:
        with zipfile.ZipFile(path) as archive:
            content = read_member(archive, archive.getinfo("data"), LARGEST_JSON)
            system = _system_info(archive)
    except KeyError:
        notes.append(f"{path.name} holds no model of Stable-Baselines3")
        return {}
    except TooLarge as error:
        notes.append(f"{path.name} was not read: {error}")
        return {}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        notes.append(f"{path.name} is damaged and was not read: {error}")
        return {}
    document = parse_json(content)
    if not isinstance(document, dict):
        notes.append(f"{path.name}: its data is no JSON")
        return {}
    settings = {name: _without_pickles(value) for name, value in document.items()}
    found = plain_values({name: value for name, value in settings.items() if value is not _NOTHING})
    return found | {f"system/{name}": value for name, value in system.items()}


def is_model_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "data" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


_NOTHING = object()


def _without_pickles(value: Any) -> Any:
    """A pickled object is written with its plain members beside it; those, and the name of its class, are kept."""
    if not isinstance(value, dict) or SERIALIZED not in value:
        return value
    members = {
        name: item for name, item in value.items() if name not in (SERIALIZED, "__doc__") and not _is_noise(name, item)
    }
    constant = re.fullmatch(r"ConstantSchedule\(val=([^)]+)\)", str(members.get("value_schedule", "")))
    if constant and (number := as_number(constant[1])) is not None:
        return number
    return members or _NOTHING


def _is_noise(name: str, item: Any) -> bool:
    return (name.startswith("__") and name != "__module__") or "<function" in str(item)[:MAX_TEXT]


def _system_info(archive: zipfile.ZipFile) -> dict[str, str]:
    if "system_info.txt" not in archive.namelist():
        return {}
    text = read_member(archive, archive.getinfo("system_info.txt"), LONGEST_TEXT)
    lines = text.decode(errors="replace").splitlines()
    pairs = (line.lstrip("- ").split(": ", 1) for line in lines if ": " in line)
    return {name: value[:MAX_TEXT] for name, value in pairs}


def settings_in_text(text: str) -> dict[str, Any]:
    """A table of |name|value| rows, as CleanRL logs it, or an argparse Namespace as text, as Tianshou's scripts do."""
    text = text[:LONGEST_TEXT]
    rows = re.findall(r"^\|([^|\n]+)\|([^\n]*)\|[ \t]*$", text, re.MULTILINE)
    found = {name.strip(): _literal(value) for name, value in rows if set(name) - set("-: ")}
    found.pop("param", None)
    if found:
        return plain_values(found)
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {}
    if not isinstance(call, ast.Call):
        return {}
    try:
        return plain_values({x.arg: _literal(ast.unparse(x.value)) for x in call.keywords if x.arg})
    except RecursionError:
        return {}


def _literal(text: str) -> Any:
    text = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes: nobody will run this
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
