"""One thing an inspection of a checkpoint found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["critical", "high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low", "info")


@dataclass(frozen=True)
class Finding:
    kind: str  # stable, kebab-case
    severity: Severity
    what: str
    where: tuple[str, ...]  # tensors, layers or parts
    value: float  # the number that tells
    meaning: str
    remedy: str


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def number(value: Any) -> float | None:
    """A finite number, whatever a file's metadata hold in its place."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def between(meta: Mapping[str, Any], count: str) -> float | None:
    """What was counted from the earlier checkpoint to this one."""
    now, before = (number((meta.get(key) or {}).get(count)) for key in ("progress", "earlier_progress"))
    return now - before if now is not None and before is not None else None
