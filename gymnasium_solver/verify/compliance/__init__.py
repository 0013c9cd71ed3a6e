"""PPO, ours or a user's function, against reference values and the published list of implementation details."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gymnasium_solver.errors import ConfigError
from gymnasium_solver.verify.compliance import functions, gae_checks, gae_subject, loss_checks, loss_subject, parameters
from gymnasium_solver.verify.compliance.results import Report
from gymnasium_solver.verify.compliance.seen_details import of_gae, of_loss

ALGORITHMS = ("ppo",)
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
    if algorithm not in ALGORITHMS:
        raise ConfigError(f"validate: {algorithm!r} has no reference here; there is one for {', '.join(ALGORITHMS)}")
    if function is None:
        return _own().document()
    called = functions.load(function) if isinstance(function, str) else function
    name = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    return check_function(called, name, kind, mapping or {}, framework, maximize).document()


def check_function(
    function: Callable[..., Any],
    name: str,
    kind: str | None,
    mapping: Mapping[str, str],
    framework: str | None,
    maximize: bool,
) -> Report:
    if kind not in (None, "loss", "gae"):
        raise ConfigError(f"validate: --kind {kind} is neither loss nor gae")
    found = kind or parameters.detect_kind(function, mapping)
    meanings = parameters.map_parameters(function, found, mapping)
    if found == "loss":
        loss = loss_subject.settle(function, meanings, framework)
        maximize = maximize or any(word in name.rpartition(":")[2].lower() for word in _OBJECTIVE_WORDS)
        checks, mistakes = loss_checks.check_loss(loss, maximize)
        details, library = of_loss(loss, checks, mistakes), loss.backend.name
    else:
        gae = gae_subject.settle(function, meanings, framework, gae_checks.is_right)
        checks, mistakes = gae_checks.check_gae(gae)
        details, library = of_gae(checks), gae.subject.backend.name
    return Report(name, found, checks, details, mistakes, library, meanings)


def _own() -> Report:
    from gymnasium_solver.train import backend

    backend.configure()
    from gymnasium_solver.ops import losses, returns
    from gymnasium_solver.verify.compliance.own_details import own_details
    from gymnasium_solver.verify.compliance.own_update import check_update

    estimate = check_function(returns.gae, "gae", "gae", {}, "jax", False)
    surrogate = check_function(losses.clipped_surrogate, "clipped_surrogate", "loss", {}, "jax", False)
    checks = [*check_update(), *surrogate.checks, *estimate.checks]
    return Report("gymnasium-solver", "ppo", checks, own_details(estimate))
