"""Whether this user's own installation made a run: signed with a key that is kept outside of any run directory.

The signature lies in the run, so the run may be moved, put on a read-only disk, or written beside many others. It
covers the run's id and all that decides which code runs; the key stays in the user's state directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gymnasium_solver.trust import gate
from gymnasium_solver.trust.names import FIELDS, names_in

BYTES = 32


def signature(name: str, *parts: Mapping[str, Any]) -> str | None:
    """Of a run, or an experiment, of that name, and of the config fields it has. None if they name no code, or code
    that this process may not import, or where no key can be kept: then it is not on record."""
    names = _names(parts)
    if not names or not all(map(gate.may_import, names)) or (key := _key(create=True)) is None:
        return None
    return _sign(key, name, parts)


def admit(name: str, *parts: Mapping[str, Any], signed: object, trust: bool = False) -> bool:
    """Let in the code that it names if it is on record, or if the user trusts it; otherwise whoever imports it is
    refused. Whether it is on record, or names no code."""
    names = _names(parts)
    key = _key(create=False) if names else None
    if key is not None and isinstance(signed, str) and hmac.compare_digest(_sign(key, name, parts), signed):
        gate.allow(names)
        return True
    gate.doubt(names, f"{name} was not made by this installation, or has been changed")
    gate.allow(names if trust else filter(gate.may_import, names), "trusted")
    return not names


def _names(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for part in parts for name in names_in(part)]


def _sign(key: bytes, name: str, parts: Sequence[Mapping[str, Any]]) -> str:
    code = [{field: part[field] for field in FIELDS if part.get(field)} for part in parts]
    text = json.dumps([name, code], sort_keys=True, default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _key(*, create: bool) -> bytes | None:
    """One that others can read would let them sign too: it is none."""
    directory = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "gymnasium-solver"
    path = directory / "key"
    with contextlib.suppress(OSError, RuntimeError):  # no home: nothing is on record
        if create and not path.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_once(path)
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            is_private = not hasattr(os, "getuid") or (
                state.st_uid == os.getuid() and not stat.S_IMODE(state.st_mode) & 0o077
            )
            key = file.read(BYTES)
        if is_private and len(key) == BYTES:
            return key
    return None


def _write_once(path: Path) -> None:
    """Of several processes at once, one makes the key and all use it: a link is made whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()
