"""What a server is told at its start, and what it refuses to start with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from gymnasium_solver.api.listening import SHORTEST_TOKEN, is_loopback
from gymnasium_solver.errors import ConfigError


@dataclass(frozen=True)
class Rate:
    """Requests a second in the long run, and how many at once."""

    per_second: float
    burst: float


@dataclass(frozen=True)
class Limits:
    """Each client has its own; reading on the machine itself is limited only so far that a runaway loop is noticed."""

    local_reads: Rate = Rate(5000, 10_000)
    reads: Rate = Rate(50, 300)
    writes: Rate = Rate(1, 20)
    refusals: Rate = Rate(1, 20)  # requests without a valid token
    body_bytes: int = 256 * 1024
    body_seconds: float = 10.0
    streams: int = 200  # event streams, of all clients together


@dataclass(frozen=True)
class Settings:
    runs_dir: Path
    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    read_only: bool = False
    limits: Limits = field(default_factory=Limits)
    allow_code: tuple[str, ...] = ()  # modules that runs and requests may name; nothing else is imported

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)


def require_safe(settings: Settings) -> None:
    """Nobody but this machine is let in without a token."""
    token = settings.token
    if token is None and not settings.is_local:
        raise ConfigError(
            f"serving on {settings.host} lets other machines in; give a token with --token or GSOLVE_TOKEN, or stay on "
            "127.0.0.1"
        )
    if token is not None and not re.fullmatch(rf"[A-Za-z0-9._~+/=-]{{{SHORTEST_TOKEN},512}}", token):
        raise ConfigError(
            f"the token has to be at least {SHORTEST_TOKEN} letters, digits or any of ._~+/=-; make one with: "
            'python -c "import secrets; print(secrets.token_urlsafe())"'
        )
