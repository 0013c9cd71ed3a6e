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
        meanings = [ours if ours == theirs else f"{theirs} = {ours}" for ours, theirs in document["parameters"].items()]
        yield f"{document['framework']} arrays; {', '.join(meanings)}"
    yield ""
    yield from textwrap.wrap(f"Verdict: {document['verdict']}", WIDTH)
    mistakes, checks, details = document["mistakes"], document["checks"], document["details"]
    if mistakes:
        yield from ("", "## Recognised")
    for mistake in mistakes:
        yield from _entry("different" if mistake["harmless"] else "fail", f"{mistake['name']}: {mistake['says']}")
        yield from _entry("", f"remedy: {mistake['remedy']}")
        if mistake["measured"]:
            yield from _entry("", f"measured: {mistake['measured']}")
    said = "; ".join(mistake["says"] for mistake in mistakes)
    yield from ("", "## Values and gradients")
    name, expected = (max(len(check[key]) for check in checks) + 2 for key in ("check", "expected"))
    yield f"{'STATUS':<10}{'CHECK':<{name}}{'EXPECTED':<{expected}}GOT"
    for check in checks:
        yield f"{check['status']:<10}{check['check']:<{name}}{check['expected']:<{expected}}{check['got']}".rstrip()
        if check["status"] != "pass":
            yield from _entry("", f"matters: {check['matters']}")
        if check["likely"] and check["likely"] not in said:
            yield from _entry("", f"likely: {check['likely']}")
    if details:
        statuses = [detail["status"] for detail in details]
        counts = [f"{statuses.count(status)} {status}" for status in ("present", "different", "absent")]
        yield from ("", f"## Published list of implementation details: {', '.join(counts)}")
    group = None
    for detail in details:
        if detail["group"] != group:
            group = detail["group"]
            yield from ("", f"### {group[0].upper()}{group[1:]}")
        yield from _entry(detail["status"], f"{detail['number']}. {detail['detail']}: {detail['what']}")
        yield from _entry("", f"here: {detail['evidence']}")
        yield from _entry("", f"matters: {detail['matters']}; {detail['why']}")


def _entry(status: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{status:<10}", subsequent_indent=" " * 10)
