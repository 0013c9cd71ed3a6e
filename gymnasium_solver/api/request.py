"""A training as it is handed to another process."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gymnasium_solver.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium_solver.config.schema import Config


@dataclass(frozen=True)
class Request:
    """What is to be trained; `overrides` are written FIELD=VALUE."""

    ref: str | None
    overrides: tuple[str, ...] = ()
    resume: str | None = None
    init_from: str | None = None
    runs_dir: Path | None = None
    group: str | None = None
    stop_on: str | None = None

    def arguments(self, *extra: str) -> list[str]:
        """The command line that asks for the same in a process of its own."""
        words = [sys.executable, "-m", "gymnasium_solver", "train"]
        for override in self.overrides:
            words += ["--set", override]
        named = {"--resume": self.resume, "--init-from": self.init_from, "--group": self.group}
        named |= {"--stop-on": self.stop_on}
        named["--runs-dir"] = str(self.runs_dir) if self.runs_dir else None
        for name, value in named.items():
            words += [name, value] if value is not None else []
        words += extra
        return [*words, "--", self.ref] if self.ref else words  # whatever it begins with, it is no option

    def of_seed(self, seed: int, resume: str = "") -> Request:
        """One of many seeds: its training begins, or the run `resume` goes on."""
        if resume:
            return replace(self, ref=None, overrides=(), init_from=None, resume=resume)
        return replace(self, overrides=(*self.overrides, f"seed={seed}"))

    def training(self) -> dict[str, Any]:
        """What is trained, not where nor under which name."""
        named = {"ref": self.ref, "init_from": self.init_from, "stop_on": self.stop_on}
        return {**named, "overrides": list(self.overrides)}

    def config(self) -> Config | None:
        """Resolved and checked, before anything is trained or written; a resumed run has its own."""
        if self.resume is not None:
            return None
        if self.ref is None:
            raise ConfigError("what to train is missing; give ENV:VARIANT (gsolve envs lists them) or --resume RUN")
        from gymnasium_solver.config.load import load_config

        return load_config(self.ref, self.overrides, asked=True)


def written(overrides: Mapping[str, Any]) -> tuple[str, ...]:
    """Python values as FIELD=VALUE; JSON is YAML."""
    return tuple(f"{field}={json.dumps(value, default=str)}" for field, value in overrides.items())
