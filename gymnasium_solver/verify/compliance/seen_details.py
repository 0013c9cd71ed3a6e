"""Which details of the published list can be seen in a single function, and how they stand there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gymnasium_solver.verify.compliance.details import finding
from gymnasium_solver.verify.compliance.loss_subject import LossSubject
from gymnasium_solver.verify.compliance.loss_terms import CLIPPED
from gymnasium_solver.verify.compliance.mistakes import Mistake
from gymnasium_solver.verify.compliance.results import Check, Finding
from gymnasium_solver.verify.compliance.samples import loss_batch

_SURROGATE = ("loss", "gradient", "no gradient", "a gradient")


def of_loss(subject: LossSubject, checks: Sequence[Check], mistakes: Sequence[Mistake]) -> list[Finding]:
    by_name = {check.check: check for check in checks}
    inside = any(mistake.name == "normalised-inside" for mistake in mistakes)
    failed = [c.check for c in checks if c.status == "fail" and c.check.startswith(_SURROGATE)]
    rows = [
        finding(7, "present" if inside else "absent", "inside the function" if inside else "left to the caller"),
        finding(
            8, "different" if failed else "present", f"{len(failed)} checks fail" if failed else "as the reference"
        ),
    ]
    value = by_name.get("value loss")
    if value is not None:
        rows.append(finding(9, "present" if CLIPPED in value.got else "absent", value.got))
    entropy = by_name.get("entropy bonus")
    terms = [name for name, check in (("value loss", value), ("entropy bonus", entropy)) if check is not None]
    whole = len(terms) == 2 and all(by_name[name].status != "fail" for name in terms)
    rows.append(finding(10, "present" if whole else "absent", f"{' and '.join(terms) or 'policy loss only'}"))
    reported = sorted(subject.named_numbers(subject.prepared(loss_batch())))
    # Diagnostics are the caller's affair: a function that returns none is not at fault.
    row = finding(12, "present" if reported else "absent", ", ".join(reported) or "none returned")
    rows.append(replace(row, matters="sometimes"))
    return rows


def of_gae(checks: Sequence[Check]) -> list[Finding]:
    failed = [check.check for check in checks if check.status == "fail"]
    evidence = f"fails: {', '.join(failed)}" if failed else "as the reference"
    return [finding(5, "different" if failed else "present", evidence)]
