"""What a benchmark found: rows with a ratio, a target and whether it was met; as JSON, as text, as Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- speed:begin -->", "<!-- speed:end -->"
COLUMNS = ("measurement", "ours", "peer", "ratio", "target", "met")


@dataclass(frozen=True)
class Row:
    """One comparison. A target bounds the ratio ours / peer, or our own value where no peer is named.

    `ours` and `peer` are None where nothing was measured. `solved` is (solved, of) and must be full for a target to be
    met. `peer_censored`: the peer was cut off unsolved at the value given, so the true ratio is smaller.
    """

    what: str
    unit: str
    ours: float | None
    peer_name: str | None = None
    peer: float | None = None
    peer_censored: bool = False
    at_least: float | None = None
    at_most: float | None = None
    solved: tuple[int, int] | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.peer if self.ours is not None and self.peer else None

    @property
    def met(self) -> bool | None:
        """None where there is no target, or nothing to judge it by."""
        value = self.ratio if self.peer_name else self.ours
        if self.at_least is None and self.at_most is None:
            return None
        if self.solved is not None and self.solved[0] < self.solved[1]:
            return False
        if value is None:
            return None
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= value <= high

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "met": self.met}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Row:
        known = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        if known.get("solved") is not None:
            known["solved"] = tuple(known["solved"])
        return cls(**known)

    def cells(self) -> tuple[str, ...]:
        ours = _amount(self.ours, self.unit)
        if self.solved is not None:
            ours += f" ({self.solved[0]}/{self.solved[1]} solved)"
        peer = f"{'> ' if self.peer_censored else ''}{_amount(self.peer, self.unit)} {self.peer_name}"
        bound, sign = (self.at_least, "≥") if self.at_least is not None else (self.at_most, "≤")
        target = "" if bound is None else f"{sign} {_ratio(bound) if self.peer_name else _amount(bound, self.unit)}"
        ratio = "" if self.ratio is None else f"{'< ' if self.peer_censored else ''}{_ratio(self.ratio)}"
        met = {True: "yes", False: "no", None: ""}[self.met]
        note = f" ({self.note})" if self.note else ""
        return (self.what + note, ours, peer if self.peer_name else "", ratio, target, met)


def rows_of(document: dict[str, Any]) -> list[Row]:
    return [Row.from_json(row) for measurement in document["measurements"].values() for row in measurement["rows"]]


def as_text(document: dict[str, Any]) -> str:
    lines = [COLUMNS, *(row.cells() for row in rows_of(document))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    table = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join([*table, "", *footnotes(document)])


def as_markdown(document: dict[str, Any]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(row.cells() for row in rows_of(document))]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *footnotes(document)])


def measured_on(document: dict[str, Any]) -> str:
    """The day of the measurements, or the first and the last of their days."""
    days = sorted({measurement["date"] for measurement in document["measurements"].values()})
    return " to ".join(dict.fromkeys((days[0], days[-1])))


def footnotes(document: dict[str, Any]) -> list[str]:
    machine, versions = document["machine"], document["versions"]
    listed = "; ".join(
        f"{who}: " + ", ".join(f"{name} {version}" for name, version in packages.items())
        for who, packages in versions.items()
    )
    quick = " A quick run: too short for conclusions." if document["quick"] else ""
    notes = [
        f"Measured {measured_on(document)} on {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['system']}; median of {document['seeds']} (throughput: at most 3) runs.{quick}",
        f"Versions: {listed}.",
    ]
    return notes + [f"Missing: {name} ({remedy})." for name, remedy in document["missing"].items()]


def write_markdown(document: dict[str, Any], path: Path) -> None:
    """Between the two markers of an existing page, or as the whole of a new one."""
    table = as_markdown(document)
    text = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{path} has no lines {BEGIN} and {END}; put them where the table belongs")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def save(document: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise SystemExit(f"{path} does not exist; measure first: python benchmarks/speed.py")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def median(values: Sequence[float | None]) -> float | None:
    """The median, with None (never solved) as later than every number; None if that is in the middle."""
    if not values:
        return None
    ordered = sorted(math.inf if value is None else value for value in values)
    middle = len(ordered) // 2
    value = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return value if math.isfinite(value) else None


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _ratio(value: float) -> str:
    return f"{value:.3g}×" if value >= 1 else f"{value:.0%}"
