"""Whether the compiled engine can stand for a config. Imports no JAX: most configs are asked, few are compiled."""

from __future__ import annotations

from typing import Any

from gymnasium_solver.config.cards import card_of
from gymnasium_solver.config.schema import Config
from gymnasium_solver.envs import named
from gymnasium_solver.envs.build import registered_spec
from gymnasium_solver.envs.compiled.styles import METHODS, style_of
from gymnasium_solver.errors import ConfigError

_OWN = "gymnasium_solver.envs.compiled.classic_control"
_RULES = "gymnasium.envs.classic_control"  # where Gymnasium registers them; under another entry point, other rules hold

# Ids that a test has shown to follow Gymnasium's rules step by step.
VERIFIED = {
    "CartPole-v1": f"{_OWN}:CartPole",
    "Acrobot-v1": f"{_OWN}:Acrobot",
    "MountainCar-v0": f"{_OWN}:MountainCar",
    "MountainCarContinuous-v0": f"{_OWN}:MountainCarContinuous",
    "Pendulum-v1": f"{_OWN}:Pendulum",
}


def obstacle(config: Config) -> str | None:
    """Why the compiled engine cannot stand for the config, with the remedy; None if it can."""
    if card_of(config.algo_id).feed not in ("rollout", "replay"):
        return f"the compiled engine does not serve {config.algo_id}; use engine: auto"
    if config.env_wrappers or config.frame_skip > 1 or config.frame_stack > 1:
        return (
            "the compiled engine takes no env_wrappers, frame_skip or frame_stack; leave them out, or use engine: auto"
        )
    if getattr(config, "bonus", "none") != "none":
        return "the compiled engine adds no bonus; use bonus: none, or engine: auto"
    if getattr(config, "prioritized_replay", False):
        return "the compiled engine has no prioritised replay; use prioritized_replay: false, or engine: auto"
    if getattr(config, "replay_device", "auto") == "host":
        return "the compiled engine keeps its replay where it learns; use replay_device: auto, or engine: auto"
    return _without_environment(config)


def require_served(config: Config) -> None:
    reason = obstacle(config)
    if reason is not None:
        raise ConfigError(f"engine: compiled cannot run {config.env_id}: {reason}")


def _without_environment(config: Config) -> str | None:
    registration = registered_spec(config)
    if registration is None:
        made: Any = named.environment(config.env_id)
        if not isinstance(made, type):
            made = made(**config.env_kwargs)
        if style_of(made) is None:
            return (
                f"it is no pure environment; write it with the methods {', '.join(METHODS['pure'])} "
                "(docs/environments.md), or use engine: auto"
            )
        return None
    if config.env_id not in VERIFIED or not str(registration.entry_point).startswith(_RULES):
        return f"there is no compiled version of it; use engine: auto, or one of {', '.join(VERIFIED)}"
    if config.env_kwargs:
        return f"its compiled version takes no env_kwargs ({config.env_kwargs}); leave them out, or use engine: auto"
    return None
