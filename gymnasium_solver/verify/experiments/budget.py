"""How much an experiment may cost."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field

from gymnasium_solver.errors import ConfigError

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass
class Budget:
    """Seconds from now, trainings, or both; whichever ends first."""

    seconds: float = math.inf
    runs: float = math.inf
    used_runs: int = 0
    _begun: float = field(default_factory=time.monotonic)

    @property
    def used_seconds(self) -> float:
        return time.monotonic() - self._begun

    @property
    def left_seconds(self) -> float:
        return self.seconds - self.used_seconds

    @property
    def is_spent(self) -> bool:
        return self.left_seconds <= 0 or self.used_runs >= self.runs


def parse_duration(text: str) -> float:
    """`90`, `90s`, `10m`, `1.5h` in seconds."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", text)
    if not match or float(match[1]) == 0:
        raise ConfigError(f"budget: {text!r} is not a time; write for example 90s, 10m or 1.5h")
    return float(match[1]) * _UNITS[match[2] or "s"]
