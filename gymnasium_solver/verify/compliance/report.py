"""What a validation finds: checks of numbers, named mistakes, and details of the published list."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import yaml

from gymnasium_solver.verify.compliance.mistakes import Mistake

Status = Literal["pass", "fail", "different", "absent"]
Presence = Literal["present", "absent", "different"]
UNEXPLAINED = "no combination of known mistakes gives these numbers"


class Check(NamedTuple):
    """One property of the numbers. Only `fail` breaks compliance."""

    check: str
    status: Status
    expected: str
    got: str
    matters: str  # what the property is good for, or why it does not matter that it is different
    likely: str = ""  # the bug behind it, where it fails


class Finding(NamedTuple):
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


def document(subject: str, kind: str, found: Findings, **more: Any) -> dict[str, Any]:
    checks, mistakes, details = found
    missing = [detail.detail for detail in details if detail.status != "present" and detail.matters == "yes"]
    failed, bug = failures(checks), bug_behind(mistakes)
    if not failed and not missing:
        verdict = "; ".join(["compliant", *(f"different: {mistake.says}" for mistake in mistakes)])
    elif bug:
        verdict = f"not compliant: {bug}"
    elif failed:
        shown = "; ".join(failed[:3]) + " …" * (len(failed) > 3)
        verdict = f"not compliant: {len(failed)} of {len(checks)} checks fail: {shown}"
    else:
        verdict = f"not compliant: missing what matters here ({', '.join(missing)})"
    return {
        **{"algorithm": "ppo", "subject": subject, "kind": kind, "framework": None, "parameters": {}, **more},
        **{"compliant": not failed and not missing, "verdict": verdict},
        "checks": [check._asdict() for check in checks],
        "mistakes": [mistake.document() for mistake in mistakes],
        "details": [detail._asdict() for detail in details],
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
    evidence = f"{len(failed)} checks fail" if failed else "reference values reproduced"
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
