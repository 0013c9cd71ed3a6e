"""What a validation finds: checks of numbers, named mistakes, and details of the published list."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import yaml

from gymnasium_solver.verify.compliance.mistakes import Mistake

Status = Literal["pass", "fail", "different", "absent"]
Presence = Literal["present", "absent", "different"]
UNEXPLAINED = "no combination of known mistakes gives these numbers"


@dataclass(frozen=True)
class Check:
    """One property of the numbers. Only `fail` breaks compliance."""

    check: str
    status: Status
    expected: str
    got: str
    matters: str  # what the property is good for, or why it does not matter that it is different
    likely: str = ""  # the bug behind it, where it fails


@dataclass(frozen=True)
class Finding:
    """How a detail of the published list stands."""

    number: int
    group: str
    detail: str
    what: str
    status: Presence
    evidence: str
    matters: str  # yes, no or sometimes
    why: str


class Findings(NamedTuple):
    checks: list[Check]
    mistakes: tuple[Mistake, ...]
    details: list[Finding]


@dataclass(frozen=True)
class Report:
    subject: str
    kind: str
    findings: Findings
    framework: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return [d.detail for d in self.findings.details if d.status != "present" and d.matters == "yes"]

    @property
    def compliant(self) -> bool:
        """No number is wrong, and nothing that matters is missing."""
        return not failures(self.findings.checks) and not self.missing

    @property
    def verdict(self) -> str:
        checks, mistakes, _ = self.findings
        if self.compliant:
            return "; ".join(["compliant", *(f"different: {mistake.says}" for mistake in mistakes)])
        if bug := bug_behind(mistakes):
            return f"not compliant: {bug}"
        if failed := failures(checks):
            shown = "; ".join(failed[:3]) + " …" * (len(failed) > 3)
            return f"not compliant: {len(failed)} of {len(checks)} checks fail: {shown}"
        return f"not compliant: lacks what matters here ({', '.join(self.missing)})"

    def document(self) -> dict[str, Any]:
        return {
            "algorithm": "ppo",
            "subject": self.subject,
            "kind": self.kind,
            "framework": self.framework,
            "parameters": self.parameters,
            "compliant": self.compliant,
            "verdict": self.verdict,
            "checks": [asdict(check) for check in self.findings.checks],
            "mistakes": [mistake.document() for mistake in self.findings.mistakes],
            "details": [asdict(detail) for detail in self.findings.details],
        }


def failures(checks: Iterable[Check]) -> list[str]:
    return [check.check for check in checks if check.status == "fail"]


def bug_behind(mistakes: Sequence[Mistake]) -> str:
    return "; ".join(mistake.says for mistake in mistakes if not mistake.harmless)


@functools.cache
def published() -> list[tuple[str, dict[str, str]]]:
    """Group and words of each detail of the published list, in its order."""
    groups = yaml.safe_load(Path(__file__).with_name("details.yaml").read_text("utf-8"))
    return [(group, entry) for group, entries in groups.items() for entry in entries]


def finding(number: int, status: Presence, evidence: str) -> Finding:
    """How the detail of this number (from 1) stands."""
    group, words = published()[number - 1]
    matters, _, why = words["matters"].partition("; ")
    return Finding(number, group, words["detail"], words["what"], status, evidence, matters, why)


def as_checked(number: int, checks: Iterable[Check]) -> Finding:
    """A detail that stands as these checks do."""
    failed = failures(checks)
    evidence = f"fails: {', '.join(failed)}" if failed else "reference values reproduced"
    return finding(number, "different" if failed else "present", evidence)


def close(got: Any, wanted: Any, tolerance: float) -> bool:
    """To a share of the largest number wanted, because single numbers may be zero."""
    got, wanted = np.asarray(got, float), np.asarray(wanted, float)
    return got.shape == wanted.shape and bool(np.abs(got - wanted).max() <= tolerance * (1 + np.abs(wanted).max()))


def compare(
    name: str,
    got: Any,
    wanted: Any,
    tolerance: float,
    why: str,
    likely: str = UNEXPLAINED,
    otherwise: Status = "fail",
) -> Check:
    """Numbers, or what computes them, against numbers: a single one is shown, of several the largest error."""
    try:
        got = got() if callable(got) else got
    except Exception as error:  # anything may happen in someone else's function
        return Check(name, "fail", "numbers", describe(error), why, likely)
    right = close(got, wanted, tolerance)
    if np.ndim(wanted):
        shown = f"error up to {tolerance:.0e}", f"error {np.abs(got - wanted).max():.1e}"
    else:
        shown = f"{wanted:.4g}", f"{got:.4g}"
    return Check(name, "pass" if right else otherwise, *shown, why, likely if not right and otherwise == "fail" else "")


def describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
