"""Where servers listen, and who reaches them there: what all of them have to agree about."""

from __future__ import annotations

import ipaddress
import socket

from gymnasium_solver.errors import SolverError

SHORTEST_TOKEN = 16  # where others can try
BACKLOG = 2048


def is_loopback(host: str) -> bool:
    """Whether only this machine gets there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int, remedy: str = "choose another with --port") -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SolverError(f"cannot listen on {host}:{port} ({reason}); {remedy}") from error
