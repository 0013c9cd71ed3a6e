"""What a server must not do for whoever asks."""

from __future__ import annotations


def requires_import(config_id: str) -> bool:
    """Whether resolving `ENV:VARIANT` would import a module of the user's, and so run code: an environment written
    `module:Class` that no file configures. A process that serves others leaves that to the one that trains."""
    from gymnasium_solver.config.load import shipped

    env_id, _, variant = config_id.rpartition(":")
    return ":" in env_id and (env_id, variant) not in {(known, name) for known, name, _ in shipped()}
