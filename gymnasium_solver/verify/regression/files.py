"""What `gsolve regress` reads and writes: suites of configs, and baselines of what they brought."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gymnasium_solver.config.cards import all_cards
from gymnasium_solver.config.files import read_yaml
from gymnasium_solver.config.load import load_config, shipped
from gymnasium_solver.config.schema import Config
from gymnasium_solver.errors import ConfigError, writing
from gymnasium_solver.limits import parse_json, read_bytes
from gymnasium_solver.runs.environment import environment_record
from gymnasium_solver.runs.layout import replace_file
from gymnasium_solver.trust import names_in, require
from gymnasium_solver.verify.regression.verdict import Measured

BASELINE = Path(__file__).parent / "convergence.json"
EVALUATIONS = 20  # of a run, unless eval_freq_epochs says otherwise


@dataclass(frozen=True)
class Entry:
    """A config of a suite."""

    name: str
    config: Config

    @property
    def slot(self) -> float:
        """Env steps between evaluations."""
        every = self.config.eval_freq_epochs
        return every * self.config.rollout if every else self.config.budget / EVALUATIONS


def read_suite(suite: str) -> list[Entry]:
    """`quick`, `shipped`, or a YAML file with a list of ENV:VARIANT or {config, set, max_env_steps}."""
    if suite == "quick":
        # Every kind of algorithm, nothing that needs an extra, two to three minutes on two cores.
        return [_entry(f"{env}:{card.algo_id}", {}) for card in all_cards() for env in card.quick]
    if suite == "shipped":
        return [_entry(f"{env}:{variant}", {}) for env, variant, _ in shipped()]
    path = Path(suite)
    if not path.is_file():
        raise ConfigError(f"no suite {suite!r}; use quick, shipped, or a YAML file with a list of ENV:VARIANT")
    content = read_yaml(path)
    if not isinstance(content, list) or not content:
        raise ConfigError(f"{path} is not a list of configs; write one per line, e.g. - CartPole-v1:ppo")
    entries = [_read_entry(item, path) for item in content]
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"{path} lists {twice} twice; remove one")
    return entries


def _read_entry(item: Any, path: Path) -> Entry:
    if isinstance(item, str):
        return _named_in(path, item, {})
    known = {"config", "set", "max_env_steps"}
    if not isinstance(item, dict) or "config" not in item or set(item) - known:
        raise ConfigError(f"{path}: {item!r} is neither ENV:VARIANT nor a mapping of config, set and max_env_steps")
    changes = dict(item.get("set") or {})
    if "max_env_steps" in item:
        changes["max_env_steps"] = item["max_env_steps"]
    return _named_in(path, str(item["config"]), changes)


def _named_in(path: Path, ref: str, changes: Mapping[str, Any]) -> Entry:
    """What a file lists is not asked for by name: code in it is let in only where the user trusts it."""
    parts = ({"env_id": ref.rpartition(":")[0]}, changes)
    for name in [name for part in parts for name in names_in(part)]:
        require(name, str(path))
    return _entry(ref, changes, asked=False)


def _entry(ref: str, changes: Mapping[str, Any], *, asked: bool = True) -> Entry:
    written = [f"{field}={json.dumps(value)}" for field, value in sorted(changes.items())]
    return Entry(" ".join([ref, *written]), load_config(ref, changes, asked=asked))


def read_baseline(path: Path, suite: str = "") -> dict[str, Any]:
    """`suite`: what the baseline is of, as the command is given it that makes one."""
    remedy = shlex.join(["gsolve", "regress", *filter(None, [suite]), "--update", "--baseline", str(path)])
    try:
        document = parse_json(read_bytes(path))
        for row in document["configs"].values():
            Measured.from_dict(row)
    except FileNotFoundError:
        raise ConfigError(f"there is no baseline {path}; create it with: {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ConfigError(
            f"{path} is not a baseline ({type(error).__name__}: {error}); create one with: {remedy}"
        ) from None
    return dict(document)


def require_writable(path: Path) -> None:
    """Before minutes of training."""
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ConfigError(f"--baseline {path} cannot be written; choose another place")


def write_baseline(path: Path, stored: Mapping[str, Any], measured: Mapping[str, Measured]) -> None:
    date = datetime.now(UTC).date().isoformat()
    record = environment_record([])
    made = {
        "packages": record["packages"],
        "python": record["python"],
        "system": platform.system(),
        "cpu_count": record["cpu_count"],
        "date": date,
    }
    rows = {name: {**asdict(side), "date": date} for name, side in measured.items()}
    document = {**stored, "made": made, "configs": dict(sorted((stored["configs"] | rows).items()))}
    with writing(path, "choose another place with --baseline"):
        replace_file(path, [_written(document).encode()])


def _written(document: Mapping[str, Any]) -> str:
    """A line a config, so that a difference between two versions can be read."""
    rest = {name: value for name, value in document.items() if name != "configs"}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in rest.items()]
    configs = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in document["configs"].items()]
    return "\n".join(["{", *lines, ' "configs": {', ",\n".join(configs), " }", "}"]) + "\n"
