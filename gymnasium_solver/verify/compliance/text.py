"""A validation as text: what was found wrong first, then the numbers, then the list of details."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

WIDTH = 116


def to_text(document: dict[str, Any]) -> str:
    return "\n".join(_lines(document)) + "\n"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"# {document['subject']} against {document['algorithm'].upper()}'s reference"
    if document["parameters"]:
        yield f"{document['framework']} arrays; " + ", ".join(
            ours if ours == theirs else f"{theirs} = {ours}" for ours, theirs in document["parameters"].items()
        )
    yield ""
    yield from textwrap.wrap(f"Verdict: {document['verdict']}", WIDTH)
    yield from _mistakes(document["mistakes"])
    said = "; ".join(mistake["says"] for mistake in document["mistakes"])
    yield from _checks(document["checks"], said)
    if document["details"]:
        yield from _details(document["details"])


def _mistakes(mistakes: list[dict[str, Any]]) -> Iterator[str]:
    if not mistakes:
        return
    yield ""
    yield "## Recognised"
    for mistake in mistakes:
        yield from _wrapped(
            f"{'different' if mistake['harmless'] else 'fail':<10}", f"{mistake['name']}: {mistake['says']}"
        )
        yield from _wrapped(" " * 10, f"remedy: {mistake['remedy']}")
        if mistake["measured"]:
            yield from _wrapped(" " * 10, f"measured: {mistake['measured']}")


def _checks(checks: list[dict[str, Any]], said: str) -> Iterator[str]:
    """`said`: mistakes that stand above already."""
    yield ""
    yield "## Values and gradients"
    name, expected = (max(len(check[key]) for check in checks) for key in ("check", "expected"))
    yield f"{'STATUS':<10}{'CHECK':<{name + 2}}{'EXPECTED':<{expected + 2}}GOT"
    for check in checks:
        line = f"{check['status']:<10}{check['check']:<{name + 2}}{check['expected']:<{expected + 2}}{check['got']}"
        yield line.rstrip()
        if check["status"] != "pass":
            yield from _wrapped(" " * 10, f"matters: {check['matters']}")
        if check["likely"] and check["likely"] not in said:
            yield from _wrapped(" " * 10, f"likely: {check['likely']}")


def _details(details: list[dict[str, Any]]) -> Iterator[str]:
    counts = [
        f"{sum(d['status'] == status for d in details)} {status}" for status in ("present", "different", "absent")
    ]
    yield ""
    yield f"## Published list of implementation details: {', '.join(counts)}"
    group = ""
    for detail in details:
        if detail["group"] != group:
            group = detail["group"]
            yield ""
            yield f"### {group[0].upper()}{group[1:]}"
        yield from _wrapped(f"{detail['status']:<10}", f"{detail['number']}. {detail['detail']}: {detail['what']}")
        yield from _wrapped(" " * 10, f"here: {detail['evidence']}")
        yield from _wrapped(" " * 10, f"matters: {detail['matters']}; {detail['why']}")


def _wrapped(lead: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead))
