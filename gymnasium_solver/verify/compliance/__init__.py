"""PPO, ours or a user's function, against reference values and the published list of implementation details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance import functions, parameters
from gymnasium_solver.verify.compliance.gae import check_gae, settle_gae
from gymnasium_solver.verify.compliance.loss import settle_loss
from gymnasium_solver.verify.compliance.loss_terms import check_loss
from gymnasium_solver.verify.compliance.report import Findings, as_checked, document

_OBJECTIVE_WORDS = ("objective", "gain", "utility")


def validate(
    algorithm: str = "ppo",
    function: str | Callable[..., Any] | None = None,
    *,
    kind: str | None = None,
    mapping: Mapping[str, str] | None = None,
    framework: str | None = None,
    maximize: bool = False,
) -> dict[str, Any]:
    """Our own implementation, or a function: `module:function`, `path/to/file.py:function`, or the function itself."""
    if algorithm != "ppo":
        raise ConfigError(f"validate: there is no reference for {algorithm!r}, only for ppo")
    if function is None:
        return _own()
    called = functions.load(function) if isinstance(function, str) else function
    name = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    if kind not in (None, "loss", "gae"):
        raise ConfigError(f"validate: --kind {kind} is neither loss nor gae")
    kind = kind or parameters.detect_kind(called, mapping or {})
    meanings = parameters.map_parameters(called, kind, mapping or {})
    if kind == "gae":
        gae = settle_gae(called, meanings, framework)
        found, library = check_gae(gae), gae.subject.backend.name
    else:
        loss = settle_loss(called, meanings, framework)
        maximize = maximize or any(word in name.rpartition(":")[2].lower() for word in _OBJECTIVE_WORDS)
        found, library = check_loss(loss, maximize), loss.subject.backend.name
    return document(name, kind, found, framework=library, parameters=meanings)


def _own() -> dict[str, Any]:
    from gymnasium_solver.train import backend

    backend.configure()
    from gymnasium_solver.ops import losses, returns
    from gymnasium_solver.verify.compliance.own_details import own_details
    from gymnasium_solver.verify.compliance.own_update import check_update

    ours, meanings = losses.clipped_surrogate, parameters.map_parameters(losses.clipped_surrogate, "loss")
    surrogate = check_loss(settle_loss(ours, meanings, "jax"), maximize=False)
    estimate = check_gae(settle_gae(returns.gae, parameters.map_parameters(returns.gae, "gae"), "jax"))
    details = own_details([*estimate.details, as_checked(8, surrogate.checks)])
    checks = [*check_update(), *surrogate.checks, *estimate.checks]
    return document("gymnasium-solver", "ppo", Findings(checks, (), details))
