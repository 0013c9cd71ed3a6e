"""What a validation finds: checks of numbers, details of the published list, and named mistakes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gymnasium_solver.verify.compliance.mistakes import Mistake

Status = Literal["pass", "fail", "different", "absent"]
Presence = Literal["present", "absent", "different"]
Weight = Literal["yes", "no", "sometimes"]


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
    """How a detail of the published list stands here."""

    number: int
    group: str
    detail: str
    what: str
    status: Presence
    evidence: str
    matters: Weight
    why: str


@dataclass(frozen=True)
class Report:
    subject: str
    kind: str
    checks: list[Check]
    details: list[Finding] = field(default_factory=list)
    mistakes: tuple[Mistake, ...] = ()
    framework: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    algorithm: str = "ppo"

    @property
    def compliant(self) -> bool:
        """No number is wrong, and nothing that matters is missing."""
        return not any(check.status == "fail" for check in self.checks) and not any(
            detail.status != "present" and detail.matters == "yes" for detail in self.details
        )

    @property
    def verdict(self) -> str:
        wrong = [mistake for mistake in self.mistakes if not mistake.harmless]
        failed = [check.check for check in self.checks if check.status == "fail"]
        missing = [d.detail for d in self.details if d.status != "present" and d.matters == "yes"]
        if self.compliant:
            conventions = [mistake.says for mistake in self.mistakes]
            return "compliant" + (f"; different: {'; '.join(conventions)}" if conventions else "")
        if wrong:
            return f"not compliant: {'; '.join(mistake.says for mistake in wrong)}"
        if failed:
            shown = "; ".join(failed[:3]) + " …" * (len(failed) > 3)
            return f"not compliant: {len(failed)} of {len(self.checks)} checks fail: {shown}"
        return f"not compliant: without what matters here ({', '.join(missing)})"

    def document(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "subject": self.subject,
            "kind": self.kind,
            "framework": self.framework,
            "parameters": self.parameters,
            "compliant": self.compliant,
            "verdict": self.verdict,
            "checks": [asdict(check) for check in self.checks],
            "mistakes": [mistake.document() for mistake in self.mistakes],
            "details": [asdict(detail) for detail in self.details],
        }


def judged(
    check: str, holds: bool, expected: Any, got: Any, matters: str, likely: str = "", otherwise: Status = "fail"
) -> Check:
    return Check(check, "pass" if holds else otherwise, _short(expected), _short(got), matters, "" if holds else likely)


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    number = float(value)
    return "0" if number == 0 else f"{number:.4g}"
