"""A diagnosis for people: five sections in the contract's order, as parts that any way in can draw, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gymnasium_solver.metrics.clocks import CLOCKS
from gymnasium_solver.metrics.sparkline import sparkline
from gymnasium_solver.plain import number

WIDTH = 24  # of a curve
Fact = tuple[str, str]  # its name, and what is to be said


class Block(NamedTuple):
    title: str
    facts: list[Fact]
    yaml: str = ""
    command: str = ""
    severity: str = ""


class Page(NamedTuple):
    summary: list[Fact]
    finding: Block  # the primary cause and what answers it
    curves: list[tuple[str, str, str, str]]  # metric, last value, drawn, in words
    bottlenecks: list[Block]
    probes: list[Fact]
    recommendations: list[Block]
    next_steps: list[str]
    missing: list[str]


def page(document: Mapping[str, Any]) -> Page:
    unit = CLOCKS[document["summary"]["clock"]].unit
    reasons = document["outlook"]["reasons"] if document["outlook"] else []
    return Page(
        summary=_summary(document["summary"], unit),
        finding=finding(document),
        curves=[_curve(name, curve, unit) for name, curve in document["metrics"].items()],
        bottlenecks=[_bottleneck(place, found, unit) for place, found in enumerate(document["bottlenecks"])],
        probes=[(entry["probe"], f"{entry['verdict']} ({entry['evidence']})") for entry in document.get("probes", ())],
        recommendations=[_recommended(place, x, unit) for place, x in enumerate(document["recommendations"], 1)],
        next_steps=[*(document["next_steps"] or ["nothing to do"]), *(f"because {reason}" for reason in reasons)],
        missing=list(document["missing"]),
    )


def to_markdown(document: Mapping[str, Any]) -> str:
    shown = page(document)
    sections = {
        "Run summary": _list(shown.summary),
        "Key metrics": _curves(shown.curves),
        "Diagnosed bottlenecks": _blocks(shown.bottlenecks) or shown.finding.title,
        "What experiments settled": _list(shown.probes),
        "Recommendations": _blocks(shown.recommendations) or "Nothing to change.",
        "Next steps": "\n".join(f"- {line}" for line in shown.next_steps),
        "Missing": "\n".join(f"- {line}" for line in shown.missing),
    }
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items() if body) + "\n"


def finding(document: Mapping[str, Any]) -> Block:
    """The primary cause, with the change for it; else the first change that can be run, unless there is something to
    look at first."""
    summary = document.get("summary", {})
    first = document["bottlenecks"][0] if document["bottlenecks"] else None
    changes = [entry for entry in document["recommendations"] if entry["cli"] and entry["set"]]
    change = next((entry for entry in changes if first is not None and entry["cause"] == first["cause"]), None)
    if change is None and changes and not (first is not None and first.get("where")):
        change = changes[0]
    facts = []
    if change is not None:
        facts.append(("change", _change(change)))
        if first is None or change["cause"] != first["cause"]:
            facts.append(("because", change["rationale"].partition(". ")[0]))
    elif first is not None and first.get("where"):
        facts.append(("look at", first["where"]))
    command = "" if change is None else change["cli"]
    if first is None:
        nothing = "None found." if summary.get("solved") else "None that the run shows evidence of."
        return Block(nothing, facts, command=command)
    sure = f"{first['title']} ({first['cause']}, {first['confidence']:.0%} sure)"
    return Block(sure, facts, command=command, severity=first.get("severity", ""))


def _summary(summary: Mapping[str, Any], unit: str) -> list[Fact]:
    budget = f" of {number(summary['budget'])}" if summary["budget"] else ""
    trained = f"{summary['env_id'] or 'unknown environment'} with {summary['algo_id'] or 'unknown algorithm'}"
    reward = f"best {number(summary['best_reward'])}"
    reward += "" if summary["evaluated"] or summary["best_reward"] is None else " in training"
    reward += f", last {number(summary['last_reward'])}"
    if summary["threshold"] is not None:
        reward += f", threshold {number(summary['threshold'])}"
    if summary["gap"]:
        share = f" ({summary['gap_percent']:.0f} %)" if summary["gap_percent"] is not None else ""
        reward += f", short of it by {number(summary['gap'])}{share}"
    facts = [
        ("run", summary["run_id"]),
        ("trained", f"{trained}, {summary['status']}, {number(summary['progress'])}{budget} {unit}"),
        ("reward", reward),
        ("verdict", summary["verdict"]),
        ("efficiency", summary["efficiency"]),
    ]
    return [*facts, ("reason", summary["reason"])] if summary["reason"] else facts


def _curve(name: str, curve: Mapping[str, Any], unit: str) -> tuple[str, str, str, str]:
    notes = [curve["shape"]]
    if curve.get("in_range") is False:
        notes.append(f"outside {_range(curve['range'])}")
    if "change_point" in curve:
        notes.append(f"changes at {number(curve['change_point']['step'])} {unit}")
    if "spikes" in curve:
        notes.append(f"{curve['spikes']['count']} spikes from {number(curve['spikes']['first_step'])} {unit}")
    if "non_finite_from" in curve:
        notes.append(f"not finite from {number(curve['non_finite_from'])} {unit}")
    return name, number(curve["last"]), sparkline(curve["points"], WIDTH), "; ".join(notes)


def _bottleneck(place: int, found: Mapping[str, Any], unit: str) -> Block:
    facts = [
        ("severity", f"{found['severity']}, {found['category']}, {found['confidence']:.0%} sure"),
        ("why", found["root_cause"]),
        *(("for", _evidence(entry, unit)) for entry in found["evidence"][:5]),
        *(("against", _evidence(entry, unit)) for entry in found["against"][:2]),
    ]
    if "tied_with" in found:
        facts.append(("cannot be told apart from", ", ".join(found["tied_with"])))
    if "where" in found and place == 0:
        facts.append(("where to look", found["where"]))
    return Block(f"{place + 1 if place else 'Primary'}: {found['title']}  [{found['cause']}]", facts)


def _evidence(entry: Mapping[str, Any], unit: str) -> str:
    value = "" if entry["value"] is None else f": {number(entry['value'])}"
    since = "" if entry["step"] is None else f" from {number(entry['step'])} {unit}"
    return f"{entry['text']} ({entry['metric']}{value}{since}; expected {entry['expected']})"


def _recommended(place: int, entry: Mapping[str, Any], unit: str) -> Block:
    facts = [
        ("why", entry["rationale"]),
        ("expected", _expected(entry["expected_impact"], unit)),
        ("risk", entry["risk"]),
        *(("in the source library", line) for line in entry.get("translated", ())),
    ]
    command = entry["cli"] if entry["yaml"] else ""
    return Block(f"{place}. {entry['priority']}: {_change(entry)}", facts, entry["yaml"].rstrip(), command)


def _change(entry: Mapping[str, Any]) -> str:
    if not entry["set"]:
        return f"fix what causes {entry['cause']}; no setting does"
    return "set " + ", ".join(f"{name} to {_setting(value)}" for name, value in entry["set"].items())


def _expected(impact: Mapping[str, Any], unit: str) -> str:
    if impact["mid"] is None and impact["low"] is None:
        return str(impact["source"])
    low, high = (number(impact[key]) if impact[key] is not None else "not reached" for key in ("low", "high"))
    middle = "" if impact["mid"] is None else f"about {number(impact['mid'])} {unit}, "
    return f"threshold after {middle}80 % between {low} and {high} ({impact['source']})"


def _curves(curves: list[tuple[str, str, str, str]]) -> str:
    if not curves:
        return "None were logged."
    width = max(len(name) for name, *_ in curves)
    lines = (f"{name:<{width}}  {last:>9}  {drawn:<{WIDTH}}  {words}" for name, last, drawn, words in curves)
    return "\n".join(["```", *lines, "```"])


def _blocks(blocks: list[Block]) -> str:
    parts = []
    for block in blocks:
        parts += [f"### {block.title}", _list(block.facts)]
        parts += [f"```{kind}\n{text}\n```" for kind, text in (("yaml", block.yaml), ("sh", block.command)) if text]
    return "\n\n".join(parts)


def _list(facts: Iterable[Fact]) -> str:
    return "\n".join(f"- {name}: {text}" for name, text in facts)


def _setting(value: Any) -> str:
    if isinstance(value, Mapping) and "start" in value:
        return f"{value['start']:g} → {value.get('end', 0):g}"
    return "null" if value is None else str(value)


def _range(bounds: list[float | None]) -> str:
    low, high = bounds
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
