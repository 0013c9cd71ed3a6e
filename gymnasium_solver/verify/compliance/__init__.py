"""PPO, ours or a user's function, against reference values and the published list of implementation details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance import functions, parameters
from gymnasium_solver.verify.compliance.gae import check_gae, settle_gae
from gymnasium_solver.verify.compliance.loss import settle_loss
from gymnasium_solver.verify.compliance.loss_terms import check_loss
from gymnasium_solver.verify.compliance.report import Findings, Report, as_checked

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
        raise ConfigError(f"validate: {algorithm!r} has no reference here; there is one for ppo")
    if function is None:
        return _own().document()
    if isinstance(function, str):
        called, name = functions.load(function), function
    else:
        called, name = function, getattr(function, "__name__", type(function).__name__)
    return check_function(called, name, kind, mapping or {}, framework, maximize).document()


def check_function(
    function: Callable[..., Any],
    name: str,
    kind: str | None = None,
    mapping: Mapping[str, str] = {},
    framework: str | None = None,
    maximize: bool = False,
) -> Report:
    if kind not in (None, "loss", "gae"):
        raise ConfigError(f"validate: --kind {kind} is neither loss nor gae")
    kind = kind or parameters.detect_kind(function, mapping)
    meanings = parameters.map_parameters(function, kind, mapping)
    if kind == "loss":
        loss = settle_loss(function, meanings, framework)
        maximize = maximize or any(word in name.rpartition(":")[2].lower() for word in _OBJECTIVE_WORDS)
        return Report(name, kind, check_loss(loss, maximize), loss.subject.backend.name, meanings)
    gae = settle_gae(function, meanings, framework)
    return Report(name, kind, check_gae(gae), gae.subject.backend.name, meanings)


def _own() -> Report:
    from gymnasium_solver.train import backend

    backend.configure()
    from gymnasium_solver.ops import losses, returns
    from gymnasium_solver.verify.compliance.own_details import own_details
    from gymnasium_solver.verify.compliance.own_update import check_update

    surrogate = check_function(losses.clipped_surrogate, "clipped_surrogate", "loss", framework="jax").findings
    estimate = check_function(returns.gae, "gae", "gae", framework="jax").findings
    checks = [*check_update(), *surrogate.checks, *estimate.checks]
    details = own_details([*estimate.details, as_checked(8, surrogate.checks)])
    return Report("gymnasium-solver", "ppo", Findings(checks, (), details))
