"""Classes that users name as module:Class, found in the working directory as well as among installed packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gymnasium_solver.errors import ConfigError


def import_module(name: str, field: str) -> ModuleType:
    if name.endswith(".py"):
        module = ".".join(Path(name).with_suffix("").parts)
        raise ConfigError(f"{field}: {name!r} is a file, a module is wanted; write {module}:Class")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # a console script, unlike `python -m`, does not look here by itself
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not name.startswith(error.name):
            raise ConfigError(f"{field}: module {name!r} needs {error.name!r}, which is not installed") from error
        raise ConfigError(
            f"{field}: no module {name!r}; run from the directory that holds it, or install its package"
        ) from error
    except Exception as error:  # any error in someone else's module
        raise ConfigError(f"{field}: importing {name!r} failed: {type(error).__name__}: {error}") from error


def import_attribute(reference: str, field: str) -> Any:
    module_name, _, attribute = reference.partition(":")
    module = import_module(module_name, field)
    if not hasattr(module, attribute):
        raise ConfigError(f"{field}: module {module_name!r} has no {attribute!r}")
    return getattr(module, attribute)
