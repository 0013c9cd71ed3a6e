"""One thing an inspection of a checkpoint found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def number(value: Any) -> float | None:
    """A finite number, whatever a file's metadata hold in its place."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def some(names: Iterable[str], limit: int = 3) -> str:
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
